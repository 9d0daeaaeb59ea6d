# frozen_string_literal: true

module Ringspun
  module Jobs
    class Enqueuer
      # Tells callers in strands from others, and a forked child from its parent.
      #
      # @api private
      class GroupCommit
        def initialize(delivery, **)
          @delivery = delivery
          @beginning = Thread::Mutex.new
          start_anew
        end

        # May switch strands.
        #
        # @return (see Strands#push)
        def push(push)
          start_anew unless Process.pid == @pid
          return @threads.push(push) unless Fiber.current_scheduler.is_a?(Scheduler)

          machine = Machine.current
          strands_of(machine).push(machine, push)
        end

        # (see Strands#push_all)
        def push_all(pushes)
          start_anew unless Process.pid == @pid
          return @threads.push_all(pushes) unless Fiber.current_scheduler.is_a?(Scheduler)

          machine = Machine.current
          strands_of(machine).push_all(machine, pushes)
        end

        # Flights end by themselves.
        def close = Process.pid == @pid && @threads.close

        private

        # Most often it is the one that it was the last time.
        def strands_of(machine)
          known, strands = @last
          return strands if known.equal?(machine)

          strands = @strands[machine] ||= Strands.new(@delivery)
          @last = [machine, strands].freeze
          strands
        end

        # What was under way is the parent's. Several threads of a child may come here at once; none may go on with what is the
        # parent's, whose thread is not there.
        def start_anew
          @beginning.synchronize do
            next if Process.pid == @pid

            @last = nil
            @strands = ObjectSpace::WeakKeyMap.new
            @threads = Threads.new(@delivery)
            @pid = Process.pid
          end
        end
      end
      private_constant :GroupCommit
    end
  end
end
