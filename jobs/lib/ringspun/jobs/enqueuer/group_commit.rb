# frozen_string_literal: true

module Ringspun
  module Jobs
    class Enqueuer
      # Sends callers in strands to the {Strands} of their machine, others to {Threads}, and begins anew in a forked child.
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

        # The strands that send batches end by themselves.
        def close = Process.pid == @pid && @threads.close

        private

        # Most calls come from the machine of the call before.
        def strands_of(machine)
          known, strands = @last
          return strands if known.equal?(machine)

          strands = @strands[machine] ||= Strands.new(@delivery)
          @last = [machine, strands].freeze
          strands
        end

        # Drops what is under way in a forked child: the parent sends it, and the parent's thread does not exist here. Several
        # threads of the child may come here at once, so there is a lock.
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
