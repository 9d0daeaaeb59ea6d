# frozen_string_literal: true

require "monitor"
require "timeout"

# Random programs for a simulation, drawn from a seed: strands that make every waiting call there is, each with a limit of virtual
# time. So every program ends by itself, and early; one that does not has met a wait that nobody ends, or time that runs away.
class RandomWaits
  STRANDS = 2..5
  CALLS = 1..6
  LIMIT_MAX = 0.005
  # Far more than the limits of all calls together, with what the faults delay.
  ELAPSED_MAX = 10
  # Of so many seeds one runs twice and must do the same.
  TWICE_EVERY = 8
  # A seed takes a few milliseconds.
  REAL_SECONDS_MAX = 20

  # What a wait may end with. All else is a fault.
  ENDS = [Ringspun::TimeoutError, Ringspun::Evaluation::TimeoutError, Ringspun::ClosedError, Ringspun::TerminatedError, Timeout::Error,
          SystemCallError, EOFError, ThreadError].freeze

  class << self
    # @return [Integer] how many programs have run
    def explore(seeds, from: 0)
      watched do
        seeds.times do |i|
          @seed = from + i
          @began = now
          once = run(@seed)
          again = @seed % TWICE_EVERY == 0 ? run(@seed) : once
          raise "seed #{@seed}: a second run differs" unless once == again
        end
      end
      seeds
    end

    def run(seed)
      result = Ringspun::Simulation.run(seed: seed) { |machine| new(machine, seed).call }
      raise "time ran away: #{result.elapsed} s" if result.elapsed > ELAPSED_MAX
      raise "#{result.open_descriptors} descriptors are left" unless result.open_descriptors.zero?

      [result.trace_hash, result.elapsed]
    rescue StandardError => error
      raise error.class, "seed #{seed}: #{error.message}", error.backtrace
    end

    private

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    # A program that goes round for ever must not take its seed along.
    def watched
      done = false
      watching = Thread.new do
        until done
          sleep 1
          next if done || now - @began < REAL_SECONDS_MAX

          warn "seed #{@seed}: runs longer than #{REAL_SECONDS_MAX} s"
          Process.abort
        end
      end
      yield
    ensure
      done = true
      watching.wakeup.join
    end
  end

  def initialize(machine, seed)
    @machine = machine
    @random = Random.new(seed)
    @strands = []
  end

  def call
    make_things
    @strands = Array.new(@random.rand(STRANDS)) { @machine.spin { @random.rand(CALLS).times { one_call } } }
    @strands.each { |strand| ending { strand.join } }
  ensure
    @stream.close
    @descriptors.each { |descriptor| @machine.close(descriptor) }
    @machine.close(@file)
    @machine.unlink("/file")
  end

  private

  def make_things
    @pipe = @machine.pipe
    @pair = @machine.socketpair
    far, near = @machine.socketpair
    @stream = Ringspun::Stream.new(near)
    @descriptors = [*@pipe, *@pair, far]
    @far = far
    @reading = Ringspun::Mutex.new
    @file = @machine.open("/file", File::RDWR | File::CREAT)
    @queue, @sized = Ringspun::Queue.new, Ringspun::SizedQueue.new(1)
    @mutex, @semaphore = Ringspun::Mutex.new, Ringspun::Semaphore.new(1)
    @condition, @barrier = Ringspun::Condition.new, Ringspun::Barrier.new(2)
    @channel = Ringspun::Channel.new(1)
    @stock_queue, @stock_sized = Thread::Queue.new, Thread::SizedQueue.new(1)
    @stock_mutex, @stock_condition, @monitor = Thread::Mutex.new, Thread::ConditionVariable.new, Monitor.new
    @monitor_condition = @monitor.new_cond
  end

  CALLS_OF = {
    sleep: -> { @machine.sleep(limit) },
    stock_sleep: -> { Kernel.sleep(limit) },
    yield: -> { @machine.yield },
    park: -> { @machine.park(limit) },
    schedule: -> { @machine.schedule(@strands.sample(random: @random), 1) },
    terminate: -> { @random.rand(4).zero? && @machine.terminate(@strands.sample(random: @random)) },
    join: -> { other&.join },
    await: -> { other&.await },
    scope: -> { @machine.scope(deadline: limit) { |scope| 2.times { scope.spin { @machine.sleep(limit) } } } },
    shield: -> { @machine.scope(shield: true, deadline: limit) { @machine.sleep(limit) } },
    periodically: -> { @machine.timeout(limit) { @machine.periodically(LIMIT_MAX / 4) { @machine.yield } } },
    read: -> { @machine.read(@pipe[0], +"", 3) },
    write: -> { @machine.write(@pipe[1], "x" * @random.rand(1..5)) },
    write_much: -> { @machine.write(@pipe[1], "x" * 100_000) },
    readv: -> { @machine.readv(@pipe[0], [+"ab", +"cd"]) },
    writev: -> { @machine.writev(@pipe[1], ["x" * @random.rand(1..5), "y"]) },
    read_each: -> { @machine.read_each(@pipe[0]) { break } },
    poll: -> { @machine.poll(@pair.sample(random: @random), %i[readable writable].sample(random: @random)) },
    recv: -> { @machine.recv(@pair[1], +"", 10) },
    send: -> { @machine.send(@pair[0], "x" * @random.rand(1..20)) },
    recv_each: -> { @machine.recv_each(@pair[1]) { break } },
    recvmsg: -> { @machine.recvmsg(@pair[1], +"", 10) },
    sendmsg: -> { @machine.sendmsg(@pair[0], "x" * @random.rand(1..20)) },
    waitid: -> { @machine.waitid(-1) },
    splice: -> { @machine.splice(@pipe[0], @pair[0], 10) },
    pread: -> { @machine.pread(@file, +"", 0, 10) },
    pwrite: -> { @machine.pwrite(@file, "x" * 10, 0) },
    fsync: -> { @machine.fsync(@file) },
    ftruncate: -> { @machine.ftruncate(@file, 10) },
    statx: -> { @machine.statx("/file") },
    open: -> { @machine.open("/file").then { |fd| @machine.scope(shield: true) { @machine.close(fd) } } },
    rename: -> { @machine.rename("/other", "/another") },
    unlink: -> { @machine.unlink("/other") },
    copy_file: -> { @machine.copy_file("/file", "/other") },
    accept: -> { connecting { |listener| @machine.accept(listener) } },
    accept_each: -> { connecting { |listener| @machine.accept_each(listener) { |socket| break socket } } },
    stream_line: -> { @reading.synchronize { @stream.read_line(timeout: limit) } },
    stream_write: -> { @stream.write("x\n", timeout: limit).then { @stream.flush(timeout: limit) } },
    stream_copy: -> { @reading.synchronize { @stream.copy_to(@pipe[1], 3, timeout: limit) } },
    stream_far: -> { @machine.send(@far, "line\n") },
    queue_pop: -> { @queue.pop(timeout: limit) },
    queue_push: -> { @queue.push(1) },
    sized_pop: -> { @sized.pop(timeout: limit) },
    sized_push: -> { @sized.push(1, timeout: limit) },
    mutex: -> { @mutex.synchronize { @machine.sleep(limit) } },
    mutex_lock: -> { @mutex.owned? || @mutex.lock(timeout: limit).unlock },
    semaphore: -> { @semaphore.acquire(timeout: limit).then { @machine.sleep(limit) }.then { @semaphore.release } },
    condition: -> { @condition.wait(timeout: limit) },
    signal: -> { @condition.broadcast },
    barrier: -> { @barrier.wait(timeout: limit) },
    channel_push: -> { @channel.push(1, timeout: limit) },
    channel_pop: -> { @channel.pop(timeout: limit) },
    channel_each: -> { @channel.each { break } },
    selector: -> { selected },
    select: -> { Ringspun.select(@queue, @sized, @channel, @pipe[0], timeout: limit) },
    evaluation: -> { Ringspun::ConcurrentProc.new { @machine.sleep(limit) }.call_detached.await_result(within: limit) },
    conclude: -> { Ringspun::ConcurrentProc.new { @machine.sleep(1) }.call_nonblock.conclude_to(1) },
    stock_queue_pop: -> { @stock_queue.pop },
    stock_queue_push: -> { @stock_queue.push(1) },
    stock_sized_pop: -> { @stock_sized.pop },
    stock_sized_push: -> { @stock_sized.push(1) },
    stock_mutex: -> { @stock_mutex.synchronize { @machine.sleep(limit) } },
    stock_mutex_sleep: -> { @stock_mutex.synchronize { @stock_mutex.sleep(limit) } },
    stock_condition: -> { @stock_mutex.synchronize { @stock_condition.wait(@stock_mutex, limit) } },
    stock_signal: -> { @stock_condition.signal },
    monitor: -> { @monitor.synchronize { @monitor_condition.wait(limit) } },
    stock_select: -> { IO.select(nil, nil, nil, limit) },
    stock_timeout: -> { Timeout.timeout(limit) { Kernel.sleep } },
    fiber_schedule: -> { Fiber.schedule { ending { Kernel.sleep(limit) } } },
    enumerator: -> { Enumerator.new { |items| Kernel.sleep(limit).then { items << 1 } }.next },
    offload: -> { Ringspun.offload { 1 } },
    no_time: -> { unsupported { Thread::Queue.new.pop(timeout: limit) } },
    no_room_in_time: -> { unsupported { (Thread::SizedQueue.new(1) << 1).push(2, timeout: limit) } }
  }.freeze

  def one_call
    name = CALLS_OF.keys.sample(random: @random)
    ending { @machine.timeout(limit) { instance_exec(&CALLS_OF.fetch(name)) } }
  end

  # Often the same, so that several waits end at once.
  def limit = LIMIT_MAX / [1, 2, 5, @random.rand(1.0..1000.0)].sample(random: @random)

  # One that was spun later waits for no one before it.
  def other = @strands[((@strands.index(@machine.running) || @strands.size) + 1)..]&.sample(random: @random)

  def selected
    selector = Ringspun::Selector.new
    selector.pop(@queue)
    selector.push(@sized, 1)
    selector.readable(@pair[1])
    selector.acquire(@semaphore)
    selector.after(limit)
    2.times { @semaphore.release if selector.wait == @semaphore }
  ensure
    selector.close
  end

  # The block accepts.
  def connecting
    sockets = []
    address = Socket.sockaddr_un("/#{@random.rand(1 << 40)}")
    listener, client = Array.new(2) { @machine.socket(:UNIX, :STREAM).tap { |socket| sockets << socket } }
    @machine.bind(listener, address)
    @machine.listen(listener)
    connecting = @machine.spin { ending { @machine.connect(client, address) } }
    sockets << yield(listener)
  ensure
    @machine.scope(shield: true) do
      connecting&.join
      sockets.each { |socket| @machine.close(socket) }
    end
  end

  def unsupported
    yield
    raise "a simulation has no such time"
  rescue Ringspun::UnsupportedError
    nil
  end

  def ending
    yield
  rescue *ENDS
    nil
  end
end
