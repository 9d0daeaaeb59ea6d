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
          batch = @open || (@open = Batch.new(strand))
          place = batch.add(push, strand)
          @open = nil if batch.full?
          call_leader(machine, batch) if @flights == 1 && place.positive?
          wait(machine, batch, place, strand)
        end

        # May switch strands.
        #
        # @return [nil, Array, Exception]
        def push_all(machine, pushes)
          strand = machine.running
          batch = Batch.new(strand, pushes)
          batch.waiting << strand
          wait(machine, batch, nil, strand)
        end

        private

        def wait(machine, batch, place, strand)
          until batch.answered?
            batch.leader.equal?(strand) ? lead(machine, batch) : machine.park
          end
          batch.answer_at(place)
        ensure
          leave(machine, batch, place, strand) unless batch.answered?
        end

        def lead(machine, batch)
          if batch.flight
            join(machine, batch)
          elsif @flights.zero? && !batch.settled?
            batch.settle
            machine.yield
          elsif @flights.zero? && batch.waiting.size == 1
            send_alone(machine, batch)
          elsif @flights.zero? || (@flights < FLIGHTS_MAX && worth_it?(batch))
            batch.flight = machine.__send__(:spin_shared) { run_flight(machine, batch) }
            @flights += 1
            @waiting.delete(batch) # if its leader is a new one, which nobody has called
            join(machine, batch)
          else
            @waiting << batch unless @waiting.include?(batch)
            machine.park
          end
        end

        def worth_it?(batch) = batch.full? || batch.waiting.size > @served

        # Once for each batch: then its leader has started a flight, or waits until one ends.
        def call_leader(machine, batch)
          return if batch.flight || !worth_it?(batch) || !@waiting.delete(batch)

          machine.schedule(batch.leader)
        end

        def join(machine, batch)
          batch.flight.join
        rescue TerminatedError
          run_flight(machine, batch) unless batch.taken?
        end

        def send_alone(machine, batch)
          @flights += 1
          @open = nil if @open.equal?(batch)
          @waiting.delete(batch)
          pushes = batch.take
          @served += 1
          batch.answer(@delivery.deliver(pushes))
        ensure
          batch.answer(UnknownOutcomeError.new("the call of the storage was cut short")) unless batch.answered?
          end_flight(machine, batch)
        end

        def run_flight(machine, batch)
          return if batch.taken? # by a leader that has left

          @open = nil if @open.equal?(batch)
          send_batch(batch)
        ensure
          end_flight(machine, batch) if batch.answered?
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
        def end_flight(machine, batch)
          @served -= batch.waiting.size
          batch.waiting.each { |strand| machine.schedule(strand) unless strand.nil? || strand.equal?(batch.leader) }
          @flights -= 1
          call_next(machine)
        end

        def call_next(machine)
          machine.schedule(@waiting.shift.leader) unless @waiting.empty?
        end

        def leave(machine, batch, place, strand)
          batch.leave(place)
          return unless batch.leader.equal?(strand) && !batch.taken?

          batch.leader = batch.waiting.find(&:itself)
          batch.leader ? machine.schedule(batch.leader) : drop(machine, batch)
        end

        # Nobody waits for the batch any more. Its flight may have been cancelled before it began, and then does not count itself
        # off. Its leader may have been called and not have run since, so the next one is called.
        def drop(machine, batch)
          @open = nil if @open.equal?(batch)
          @waiting.delete(batch)
          batch.take
          @flights -= 1 if batch.flight
          call_next(machine)
        end
      end
      private_constant :Strands
    end
  end
end
