# frozen_string_literal: true

module Ringspun
  module Postgres
    # Asks for all callers that are in no strand: plain threads, and the fibers of other schedulers. It has one thread with a
    # machine, in which each call is a strand; the caller waits at a Thread::Queue. The thread starts with the first call.
    #
    # @api private
    class Courier
      # A call on its way, there and back.
      class Errand
        attr_reader :strand

        def initialize(&work)
          @work = work
          @answer = Thread::Queue.new
          @given_up = false
        end

        def given_up? = @given_up

        # In the caller. When it is interrupted, the block is called.
        def wait
          kind, value = @answer.pop
          answered = true
          return value if kind == :value

          value.set_backtrace(caller(3))
          raise value
        ensure
          unless answered
            @given_up = true
            yield
          end
        end

        # In the courier's thread.
        def begin(machine) = @strand = machine.spin { run }

        def fail(error) = @answer << [:error, error]

        private

        def run
          answer = [:value, @work.call]
        rescue Exception => error
          answer = [:error, error]
          raise unless error.is_a?(StandardError)
        ensure
          @answer << (answer || [:error, Postgres.lost("the courier has ended", true)])
        end
      end
      private_constant :Errand

      # A connection of the courier's machine, for one user in another thread.
      class Lane
        def initialize(courier, lane)
          @courier = courier
          @lane = lane
        end

        %i[query batch begin_stream next_rows end_stream ping close lost? loss orphaned? orphaned].each do |name|
          define_method(name) { |*arguments| @courier.ask_of(@lane, name, *arguments) }
        end
      end
      private_constant :Lane

      # @param pool [Pool]
      def initialize(pool)
        @pool = pool
        @errands = Thread::Queue.new
        @pid = Process.pid
        @thread = Thread.new { serve }
        @thread.name = "ringspun-postgres"
      end

      # @return [Boolean] false: something has killed its thread
      def alive? = @thread.alive?

      # (see Lanes#query)
      def query(...) = call { lanes.query(...) }

      # (see Lanes#batch)
      def batch(...) = call { lanes.batch(...) }

      # (see Connections#use)
      def use(timeout, reset:)
        asker = Connections.asker
        lane = call { @pool.connections.acquire(timeout, asker) }
        yield Lane.new(self, lane)
      ensure
        call { @pool.connections.release(lane, reset) } if lane && here?
      end

      # In a forked child the connection is the parent's, and who would ask does not exist; it need not.
      def ask_of(lane, name, *) = here? ? call { lane.__send__(name, *) } : lane.__send__(name, *)

      # @return [Boolean] false: it was left behind by a fork
      def here? = Process.pid == @pid

      # Runs the block in a strand of the courier's.
      def call(&)
        errand = Errand.new(&)
        @errands << errand
        errand.wait { @errands << errand unless @errands.closed? }
      rescue ClosedQueueError
        raise Postgres.lost("the courier has ended", false)
      end

      def close
        @errands.close
        @thread.join
      end

      private

      def lanes = @lanes ||= Lanes.new(@pool, Machine.current)

      def serve
        Ringspun.run(on_error: ->(*) {}) do |machine|
          while (errand = @errands.pop)
            take(machine, errand)
          end
          @lanes&.close
          @pool.connections.close_own
        end
      ensure
        @errands.close
        while (errand = @errands.pop)
          errand.fail(Postgres.lost("the courier has ended", false))
        end
      end

      def take(machine, errand)
        errand.given_up? ? errand.strand&.terminate : errand.begin(machine)
      end
    end
    private_constant :Courier
  end
end
