# frozen_string_literal: true

class CancellationPrograms
  # What a strand does until it is cancelled: waits for a time, for others, and for room, and what takes its turn up.
  class Waits
    MOMENT = 0.000_2
    GIVEN_MAX = 200

    CALLS = {
      sleep: ->(number) { @machine.sleep(number / 1_000_000.0) },
      stock_sleep: ->(number) { sleep(number / 1_000_000.0) },
      park: ->(_) { limited { @machine.park(MOMENT) } },
      yield: ->(_) { @machine.yield },
      pop: ->(_) { @given.pop },
      stock_pop: ->(_) { @stock.pop },
      read: ->(_) { @machine.read(@messages[0], +"", 1) },
      lock: ->(_) { @held.synchronize { @machine.yield } },
      stock_lock: ->(_) { @stock_held.synchronize { @machine.yield } },
      limit: ->(_) { limited { @machine.timeout(MOMENT) { @machine.sleep } } },
      scope: ->(_) { @machine.scope { |scope| scope.spin { @machine.sleep(MOMENT) } } },
      shield: ->(_) { Ringspun.shield(deadline: 1) { @machine.sleep(MOMENT) } },
      join: ->(_) { @machine.spin { @machine.sleep(MOMENT) }.join },
      small_writes: ->(number) { (number % 20).times { @machine.write(@busy[1], "x") } },
      large_write: ->(number) { @machine.write(@busy[1], "x" * (number * 100)) },
      stream_write: ->(number) { @stream.write("x" * (number * 100)) && @stream.flush },
      stream_writes: ->(number) { (number % 20).times { @stream.write("x") && @stream.flush } }
    }.freeze
    NAMES = CALLS.keys.freeze

    def initialize(machine)
      @machine = machine
      @given, @stock = Ringspun::Queue.new, Thread::Queue.new
      @held, @stock_held = Ringspun::Mutex.new, Thread::Mutex.new
      @messages, @busy = machine.pipe, machine.pipe
      one, @drained = machine.socketpair
      @stream = Ringspun::Stream.new(one)
      @helpers = [@busy[0], @drained].map { |descriptor| machine.spin { drain(descriptor) } }
      @helpers << machine.spin { give } << machine.spin { hold }
    end

    def call(name, number) = instance_exec(number, &CALLS.fetch(name))

    def close
      @helpers.each do |helper|
        helper.terminate
        helper.join
      rescue Ringspun::TerminatedError
        nil
      end
      @stream.close
      [*@messages, *@busy, @drained].each { |descriptor| @machine.close(descriptor) }
    end

    private

    def limited
      yield
    rescue Ringspun::TimeoutError
      nil
    end

    def give
      GIVEN_MAX.times do
        @machine.sleep(MOMENT)
        @given.push(1)
        @stock.push(1)
        @machine.write(@messages[1], "m")
      end
      @machine.sleep
    end

    def hold
      loop do
        @held.synchronize { @stock_held.synchronize { @machine.sleep(MOMENT) } }
        @machine.sleep(MOMENT)
      end
    end

    def drain(descriptor)
      bytes = +""
      nil while @machine.read(descriptor, bytes, 100_000).positive?
    end
  end
end
