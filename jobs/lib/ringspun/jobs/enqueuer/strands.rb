# frozen_string_literal: true

module Ringspun
  module Jobs
    class Enqueuer
      # Group commit for the strands of one machine. The caller that opens a batch leads it. When all ready strands have run and
      # added their jobs, the leader starts a flight: a strand that sends the batch as it is when that strand runs. If no other
      # caller has come, the leader sends the batch itself, so that a cancellation cuts only its own job short.
      #
      # At most two flights are under way at once. The second starts only when more callers wait for it than for the first, or
      # when its batch is full. Else callers that push again and again would stay in two halves for ever, and the server would do
      # everything twice: where each call is an fsync, one flight for all of them stores twice as many jobs.
      #
      # A flight belongs to no caller: a shield keeps their cancellations from it. But one that has not begun may be cancelled
      # with the whole run. Its leader, which can be waiting still only in a shield, then sends the batch itself. When a leader
      # leaves, another caller leads.
      #
      # @api private
      class Strands
        # One that is under way, and one for those who have come meanwhile. With more there would be smaller batches.
        FLIGHTS_MAX = 2

        # A batch whose callers are strands. They wait here and not by Machine#park: what others schedule for a strand is for the
        # program that runs in it.
        class Shared < Batch
          # Until the batch is answered, or another caller leads it. May switch strands.
          def wait = (@changed ||= Condition.new).wait

          # Until the leader is called. May switch strands.
          def wait_for_call = (@called ||= Condition.new).wait

          def wake_all = @changed&.broadcast

          # Wherever it waits: it may be one that has just become the leader.
          def call_leader = @called&.signal || wake_all
        end
        private_constant :Shared

        def initialize(delivery)
          @delivery = delivery
          @open = nil
          @waiting = [] # batches that wait for a flight to end, or for more callers
          @flights = 0
          @served = 0 # callers whose jobs are in the flights
        end

        # May switch strands.
        #
        # @param machine [Machine] the caller's
        # @return [nil, String, Exception]
        def push(machine, push)
          strand = machine.running
          batch = @open || (@open = Shared.new(strand))
          place = batch.add(push, strand)
          @open = nil if batch.full?
          call_at_once(batch) if @flights == 1 && place.positive?
          wait(machine, batch, place, strand)
        end

        # May switch strands.
        #
        # @return [nil, Array, Exception]
        def push_all(machine, pushes)
          strand = machine.running
          batch = Shared.new(strand, pushes)
          batch.waiting << strand
          wait(machine, batch, nil, strand)
        end

        private

        def wait(machine, batch, place, strand)
          until batch.answered?
            batch.leader.equal?(strand) ? lead(machine, batch) : batch.wait
          end
          batch.answer_at(place)
        ensure
          leave(batch, place, strand) unless batch.answered?
        end

        def lead(machine, batch)
          if batch.flight
            join(batch)
          elsif @flights.zero? && !batch.settled?
            batch.settle
            machine.yield
          elsif @flights.zero? && batch.waiting.size == 1
            send_alone(batch)
          elsif @flights.zero? || (@flights < FLIGHTS_MAX && worth_it?(batch))
            batch.flight = machine.__send__(:spin_shared) { run_flight(batch) }
            @flights += 1
            @waiting.delete(batch) # if its leader is a new one, which nobody has called
            join(batch)
          else
            @waiting << batch unless @waiting.include?(batch)
            batch.wait_for_call
          end
        end

        def worth_it?(batch) = batch.full? || batch.waiting.size > @served

        # Once for each batch: then its leader has started a flight, or waits until one ends.
        def call_at_once(batch)
          return if batch.flight || !worth_it?(batch) || !@waiting.delete(batch)

          batch.call_leader
        end

        def join(batch)
          batch.flight.join
        rescue TerminatedError
          run_flight(batch) unless batch.taken?
        end

        def send_alone(batch)
          @flights += 1
          @open = nil if @open.equal?(batch)
          @waiting.delete(batch)
          pushes = batch.take
          @served += 1
          batch.answer(@delivery.deliver(pushes))
        ensure
          batch.answer(UnknownOutcomeError.new("the call of the storage was cut short")) unless batch.answered?
          end_flight(batch)
        end

        def run_flight(batch)
          return if batch.taken? # by a leader that has left

          @open = nil if @open.equal?(batch)
          send_batch(batch)
        ensure
          end_flight(batch) if batch.answered?
        end

        def send_batch(batch)
          pushes = batch.take
          @served += batch.waiting.size
          batch.answer(pushes.empty? ? nil : Ringspun.shield { @delivery.deliver(pushes) })
        ensure
          # A shield holds off cancellations, but not everything that can be raised.
          batch.answer(UnknownOutcomeError.new("the call of the storage was cut short")) unless batch.answered?
        end

        # The leader is not woken: it joins the flight.
        def end_flight(batch)
          @served -= batch.waiting.size
          batch.wake_all
          @flights -= 1
          call_next
        end

        def call_next = @waiting.shift&.call_leader

        def leave(batch, place, strand)
          batch.leave(place)
          return unless batch.leader.equal?(strand) && !batch.taken?

          batch.leader = batch.waiting.find(&:itself)
          batch.leader ? batch.call_leader : drop(batch)
        end

        # Nobody waits for the batch any more. Its flight may have been cancelled before it began, and then does not count itself
        # off. Its leader may have been called and not have run since, so the next one is called.
        def drop(batch)
          @open = nil if @open.equal?(batch)
          @waiting.delete(batch)
          batch.take
          @flights -= 1 if batch.flight
          call_next
        end
      end
      private_constant :Strands
    end
  end
end
