# frozen_string_literal: true

module Ringspun
  module Jobs
    class Enqueuer
      # Group commit for all that are not in the strands of a run: one thread sends their batches, one after the other. So a
      # caller that is interrupted interrupts nobody else's job. While a batch is under way others put their jobs in the next.
      #
      # The thread starts when there is something to send. It may be killed at any time, and whoever waits is answered all the
      # same: but for where it waits or sends, what interrupts it comes later.
      #
      # @api private
      class Threads
        # Seconds that {#close} waits for what is under way, whose calls all have time limits of their own.
        CLOSE_GRACE = 30

        LATER = { Object => :never }.freeze
        WHILE_IT_WAITS = { Object => :on_blocking }.freeze
        AT_ONCE = { Object => :immediate }.freeze
        private_constant :LATER, :WHILE_IT_WAITS, :AT_ONCE

        # Whoever waits for the batch waits for its gate to close.
        class Parcel < Batch
          # @return [Thread::Queue]
          attr_reader :gate

          def initialize(pushes = [])
            super(nil, pushes)
            @gate = Thread::Queue.new
          end

          def answer(answers)
            super
            @gate.close
          end
        end
        private_constant :Parcel

        def initialize(delivery)
          @delivery = delivery
          @lock = Thread::Mutex.new
          @parcels = Thread::Queue.new
          @open = @thread = nil
        end

        # May switch strands.
        #
        # @return [nil, String, Exception]
        def push(push)
          place = parcel = nil
          @lock.synchronize do
            parcel = @open || (@open = begin_with(Parcel.new))
            place = parcel.add(push, nil)
            @open = nil if parcel.full?
          end
          wait(parcel, place)
        end

        # May switch strands.
        #
        # @return [nil, Array, Exception]
        def push_all(pushes)
          wait(@lock.synchronize { begin_with(Parcel.new(pushes)) }, nil)
        end

        # Waits for what was put in. May switch strands.
        def close
          thread = @lock.synchronize do
            @parcels << nil if @thread
            @thread
          end
          thread&.join(CLOSE_GRACE)
        end

        private

        def begin_with(parcel)
          @thread ||= start
          @parcels << parcel
          parcel
        end

        def wait(parcel, place)
          parcel.gate.pop until parcel.answered?
          parcel.answer_at(place)
        ensure
          @lock.synchronize { parcel.leave(place) } unless parcel.answered?
        end

        def start
          thread = Thread.handle_interrupt(LATER) { Thread.new { work } } # which begins as it was made
          thread.name = "ringspun enqueuer"
          thread.report_on_exception = false # its callers are told
          thread
        end

        def work
          while (parcel = next_parcel)
            send_parcel(parcel)
          end
        ensure
          @lock.synchronize { give_up }
        end

        def next_parcel = Thread.handle_interrupt(WHILE_IT_WAITS) { @parcels.pop }

        def send_parcel(parcel)
          answered = false
          answers = nil
          Thread.handle_interrupt(AT_ONCE) do
            pushes = take(parcel)
            answers = @delivery.deliver(pushes) unless pushes.empty?
            answered = true
          end
        ensure
          answers = killed(parcel) unless answered
          @lock.synchronize { parcel.answer(answers) }
        end

        def killed(parcel)
          return UnavailableError.new("the thread that enqueues was killed; nothing was sent") unless parcel.taken?

          UnknownOutcomeError.new("the thread that enqueues was killed before it had an answer")
        end

        # For what is still there when the thread is killed.
        def give_up
          @thread = @open = nil
          until @parcels.empty?
            parcel = @parcels.pop
            parcel&.answer(killed(parcel))
          end
        end

        def take(parcel)
          @lock.synchronize do
            @open = nil if @open.equal?(parcel)
            parcel.take
          end
        end
      end
      private_constant :Threads
    end
  end
end
