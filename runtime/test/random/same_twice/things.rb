# frozen_string_literal: true

require "monitor"
require "socket"
require "timeout"

class SameTwice
  # What an actor may wait for. Each program makes its own, so that nobody else ends the wait.
  #
  #   await        waits, for as long as it takes; answers what came
  #   give         lets it come; from another actor, before or after the wait has begun
  #   limited      waits with a limit of the method's own, which passes
  #   shut         ends the wait in another way
  #   works        answers what a wait gets after an earlier one was cut short
  #
  # A thing that lacks one of these does not have the method, and the drawing asks for it.
  class Thing
    attr_reader :lock

    # @param world [InThreads] by which a thing makes actors of its own
    # @param way [Integer] which of the methods is called that do the same
    def initialize(world, way)
      @world = world
      @way = way
      prepare
    end

    def prepare = nil
    def dispose = nil

    # Called by the actor whose wait was cut short, or by the one that cut it short.
    def works
      give
      await
    end

    private

    def one_of(*ways) = ways[@way % ways.size].call
  end

  class Items < Thing
    def prepare = @queue = Thread::Queue.new

    def await
      one_of(-> { @queue.pop }, -> { @queue.pop(timeout: LONG) }, -> { @queue.shift },
             -> { Timeout.timeout(LONG) { @queue.deq } })
    end

    def give = @queue << :item
    def limited = @queue.pop(timeout: one_of(-> { TINY }, -> { 0 }))
    def shut = @queue.close
    def works = [super, @queue.empty?, @queue.num_waiting]
  end

  class Room < Thing
    def prepare = @queue = Thread::SizedQueue.new(1) << :first
    def await = one_of(-> { @queue.push(:second) }, -> { @queue.push(:second, timeout: LONG) }, -> { @queue << :second }).class
    def give = @queue.pop
    def limited = @queue.push(:second, timeout: one_of(-> { TINY }, -> { 0 }))
    def shut = @queue.close
    def works = [super, @queue.size, @queue.num_waiting]
  end

  # A lock that another actor has until it is told to give it up.
  class Held < Thing
    def prepare
      @lock = one_of(-> { Thread::Mutex.new }, -> { Monitor.new }, -> { Thread::Mutex.new })
      hold
    end

    def await
      return @lock.synchronize { owned? } if @way < 3

      enter
      owned?.tap { @lock.is_a?(Monitor) ? @lock.exit : @lock.unlock }
    end

    def give
      @release.close
      @holder.join
    end

    def works
      give
      answer = await
      hold
      [answer, owned?]
    end

    def limited = @lock.is_a?(Monitor) ? @lock.try_enter : @lock.try_lock
    def dispose = give

    private

    def enter = @lock.is_a?(Monitor) ? @lock.enter : @lock.lock
    def owned? = @lock.is_a?(Monitor) ? @lock.mon_owned? : @lock.owned?

    def hold
      held = Thread::Queue.new
      release = @release = Thread::Queue.new
      lock = @lock
      @holder = @world.spin { lock.synchronize { held.close && release.pop } }
      held.pop
    end
  end

  class Condition < Thing
    def prepare
      @lock = Thread::Mutex.new
      @condition = Thread::ConditionVariable.new
      @come = 0
    end

    def await
      @lock.synchronize do
        @condition.wait(@lock, *one_of(-> {}, -> { LONG })) until @come.positive?
        @come -= 1
        @lock.owned?
      end
    end

    def give
      @lock.synchronize do
        @come += 1
        one_of(-> { @condition.signal }, -> { @condition.broadcast })
      end
      @come
    end

    def limited
      @lock.synchronize do
        slept = @condition.wait(@lock, TINY)
        [:slept, slept.class, @lock.owned?]
      end
    end
  end

  class MonitorCondition < Thing
    def prepare
      @lock = Monitor.new
      @condition = @lock.new_cond
      @come = 0
    end

    def await = @way.odd? ? @lock.synchronize { take } : take

    def give
      @lock.synchronize do
        @come += 1
        one_of(-> { @condition.signal }, -> { @condition.broadcast })
      end
      @come
    end

    def limited = @lock.synchronize { [@condition.wait(TINY), @lock.mon_owned?] }

    private

    def take
      @lock.synchronize do
        one_of(-> { @condition.wait_while { @come.zero? } }, -> { @condition.wait_until { @come.positive? } })
        @come -= 1
        @lock.mon_owned?
      end
    end
  end

  # Only a limit, a raise or a kill ends it.
  class Sleep < Thing
    def await = one_of(-> { sleep }, -> { sleep(LONG) })
    def limited = sleep(TINY).class
    def works = limited
  end

  class SleepOfMutex < Thing
    def prepare = @lock = Thread::Mutex.new
    def await = @lock.synchronize { @lock.sleep(*one_of(-> {}, -> { LONG })) }

    def limited
      @lock.synchronize do
        slept = @lock.sleep(TINY)
        [:slept, slept.class, @lock.owned?]
      end
    end

    def works = @lock.synchronize { @lock.owned? }
  end

  class Ended < Thing
    def prepare
      gate = @gate = Thread::Queue.new
      @thread = Thread.new { gate.pop && :ended }
    end

    def await = one_of(-> { @thread.value }, -> { @thread.join.value }, -> { @thread.join(LONG).value })
    def give = @gate << :go
    def limited = @thread.join(TINY)
    def dispose = @gate.close

    # A thread that fails.
    def shut = (@thread.report_on_exception = false) || @thread.raise(Failure, "from outside")
  end

  THINGS = [Items, Room, Held, Condition, MonitorCondition, Sleep, SleepOfMutex, Ended]
end
