# frozen_string_literal: true

module Ringspun
  module Postgres
    # Cancels statements that the server works on for nobody. The connection takes nothing new meanwhile: the server may see the
    # cancellation late, and it ends whatever runs by then. An empty statement behind it absorbs it.
    # https://www.postgresql.org/docs/17/protocol-flow.html#PROTOCOL-FLOW-CANCELING-REQUESTS
    #
    # It belongs to the pool and not to the strand that has left: a cancellation of the one does not end the other.
    #
    # @api private
    class Canceller
      AT_ONCE = 2

      # After which the connection is closed instead.
      SECONDS = 10

      # @param options [Options]
      def initialize(options)
        @options = options
        @places = Channel.new(AT_ONCE)
      end

      # @param lane [Lane]
      def cancel(lane)
        return if lane.held? || lane.lost?

        lane.hold
        if Fiber.current_scheduler
          Machine.current.spin { run(lane) }
        else
          run(lane)
        end
      end

      private

      def run(lane)
        Ringspun.shield(deadline: SECONDS) do
          take_place { CancelRequest.send(@options, lane.session) }
          lane.ping(nil) || lane.close
        end
      rescue Error, Ringspun::Error, SystemCallError => error
        lane.close("a statement could not be cancelled: #{error.message}")
      ensure
        lane.resume
      end

      def take_place
        @places.push(true)
        yield
      ensure
        @places.try_pop
      end
    end
    private_constant :Canceller
  end
end
