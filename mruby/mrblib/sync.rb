# frozen_string_literal: true

module Ringspun
  class Mutex
    # Runs the block with the lock held, and returns its value. A DeadlockError where this strand holds it. May switch strands.
    def synchronize
      raise UsageError, "synchronize needs a block" unless block_given?

      lock
      begin
        yield
      ensure
        unlock if owned?
      end
    end
  end

  class Semaphore
    # Runs the block with one permit held, and returns its value. May switch strands.
    def hold
      raise UsageError, "hold needs a block" unless block_given?

      acquire
      begin
        yield
      ensure
        release
      end
    end
  end

  class Condition
    # Waits for a signal, and returns self; a TimeoutError after `timeout` seconds. May switch strands. Gives up
    # the mutex during the wait and locks it again afterwards, however the wait ends.
    def wait(mutex = nil, timeout: nil)
      raise UsageError, "expected a Ringspun::Mutex, got #{mutex.class}" unless mutex.nil? || mutex.is_a?(Mutex)

      error = __wait(mutex, timeout)
      tries = 0
      until mutex.nil? || mutex.owned? || tries > 2
        error = mutex.__relock(tries) || error
        tries += 1
      end
      raise error if error

      self
    end
  end

  class Queue
    alias << push
    alias enq push
    alias shift pop
    alias deq pop
    alias length size

    def empty? = size == 0

    # Pops one item after the other, also nil, until the queue is closed and empty; returns self. May switch strands.
    def each
      raise UsageError, "each needs a block" unless block_given?

      over = Object.new # which nobody can have pushed
      until over.equal?(item = __pop_or(over))
        yield item
      end
      self
    end
  end
end
