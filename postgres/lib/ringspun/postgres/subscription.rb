# frozen_string_literal: true

module Ringspun
  module Postgres
    # What a {Subscription} gets.
    #
    # @!attribute [r] kind
    #   @return [:notification, :gap] :gap: the connection was lost, and there is a new one; what was notified in between is lost.
    #     What was notified before it may have come or not
    #   @since 0.1.0
    # @!attribute [r] channel
    #   @return [String, nil] nil: it is a gap
    #   @since 0.1.0
    # @!attribute [r] payload
    #   @return [String, nil] nil: it is a gap
    #   @since 0.1.0
    # @!attribute [r] process
    #   @return [Integer, nil] the server's process of who has notified; nil: it is a gap
    #   @since 0.1.0
    #
    # @since 0.1.0
    Notification = Data.define(:kind, :channel, :payload, :process) do
      # @return [Boolean]
      # @since 0.1.0
      def gap? = kind == :gap
    end

    # What is notified on some channels of the database, from {Pool#listen} on, as a bounded queue. Any strand of any machine and
    # any thread may take from it, and it is a branch of {Ringspun.select}.
    #
    # It ends with {#close}, with the block of {Pool#listen}, with the pool, and when its queue is full and its policy is :close.
    # What lies in the queue by then can still be taken.
    #
    # @since 0.1.0
    class Subscription < Channel
      POLICIES = %i[wait drop_oldest close].freeze
      private_constant :POLICIES

      alias take_one try_pop
      alias wait_for_one pop
      private :take_one, :wait_for_one, :push, :try_push, :<<

      # @return [Array<String>] what it listens to
      # @since 0.1.0
      attr_reader :channels

      # @return [:wait, :drop_oldest, :close] what becomes of the next notification when its queue is full
      # @since 0.1.0
      attr_reader :policy

      # @return [Integer] how many notifications were dropped because its queue was full
      # @since 0.1.0
      attr_reader :dropped

      # @return [Exception, nil] why it has ended, when that was not by {#close}
      # @since 0.1.0
      attr_reader :error

      # @api private
      def initialize(hub, channels, queue, policy)
        unless POLICIES.include?(policy)
          raise UsageError, "policy: expected one of #{POLICIES.map(&:inspect).join(", ")}, got #{policy.inspect}"
        end

        super(queue)
        @hub = hub
        @channels = channels
        @policy = policy
        @dropped = 0
        @pid = Process.pid
        @returned = [] # taken for somebody who had gone by then
      end

      # Takes the oldest, waiting for one if need be.
      #
      # May switch strands.
      #
      # @param timeout [Numeric, nil] seconds; nil: no limit
      # @return [Notification, nil] nil: it is closed and empty, or nothing came in time
      # @raise [SubscriptionOverflow, ClosedError, ConnectionLost] why it has ended, when it is empty
      # @raise [UsageError] it belongs to the process that this one was forked from
      # @since 0.1.0
      def pop(timeout: nil)
        check_process
        event = @returned.shift || (foreign? ? wait_elsewhere(timeout) : wait_for_one(timeout:))
        event || end_of_queue
      end

      # Takes the oldest, if there is one.
      #
      # @return [Notification, nil] nil: there is none
      # @raise (see #pop)
      # @since 0.1.0
      def try_pop
        check_process
        @returned.shift || take_one || end_of_queue
      end

      # Takes one after the other, until it is closed and empty.
      #
      # May switch strands.
      #
      # @yieldparam notification [Notification]
      # @return [self, Enumerator] the latter without a block
      # @raise (see #pop)
      # @since 0.1.0
      def each
        return enum_for(:each) unless block_given?

        while (event = pop)
          yield event
        end
        self
      end

      # Gets no more. It never waits, and may be called from any thread.
      #
      # @return [self]
      # @since 0.1.0
      def close
        @hub.remove(self)
        super
      end

      # @return [String]
      def inspect = "#<#{self.class} #{@channels.join(", ")}: #{size} of #{capacity}, #{@policy}#{" closed" if closed?}>"

      # @api private
      # In the hub.
      #
      # @return [Boolean] false: it is closed
      def offer(event)
        case @policy
        when :wait then push(event)
        when :drop_oldest then replace_oldest(event)
        else try_push(event) || overflow
        end
        !closed?
      rescue ClosedError
        false
      end

      # @api private
      # Not by its user.
      def finish(error)
        @error ||= error
        Channel.instance_method(:close).bind_call(self)
      end

      private

      # What a gap tells is told all the same: that something may be missing, also of what comes in its place.
      def replace_oldest(event)
        until try_push(event)
          oldest = take_one or next
          @dropped += 1 unless oldest.gap? && event.gap?
          event = oldest if oldest.gap?
        end
      end

      def overflow
        finish(SubscriptionOverflow.new("the subscription of #{@channels.join(", ")} is closed, because #{capacity} " \
                                        "notifications waited to be taken (queue: #{capacity}, policy: :close)"))
      end

      def end_of_queue
        return unless closed? && empty? && @error

        raise @error.exception(@error.message)
      end

      def check_process
        return if Process.pid == @pid

        raise UsageError, "this subscription belongs to the process that this one was forked from; listen anew"
      end

      # In another fiber scheduler, whose thread would sleep.
      def foreign?
        scheduler = Fiber.current_scheduler
        scheduler && !scheduler.is_a?(Scheduler)
      end

      def wait_elsewhere(timeout) = @hub.elsewhere(->(event) { @returned << event if event }) { wait_for_one(timeout:) }
    end
  end
end
