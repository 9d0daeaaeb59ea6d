# frozen_string_literal: true

require "monitor"
require "tempfile"

class CancellationPrograms
  # What an ensure block does, and the ledger of it. Everything is made ready before, so that nothing has to wait.
  class Actions
    READY = Array.new(2000) { |number| "line #{number}\n" }.join.freeze
    # More than all actions together push.
    ROOM = 100

    # A turn of so many real seconds may have ended by time.
    TURN_SECONDS = 0.004

    CALLS = {
      write: ->(number) { done(:pipe, text(number)) { |bytes| @machine.write(@pipe[1], bytes) } },
      send: ->(number) { done(:socket, text(number)) { |bytes| @machine.send(@pair[0], bytes) } },
      pwrite: ->(number) { done(:file, text(number)) { |bytes| @machine.pwrite(@file, bytes, @done[:file].bytesize) } },
      read: ->(number) { took(:ready_pipe) { into { |bytes| @machine.read(@ready_pipe, bytes, number % 20 + 1) } } },
      recv: ->(number) { took(:ready_socket) { into { |bytes| @machine.recv(@ready_socket, bytes, number % 20 + 1) } } },
      pread: ->(_) { begins("READY", into { |bytes| @machine.pread(@ready_file, bytes, 0, 5) }) },
      stream_write: ->(number) { done(:stream, text(number)) { |bytes| @stream.write(bytes) } },
      stream_line: ->(number) { done(:stream, "#{number}\n") { |line| @stream.write_line(line.chomp) } },
      stream_read: ->(number) { took(:ready_stream) { @ready_stream.read(number % 20 + 1) } },
      stream_read_line: ->(_) { took(:ready_stream) { @ready_stream.read_line(chomp: false) } },
      push: ->(number) { done(:queue, "#{number} ") { @queue.push(number) } },
      pop: ->(_) { took(:full) { @full.pop } },
      channel_push: ->(number) { done(:channel, "#{number} ") { @channel.push(number) } },
      stock_push: ->(number) { done(:stock, "#{number} ") { @stock.push(number) } },
      lock: ->(_) { done(:locked, "l") { @mutex.synchronize { nil } } },
      permit: ->(_) { done(:locked, "p") { @semaphore.hold { nil } } },
      stock_lock: ->(_) { done(:locked, "s") { @stock_mutex.synchronize { nil } } },
      monitor: ->(_) { done(:locked, "m") { @monitor.synchronize { nil } } },
      pipe: ->(_) { @machine.pipe.each { |descriptor| @machine.close(descriptor) } },
      close: ->(_) { @machine.close(@spare.pop) },
      stream_close: ->(_) { @spare_streams.pop.close },
      shield: ->(number) { done(:queue, "#{number} ") { Ringspun.shield { @machine.sleep(0.000_1) && @queue.push(number) } } },
      spin: ->(_) { done(:spun, "s") { @spun << @machine.spin { 1 } } },
      refused: ->(_) { refused }
    }.freeze

    # Those of Ruby's own IO, by the hooks of the scheduler.
    STOCK_IO = {
      io_write: ->(number) { done(:io, text(number)) { |bytes| @io[1].write(bytes) } },
      io_read: ->(number) { took(:ready_io) { @ready_io.readpartial(number % 20 + 1) } },
      io_close: ->(_) { @spare_ios.pop.close },
      file_write: ->(number) { done(:io_file, text(number)) { |bytes| @io_file.write(bytes) && @io_file.flush } },
      file_read: ->(_) { same("READY", File.read(@ready_path)) }
    }.freeze

    ALL = CALLS.merge(STOCK_IO).freeze
    NAMES = ALL.keys.freeze
    SIMULATED = CALLS.keys.freeze

    def initialize(machine, setting)
      @machine = machine
      @setting = setting
      @ledger = []
      @done = Hash.new { |all, name| all[name] = +"" }
      @taken = Hash.new { |all, name| all[name] = +"" }
      make_descriptors
      make_locks
      make_stock_ios unless simulated?
    end

    def expect(actions) = @expected = actions.size

    # Does it, and notes what it raised.
    def call(name, number)
      Ringspun.shield { @machine.yield } if @setting[:fresh]
      began = now
      instance_exec(number, &ALL.fetch(name))
      @ledger << [name, nil]
    rescue Exception => error
      @ledger << [name, error, @setting[:fresh] && now - began < TURN_SECONDS]
    end

    # Raises when anything was not done, or has not arrived.
    def check
      return if @expected.nil? # it was cancelled before it began

      @ledger.each { |name, error, fresh| check_outcome(name, error, fresh) if error }
      raise Broken, "#{@ledger.size} of #{@expected} actions were begun" unless @ledger.size == @expected

      arrived.each { |name, bytes| check_arrived(name, bytes) }
      @taken.each { |name, bytes| check_taken(name, bytes) }
    end

    def close
      [@stream, @far, @ready_stream, @ready_far, *@spare_streams].each { |stream| stream.close unless stream.closed? }
      [*@pipe, *@pair, @ready_pipe, @ready_socket, @file, @ready_file, *@spare, *@others].each { |io| @machine.close(io) }
      @spun.each(&:join)
      return @machine.unlink("/done") && @machine.unlink("/ready") if simulated?

      [*@io, @ready_io, *@spare_ios, @io_file].each(&:close)
      @files.each(&:close!)
    end

    private

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    def simulated? = @setting[:simulated]

    def text(number) = "#{number}," * (number % 30 + 1)

    # --- what there is ---

    def make_descriptors
      @pipe, @pair = @machine.pipe, @machine.socketpair
      @ready_pipe, filled = @machine.pipe
      @ready_socket, sent = @machine.socketpair
      @others = [filled, sent]
      @machine.write(filled, READY[0, 10_000])
      @machine.send(sent, READY[0, 10_000])
      @stream, @far = streams
      @ready_stream, @ready_far = streams
      @ready_far.write(READY)
      @ready_far.flush
      @spare = Array.new(20) { @machine.pipe }.flatten
      @spare_streams = Array.new(10) { streams }.flatten
      make_files
    end

    def streams = @machine.socketpair.map { |descriptor| Ringspun::Stream.new(descriptor) }

    def make_files
      @files = Array.new(3) { Tempfile.new("ensured") } unless simulated?
      done, ready = simulated? ? %w[/done /ready] : @files.map(&:path)
      @file, @ready_file = @machine.open(done, "w+"), @machine.open(ready, "w+")
      @machine.write(@ready_file, "READY")
      @ready_path = ready
    end

    def make_locks
      @queue, @full, @channel = Ringspun::SizedQueue.new(ROOM), Ringspun::Queue.new, Ringspun::Channel.new(ROOM)
      @stock = Thread::SizedQueue.new(ROOM)
      READY.each_line.first(ROOM).each { |line| @full.push(line) }
      @mutex, @semaphore, @empty = Ringspun::Mutex.new, Ringspun::Semaphore.new(1), Ringspun::Queue.new
      @stock_mutex, @monitor, @spun = Thread::Mutex.new, Monitor.new, []
    end

    def make_stock_ios
      @io = IO.pipe
      @ready_io, filled = IO.pipe
      filled.write(READY[0, 10_000])
      @spare_ios = Array.new(10) { IO.pipe }.flatten << filled
      @spare_ios.rotate!
      @io_file = File.open(@files[2].path, "w")
    end

    # --- the ledger ---

    def done(name, bytes)
      value = yield bytes
      raise Broken, "#{value} of #{bytes.bytesize} bytes" if value.is_a?(Integer) && value != bytes.bytesize

      @done[name] << bytes
    end

    def into
      bytes = +""
      yield bytes
      bytes
    end

    def took(name) = @taken[name] << yield

    def same(expected, got)
      raise Broken, "expected #{expected.inspect}, got #{got.inspect}" unless got == expected
    end

    # A simulated kernel may give less than there is.
    def begins(expected, got) = same(simulated? ? expected[0, [got.size, 1].max] : expected, got)

    # A wait that would never end: it is refused, or its own limit ends it.
    def refused
      @empty.pop(timeout: 0.000_1) # must pass
    rescue Ringspun::Cancelled
      nil
    end

    def check_outcome(name, error, fresh)
      turn = fresh ? "in a turn of its own" : "in a turn that may have ended"
      raise Broken, "in an ensure block, #{turn}, #{name} raised #{error.class}: #{error.message}"
    end

    # --- what has arrived ---

    def arrived
      @stream.close
      @machine.close(@pipe.pop)
      @machine.shutdown(@pair[0], :WR)
      all = { pipe: read_all(@pipe[0]), socket: read_all(@pair[1]), stream: @far.read, file: read_file,
              queue: items(@queue), channel: items(@channel), stock: items(@stock) }
      simulated? ? all : all.merge(arrived_by_stock_io)
    end

    def arrived_by_stock_io
      @io[1].close
      { io: @io[0].read, io_file: File.read(@files[2].path) }
    end

    def items(queue) = Array.new(queue.size) { "#{queue.pop} " }.join

    def read_all(descriptor)
      bytes = +""
      nil while @machine.read(descriptor, bytes, 100_000, bytes.bytesize).positive?
      bytes
    end

    def read_file
      bytes = +""
      nil while @machine.pread(@file, bytes, bytes.bytesize, 100_000, bytes.bytesize).positive?
      bytes
    end

    def check_taken(name, bytes)
      return if READY.start_with?(bytes)

      raise Broken, "#{name}: bytes are lost or doubled: #{bytes[0, 80].inspect}"
    end

    def check_arrived(name, bytes)
      return if bytes == @done[name]

      raise Broken, "#{name}: #{@done[name].bytesize} bytes were done, #{bytes.bytesize} have arrived"
    end
  end
end
