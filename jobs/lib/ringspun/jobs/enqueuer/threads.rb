# frozen_string_literal: true

module Ringspun
  module Jobs
    class Enqueuer
      # Group commit for all that are not in the strands of a run: one thread sends their batches, one after the other. So a
      # caller that is interrupted interrupts nobody else's job. While a batch is under way others put their jobs in the next.
      #
      # A caller who finds that nothing is under way, and that the last batch had no more than one job, sends its own job itself:
      # to wake a thread and to be woken takes longer.
      #
      # The thread starts when there is something for it to send.
      #
      # @api private
      class Threads
        # Seconds that {#close} waits for what is under way, whose calls all have time limits of their own.
        CLOSE_GRACE = 30

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
          @under_way = 0 # parcels
          @crowd = false # the last one was of several callers
          @alone = false # somebody sends its own job
          @no_longer_alone = Thread::ConditionVariable.new
          @open = @thread = nil
        end

        # May switch strands.
        #
        # @return [nil, String, Exception]
        def push(push)
          place = parcel = alone = nil
          @lock.synchronize do
            next alone = @alone = true if @under_way.zero? && !@alone && !@crowd

            parcel = @open || (@open = begin_with(Parcel.new))
            place = parcel.add(push, nil)
            @open = nil if parcel.full?
          end
          alone ? send_alone(push) : wait(parcel, place)
        ensure
          end_alone if alone
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
            @no_longer_alone.wait(@lock, CLOSE_GRACE) if @alone
            @parcels << nil if @thread
            @thread
          end
          thread&.join(CLOSE_GRACE)
        end

        private

        def send_alone(push)
          answers = @delivery.deliver([push])
          answers.is_a?(Array) ? answers.first : answers
        end

        def end_alone
          @lock.synchronize do
            @alone = false
            @no_longer_alone.broadcast
          end
        end

        def begin_with(parcel)
          @thread ||= start
          @under_way += 1
          @parcels << parcel
          parcel
        end

        def wait(parcel, place)
          parcel.gate.pop until parcel.answered?
          parcel.answer_at(place)
        rescue Exception
          @lock.synchronize { parcel.leave(place) }
          raise
        end

        def start
          Thread.new { work }.tap do |thread|
            thread.name = "ringspun enqueuer"
            thread.report_on_exception = false # its callers are told
          end
        end

        def work
          while (parcel = @parcels.pop)
            send_parcel(parcel)
          end
        ensure
          @lock.synchronize { give_up }
        end

        def send_parcel(parcel)
          pushes = take(parcel)
          answers = pushes.empty? ? nil : @delivery.deliver(pushes)
          answered = true
        ensure
          answers = UnknownOutcomeError.new("the thread that enqueues was killed before it had an answer") unless answered
          @lock.synchronize do
            @under_way -= 1
            parcel.answer(answers)
          end
        end

        # For what is still there when the thread is killed.
        def give_up
          @thread = @open = nil
          @under_way = 0
          error = UnavailableError.new("the thread that enqueues was killed; nothing was sent")
          @parcels.pop&.answer(error) until @parcels.empty?
        end

        def take(parcel)
          @lock.synchronize do
            @open = nil if @open.equal?(parcel)
            @crowd = parcel.waiting.size > 1
            parcel.take
          end
        end
      end
      private_constant :Threads
    end
  end
end
