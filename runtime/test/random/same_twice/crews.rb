# frozen_string_literal: true

class SameTwice
  # Steps of several actors at once. Their order is free, and so what they answer has none.
  module Crews
    CREWS = %i[deliver count meet drain lines chosen timed_locks survivors buffer closing closed_meanwhile].freeze

    private

    def do_crew(step) = note(step.label, outcome_of { __send__(step[:crew], step) })

    def crew(step, count) = Array.new(count) { |i| @world.spin(step[:places][i % step[:places].size]) { yield i } }

    def all(handles) = handles.map(&:join)

    # Items by a queue from several producers to several consumers: all arrive, once, and those of one producer to one consumer
    # in their order.
    def deliver(step)
      queue = step[:size] ? Thread::SizedQueue.new(step[:size]) : Thread::Queue.new
      producers = crew(step, step[:some]) { |i| step[:items].times { |n| put(step, queue, [i, n]) } }
      consumers = crew(step, step[:others]) { take_all(step, queue) }
      made = all(producers)
      queue.close
      got = consumers.map { |consumer| consumer.join.last }
      in_order = got.all? { |items| items.group_by(&:first).values.all? { |own| own == own.sort } }
      [made, got.flatten(1).sort, in_order, queue.pop, outcome_of { queue << 1 }]
    end

    def put(step, queue, item)
      case step[:put]
      when :tiny then queue.is_a?(Thread::SizedQueue) ? (sleep(0) until queue.push(item, timeout: TINY / 10)) : queue << item
      when :long then Timeout.timeout(LONG) { queue << item }
      else queue << item
      end
      sleep(0) if item.last % 3 == step[:pauses]
    end

    def take_all(step, queue)
      got = []
      loop do
        item = take(step, queue)
        item ? got << item : (return got if queue.closed? && queue.empty?)
      end
    end

    def take(step, queue)
      case step[:take]
      when :tiny then queue.pop(timeout: TINY / 20)
      when :zero then queue.pop(timeout: 0) || (sleep(TINY / 20) && nil)
      when :long then queue.pop(timeout: LONG)
      when :in_time then Timeout.timeout(LONG) { queue.pop }
      else queue.pop
      end
    end

    # Additions that would get lost if two were within the lock.
    def count(step)
      lock = step[:put] == :tiny ? Monitor.new : Thread::Mutex.new
      sum = 0
      ends = crew(step, step[:some] + 1) do
        step[:items].times do |n|
          lock.synchronize do
            before = sum
            sleep(n % 3 == step[:pauses] ? TINY / 50 : 0)
            sum = before + 1
          end
        end
      end
      [all(ends), sum]
    end

    # All come to a barrier, several times; nobody goes on before the last.
    def meet(step)
      lock = Thread::Mutex.new
      condition = Thread::ConditionVariable.new
      size = step[:some] + 1
      here = round = 0
      ends = crew(step, size) do
        step[:items].times.map do
          lock.synchronize do
            mine = round
            here += 1
            if here % size == 0
              round += 1
              condition.broadcast
            else
              condition.wait(lock, *(step[:take] == :tiny ? TINY / 20 : nil)) while round == mine
            end
            [mine, here >= (mine + 1) * size]
          end
        end
      end
      all(ends)
    end

    # Waiters of a queue that is closed: each gets nil, but for the items that are there before.
    def drain(step)
      queue = Thread::Queue.new
      waiters = crew(step, step[:some] + 2) { queue.pop }
      sleep(0)
      step[:some].times { |n| queue << n }
      queue.close
      all(waiters).tally.to_a.sort_by(&:to_s)
    end

    # Lines through a pipe or a socket, of several writers to one reader.
    def lines(step)
      reader, writer = step[:size] ? IO.pipe : UNIXSocket.pair
      writers = crew(step, step[:some]) do |i|
        step[:items].times { |n| writer.puts("#{i} #{n} #{"x" * (n % 4 == step[:pauses] ? 3_000 : 5)}") }
      end
      reading = crew(step, 1) { read_lines(step, reader) }.first
      made = all(writers)
      writer.close
      got = reading.join.last
      [made, got.group_by { |line| line[/\A\d+/] }.sort.map { |name, own| [name, own.map { |line| [line.size, line.split[1]] }] }]
    ensure
      [reader, writer].each(&:close)
    end

    def read_lines(step, reader)
      case step[:take]
      when :long then reader.each_line.to_a
      when :tiny then all_of { reader.readpartial(700) }
      when :zero then all_of { reader.wait_readable && reader.read_nonblock(5_000) }
      when :in_time then all_of { Timeout.timeout(LONG) { reader.readline } }
      else reader.read.lines
      end
    end

    def all_of
      text = +""
      loop { text << yield }
    rescue EOFError
      text.lines
    end

    # What IO.select finds ready: each pipe, once.
    def chosen(step)
      pipes = Array.new(step[:some] + 1) { IO.pipe }
      writers = crew(step, pipes.size) { |i| sleep(i.odd? ? TINY / 10 : 0) && pipes[i].last.write(i.to_s) }
      open = pipes.map(&:first)
      got = []
      until open.empty?
        ready, = IO.select(open, nil, nil, *(step[:take] == :tiny ? TINY / 20 : nil))
        ready&.each { |reader| got << reader.readpartial(10) }
        open -= ready.to_a
      end
      [all(writers), got.sort]
    ensure
      pipes.flatten.each(&:close)
    end

    # Limits around a lock that others take and give up all the time. Whoever is cut short has not got it, and holds it not.
    def timed_locks(step)
      lock = step[:put] == :tiny ? Monitor.new : Thread::Mutex.new
      within = 0
      most = 0
      ends = crew(step, step[:some] + 1) do |i|
        step[:items].times do
          Timeout.timeout(i.even? ? LONG : TINY / 20) { lock.synchronize { sleep(0) } }
        rescue Timeout::Error
          nil
        ensure
          lock.synchronize do
            most = [most, within += 1].max
            sleep(0)
            within -= 1
          end
        end
      end
      [all(ends), most, within, lock.is_a?(Monitor) ? lock.try_enter && lock.exit : lock.locked?]
    end

    # Some of those who wait are killed, and the others get all that comes afterwards.
    def survivors(step)
      queue = step[:put] == :plain ? Thread::Queue.new : Thread::SizedQueue.new(9)
      begun = Thread::Queue.new
      doomed = Array.new(step[:some]) do
        @world.spin(@place) { (begun << 1) && queue.pop }
      end
      others = crew(step, step[:others]) { (begun << 1) && queue.pop }
      (doomed + others).each { begun.pop }
      doomed.each { |handle| handle.kill(by_fiber: step[:pauses].zero?) }
      ends = all(doomed)
      others.size.times { |n| queue << n }
      [ends, all(others).sort_by(&:to_s), queue.empty?, queue.num_waiting]
    end

    # A buffer with room for some, made of a monitor and two conditions.
    def buffer(step)
      room = step[:size] || 1
      list = [].extend(MonitorMixin)
      filled = list.new_cond
      taken = list.new_cond
      limit = step[:take] == :tiny ? TINY / 20 : nil
      makers = crew(step, step[:some]) do |i|
        step[:items].times do |n|
          list.synchronize do
            taken.wait(limit) until list.size < room
            list.push([i, n]) && filled.signal
          end
        end
      end
      takers = crew(step, step[:some]) do
        Array.new(step[:items]) do
          list.synchronize do
            filled.wait(limit) while list.empty?
            taken.signal && list.shift
          end
        end
      end
      [all(makers), takers.flat_map { |taker| taker.join.last }.sort]
    end

    # Calls of an IO that is closed, on one side or on both.
    def closing(step)
      reader, writer = step[:size] ? IO.pipe : UNIXSocket.pair
      writer.write("rest")
      pauses = step[:pauses]
      writer.close if pauses.odd?
      reader.close if pauses == 2
      calls = [-> { reader.read(2) }, -> { reader.close.class }, -> { reader.close.class }, -> { reader.gets },
               -> { reader.wait_readable(0) }, -> { IO.select([reader], nil, nil, 0) }, -> { writer.write("w") },
               -> { writer.close.class }, -> { writer.puts }, -> { writer.closed? }, -> { writer.wait_writable(0) }]
      calls.map { |call| outcome_of(&call) }
    ensure
      [reader, writer].each(&:close)
    end

    # An IO is closed while others wait for it. What the error says names a thread, or a strand.
    def closed_meanwhile(step)
      reader, writer = step[:size] ? IO.pipe : UNIXSocket.pair
      begun = Thread::Queue.new
      waiting = Array.new(step[:some]) do
        @world.spin(@place) { outcome_of { (begun << 1) && wait_for_bytes(step, reader) }.first }
      end
      waiting.each { begun.pop }
      sleep(0)
      @world.close(reader)
      [all(waiting), reader.closed?]
    ensure
      [reader, writer].each { |io| io.close unless io.closed? }
    end

    def wait_for_bytes(step, reader)
      case step[:take]
      when :long then reader.read
      when :tiny then reader.readpartial(10)
      when :zero then reader.wait_readable
      when :in_time then Timeout.timeout(LONG) { reader.getc }
      else reader.gets
      end
    end
  end
end
