# frozen_string_literal: true

module Ringspun
  module Postgres
    # Serves all callers that are in no strand: plain threads, and the fibers of other schedulers. It has one thread with a
    # machine, in which each call is a strand, but for statements that a lane takes at once. The caller waits at a
    # Thread::Queue. The thread starts with the first call.
    #
    # A plain thread asks the courier's connections by itself where it can, and leaves to the courier what is the machine's:
    # docs/decisions/27-threads-that-read-for-each-other.md.
    #
    # @api private
    class Courier
      # A connection of the courier's machine, for one user in another thread.
      class Lane
        STATE = %i[lost? loss orphaned? status pending unreadable_setting].freeze
        # What a user still asks that leaves: its own error is the news, and not that the courier has ended as well.
        AFTER = [*STATE, :close, :orphaned].freeze
        # Of methods that take seconds: which argument those are.
        SECONDS = { query: 2, batch: 2, script: 1, begin_stream: 3, next_rows: 0, ping: 0, describe: 1, begin_copy_in: 1,
                    begin_copy_out: 1, put_copied: 1, next_copied: 0, finish_copy_in: 0 }.freeze
        # Of these, those that go on with what was sent: the lane knows what an end of the time means for that.
        GOING_ON = %i[next_rows next_copied put_copied finish_copy_in].freeze
        private_constant :STATE, :AFTER, :SECONDS, :GOING_ON

        # @return [Postgres::Lane]
        attr_reader :lane

        # In the courier's thread.
        def initialize(courier, lane)
          @courier = courier
          @lane = lane
          lane.bell = courier.bell unless lane.session.encrypted
          @asking = [] # strands, of which the first is at it
          @answered = Condition.new
        end

        %i[batch script begin_stream next_rows end_stream ping close lost? loss orphaned? status pending orphaned
           unreadable_setting describe begin_copy_in begin_copy_out put_copied next_copied finish_copy_in].each do |name|
          define_method(name) { |*arguments| ask(name, *arguments) }
        end

        # In its user's thread, which asks by itself, unless something of its own is still under way in the courier's.
        #
        # @return (see Postgres::Lane#query)
        def query(sql, params, seconds, prepared, forced)
          due = Courier.due(seconds)
          taken = @courier.here? && !Fiber.current_scheduler && @asking.empty? ? @lane.ask(sql, params, seconds, prepared) : :busy
          %i[busy untyped again].include?(taken) ? ask(:query, sql, params, due && (due - Postgres.now), prepared, forced) : taken
        end

        # (see Postgres::Lane#open_transaction)
        # A thread has that answered first.
        #
        # @return [Result, Symbol]
        def open_transaction(sql, seconds) = query(sql, [], seconds, false, true)

        # In its user's thread: it is no more than a mark.
        def observers=(observers)
          @lane.observers = observers
        end

        # (see #observed=)
        def forget_opening = @lane.forget_opening

        def types = @lane.types

        # (see #observers=)
        def enclosed=(enclosed)
          @lane.enclosed = enclosed
        end

        # Any thread may ask it.
        def here? = true

        # In the courier's thread. Nothing is asked any more.
        #
        # @return [Postgres::Lane]
        def let_go
          @asking.each(&:terminate)
          @answered.wait until @asking.empty?
          @lane
        end

        private

        # In a forked child the connection is the parent's, and who would ask does not exist; it need not. Nor need it where it
        # has ended, with the connection.
        def ask(name, *arguments)
          @courier.here? ? ask_courier(name, arguments) : @lane.__send__(name, *arguments)
        rescue ConnectionLost
          raise unless AFTER.include?(name)

          @lane.__send__(name, *arguments) if STATE.include?(name)
        end

        def ask_courier(name, arguments)
          place = SECONDS[name]
          due = Courier.due(arguments[place]) if place
          @courier.call do
            next @lane.close(*arguments) if name == :close # those that it ends need not come first

            in_turn do
              arguments[place] = GOING_ON.include?(name) ? [due - Postgres.now, 0].max : Courier.left(due) if due
              @lane.__send__(name, *arguments)
            end
          end
        end

        # Where the user was interrupted in one, and asks another, the first must have ended, or it would be waited for.
        def in_turn
          @asking << (strand = Machine.current.running)
          @answered.wait until @asking.first.equal?(strand)
          yield
        ensure
          @asking.delete(strand)
          @answered.broadcast
        end
      end
      private_constant :Lane

      # Seconds for its thread to end: what gives connections back has five, and what cancels statements one.
      CLOSE = 10
      private_constant :CLOSE

      # @param pool [Pool]
      def initialize(pool)
        @pool = pool
        @errands = Thread::Queue.new
        @bell = Bell.new
        @waited_for = {}.compare_by_identity # errands, until their callers go on
        @attending = {}.compare_by_identity # lanes => strands
        @pid = Process.pid
        @thread = Thread.handle_interrupt(NEVER) { Thread.new { live } } # it has its maker's mask
        @thread.name = "ringspun-postgres"
      end

      # @return [Bell] by which threads that ask by themselves leave something to it
      attr_reader :bell

      # @return [Boolean] false: something has killed its thread
      def alive? = @thread.alive?

      # (see Lanes#query)
      def query(sql, params, timeout, prepared, idempotent)
        due = Courier.due(timeout)
        lane = @lanes&.for_thread unless Fiber.current_scheduler
        answer = lane ? ask_here(lane, sql, params, timeout, prepared, idempotent) : :none
        return answer unless answer.is_a?(Symbol)

        send_out(Question.new(self, sql, params, due, prepared, idempotent && answer != :once))
      end

      # (see Lanes#batch)
      def batch(sqls, params, timeout)
        due = Courier.due(timeout)
        call { lanes.batch(sqls, params, Courier.left(due)) }
      end

      # As {Connections#use}.
      def use(timeout, reset:, &)
        connections = @pool.connections
        holder = Holder.new
        due = Courier.due(timeout)
        release = ->(lane) { connections.release(lane.let_go, reset) }
        take = -> { call(undo: release) { Lane.new(self, connections.acquire(timeout, holder, Courier.left(due))) } }
        Postgres.with_taken(take, ->(lane) { give_back(lane, &release) if here? }, &)
      ensure
        holder&.leave
      end

      # @return [Boolean] false: it was left behind by a fork
      def here? = Process.pid == @pid

      # Runs the block in a strand of the courier's.
      #
      # @param undo [Proc, nil] gets the block's value when the caller was interrupted before it had that
      # @param kept [Boolean] the block runs to its end, also when the caller is interrupted
      def call(undo: nil, kept: false, &) = send_out(Errand.new(undo, &), kept:)

      # Its thread ends by itself, also where that takes longer.
      def close
        @errands.close
        @thread.join(CLOSE)
      end

      # In the courier's thread.
      #
      # @return [Lanes]
      def lanes = @lanes ||= Lanes.new(@pool, Machine.current, @bell)

      # In the courier's thread. One strand takes the answers of all that lie with a lane.
      def attend(lane)
        @attending[lane] ||= Machine.current.spin { take_answers(lane) }
      end

      private

      # In a plain thread, which sends and reads itself.
      #
      # @return [Result, Symbol] the Symbol says why the courier is to be asked; :once: and for the last time
      def ask_here(lane, sql, params, timeout, prepared, idempotent)
        answer = lane.ask(sql, params, timeout, prepared)
        answer == :unsafe ? raise(call { lanes.answered(lane, answer) }) : answer
      rescue ConnectionLost
        raise unless idempotent

        :once
      end

      def send_out(errand, kept: false)
        @waited_for[errand] = true
        @errands << errand
        errand.wait { |late| take_back(errand, late) unless kept }
      rescue ClosedQueueError
        raise Postgres.lost("the courier has ended", false)
      ensure
        @waited_for.delete(errand)
      end

      def take_back(errand, late)
        errand.give_up unless late
        @errands << errand
      rescue ClosedQueueError
        nil # all that it was at has ended
      end

      def give_back(lane)
        call(kept: true) { yield lane }
      rescue ConnectionLost
        @pool.connections.write_off(lane.lane)
      end

      def take_answers(lane)
        machine = Machine.current
        nil while lane.attend { |question, answer| question.answer(machine, lanes.answered(lane, answer)) }
      ensure
        @attending.delete(lane)
      end

      # It may be killed at any point: also before it serves, or when it has an errand in its hands that is not begun. Its callers
      # wait without a limit, so all of them are answered here; the first answer counts.
      def live
        Thread.handle_interrupt(Object => :immediate) { serve }
      ensure
        @errands.close
        while (errand = @errands.pop)
          errand.fail(Postgres.lost("the courier has ended", false))
        end
        @waited_for.keys.each { |one| one.fail(Postgres.lost("the courier has ended", true)) }
      end

      # While it waits its callers want the processor.
      def serve
        Ringspun.run(busy_poll: false, on_error: ->(*) {}) do |machine|
          rousing = machine.spin { rouse(machine) }
          while (errand = @errands.pop)
            take(machine, errand)
          end
        ensure
          rousing&.terminate
          @lanes&.close
          @pool.connections.close_own
        end
      end

      # Does what threads that ask by themselves have left to do.
      def rouse(machine)
        loop { @bell.wait.each { |lane| machine.spin { lanes.rouse(lane) } } }
      end

      def take(machine, errand)
        errand.back? ? errand.take_back(machine) : errand.begin(machine)
      end
    end
    private_constant :Courier
  end
end
