# frozen_string_literal: true

module Ringspun
  module Postgres
    # Cancels statements that the server works on for nobody. The connection takes nothing new meanwhile: the server may see the
    # cancellation late, and it ends whatever runs by then. An empty statement behind it absorbs it.
    # https://www.postgresql.org/docs/17/protocol-flow.html#PROTOCOL-FLOW-CANCELING-REQUESTS
    #
    # It belongs to the pool and not to the strand that has left: a cancellation of the one does not end the other. A run that
    # ends waits until the requests have left, and for no answer.
    #
    # @api private
    class Canceller
      # Connections that are opened for it at a time, beside those of the pool: each is a process of the server's.
      AT_ONCE = 2

      # After which the connection is closed instead.
      SECONDS = 10

      # Until the server is asked again. It passes over a request that comes before it has read the statement, and so does a
      # pooler that has no server for the statement yet.
      AGAIN = 1

      # @param options [Options]
      def initialize(options)
        @options = options
        @places = Channel.new(AT_ONCE)
        @lock = ShortLock.new
        @strands = {}.compare_by_identity # that are at it => whether the request has left
        @closed = false
      end

      # @param lane [Lane]
      def cancel(lane)
        return if lane.held? || lane.lost?
        return lane.close if @closed
        return run(lane) { nil } unless Fiber.current_scheduler

        lane.hold
        Machine.current.__send__(:spin_beside, needed: true) { |done| run_beside(lane, done) }
      rescue LimitError => error
        give_up(lane, error)
      end

      # Requests still leave, and nobody waits for their answers. From any thread.
      def close
        @lock.synchronize do
          @closed = true
          @strands.select { |_, sent| sent }.keys
        end.each(&:terminate)
      end

      private

      def run_beside(lane, done)
        strand = Machine.current.running
        note(strand, false)
        run(lane) do
          note(strand, true)
          done.call
        end
      ensure
        @lock.synchronize { @strands.delete(strand) }
      end

      def note(strand, sent)
        @lock.synchronize do
          @strands[strand] = sent
          raise ClosedError, "the pool is closed" if sent && @closed
        end
      end

      def run(lane, &)
        lane.hold
        deadline = Machine.current.now + SECONDS
        Machine.current.timeout(SECONDS) { nil until asked(lane, deadline, &) }
        cancelled = true
      rescue Error, Ringspun::Error, SystemCallError => failure
        nil # the connection ends with it
      ensure
        cancelled ? go_on(lane) : give_up(lane, failure)
      end

      def give_up(lane, failure)
        lane.close("a statement could not be cancelled#{": #{failure.message}" if failure}")
      ensure
        go_on(lane)
      end

      def go_on(lane)
        lane.resume
        lane.rest
      end

      # @return [Boolean] whether the server has come to what is behind the statement, or the connection has ended
      def asked(lane, deadline, &)
        take_place { CancelRequest.send(@options, lane.session, &) }
        lane.ping(AGAIN) || lane.close
        true
      rescue Ringspun::TimeoutError
        raise if Machine.current.now >= deadline

        false
      end

      def take_place
        @places.push(true)
        taken = true
        yield
      ensure
        @places.try_pop if taken
      end
    end
    private_constant :Canceller
  end
end
