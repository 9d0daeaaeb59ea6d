# frozen_string_literal: true

class SameTwice
  # An actor of a program while it runs: what it is joined, killed and interrupted by, the same in each world.
  class Handle
    attr_accessor :thread, :strand, :fiber
    attr_reader :done, :end

    def initialize = @done = Thread::Queue.new

    # The body of the actor. `end` says how it ended; one that was killed says nothing.
    def perform
      @end = :killed
      @fiber = Fiber.current
      @end = [:value, yield]
    rescue Ringspun::Cancelled
      raise
    rescue Exception => error
      @end = [:error, error.class, error.message]
    ensure
      @done.close
    end

    # Waits for the end of the actor. From any thread or strand.
    def join
      @done.pop
      self.end
    end

    # For an actor that waits. By Thread#kill, by Machine#terminate, or by Fiber#kill.
    def kill(by_fiber: false)
      return thread.kill if thread
      return fiber.kill if by_fiber || !strand

      strand.terminate
    end

    # For an actor that waits, from the thread of that actor's strand.
    def interrupt(...) = (thread || fiber).raise(...)
  end

  # Each actor is a thread. No scheduler is set: what happens here is what Ruby promises.
  class InThreads
    def self.run
      world = new
      yield(world).tap { world.finish }
    end

    def initialize = @threads = Thread::Queue.new

    # @return [Handle] of an actor that has begun, or will
    def spin(_place = :strand, &) = in_thread(&)

    # Closes an IO for which others may wait.
    def close(io) = io.close

    def finish = (@threads.pop.join until @threads.empty?)

    private

    def in_thread(&)
      Handle.new.tap do |handle|
        handle.thread = Thread.new { handle.perform(&) }
        handle.thread.report_on_exception = false
        @threads << handle.thread
      end
    end
  end

  # Each actor is a strand that Machine#spin has made, but for those whose place is a thread.
  class InStrands < InThreads
    def self.run
      world = new
      Ringspun.run { yield world.here }.tap do
        world.finish
        left = Ringspun::Machine.current.metrics.values_at(:strands_live, :ops_in_flight, :timers)
        raise Left, format("%d strands, %d ops, %d timers are left", *left) unless left == [1, 0, 0]
      end
    end

    # The thread whose actors may be strands.
    def here
      @home = Thread.current
      self
    end

    # What an actor spins that is a thread are threads as well.
    def spin(place = :strand, &)
      return in_thread(&) if place == :thread || Thread.current != @home

      Handle.new.tap { |handle| spin_strand(handle, &) }
    end

    # By the machine, for on Ruby 3.3 and 3.4 a stock IO#close tells the strands that wait only with `ringspun/core_ext`.
    def close(io)
      return super if Thread.current != @home || IO.include?(Ringspun::IOMethods)

      Ringspun::Machine.current.close(io)
    end

    private

    def spin_strand(handle, &) = handle.strand = Ringspun::Machine.current.spin { handle.perform(&) }
  end

  # Each actor is a fiber that Fiber.schedule has made, within a Ringspun.run.
  class InFibers < InStrands
    private

    def spin_strand(handle, &) = Fiber.schedule { handle.perform(&) }
  end

  # The same on a thread that has set the scheduler by itself.
  class BySetScheduler < InFibers
    def self.run(&block)
      world = new
      outcome = nil
      thread = Thread.new do
        Fiber.set_scheduler(Ringspun::Scheduler.new)
        Fiber.schedule { outcome = block.call(world.here) }
      end
      thread.report_on_exception = false
      thread.join
      world.finish
      outcome
    end
  end

  # What outlives a program.
  Left = Class.new(StandardError)

  WORLDS = [InStrands, InFibers, InStrands, BySetScheduler].freeze
end
