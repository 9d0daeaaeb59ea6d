# frozen_string_literal: true

module Ringspun
  module Jobs
    class Enqueuer
      # Group commit for callers that are not in the strands of a run: one thread sends their batches, one after the other. So a
      # caller that is interrupted interrupts nobody else's job. While a batch is under way, others add their jobs to the next
      # one.
      #
      # The thread starts when there is something to send. It may be killed at any time, and all callers are answered
      # nevertheless: an interrupt takes effect only where the thread waits or sends. See
      # https://docs.ruby-lang.org/en/master/Thread.html#method-c-handle_interrupt
      #
      # @api private
      class Threads
        # Seconds that {#close} waits for batches under way, whose calls all have time limits of their own.
        CLOSE_GRACE = 30

        LATER = { Object => :never }.freeze
        WHILE_IT_WAITS = { Object => :on_blocking }.freeze
        AT_ONCE = { Object => :immediate }.freeze
        # What the thread finds behind the last parcel.
        END_OF_WORK = :end
        private_constant :LATER, :WHILE_IT_WAITS, :AT_ONCE, :END_OF_WORK

        # A batch with a gate, for whose end its callers wait.
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

        # Waits for the jobs that were pushed before. May switch strands.
        def close
          thread = @lock.synchronize do
            @parcels << END_OF_WORK if @thread
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
          thread = Thread.handle_interrupt(LATER) { Thread.new { work } } # a thread inherits the mask of its maker
          thread.name = "ringspun enqueuer"
          thread.report_on_exception = false # its callers get the error
          thread
        end

        def work
          until (parcel = next_parcel) == END_OF_WORK
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

        # Answers what is left when the thread is killed.
        def give_up
          @thread = @open = nil
          until @parcels.empty?
            parcel = @parcels.pop
            parcel.answer(killed(parcel)) unless parcel == END_OF_WORK
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
