# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      # Tells the storage what runs have come to, as many at a time as there are when it gets its turn. What it cannot tell it
      # goes on telling for as long as the worker lives: until then the run keeps its place.
      #
      # @api private
      class Acker
        BATCH_MAX = 500
        # A server takes a gigabyte at most, and does nothing else meanwhile.
        BYTES_MAX = 4 * 1024 * 1024

        # @param scope [Scope] which owns the strands that this starts
        # @yieldparam run [Run]
        # @yieldparam taken_away [Boolean] it was not in flight here any more
        def initialize(scope, storage, node, backoff, &settled)
          @scope = scope
          @storage = storage
          @node = node
          @backoff = backoff
          @settled = settled
          @pending = []
          @changed = Condition.new
          @closed = false
          @apart = 0
        end

        # Never waits.
        def push(run)
          @pending << run
          @changed.signal
        end

        # Until it is closed and all is told. May switch strands.
        def work
          until @closed && @pending.empty? && @apart.zero?
            next @changed.wait if @pending.empty?

            tell(take)
          end
        end

        # Once, whether it is heard or not: the worker ends. May switch strands.
        #
        # @param runs [Array<Run>] that have ended and are not settled
        def tell_once(runs)
          in_turn(runs).each do |verb, some|
            answers = @storage.public_send(verb, @node, some.map { |run| run.outcome.change }) if some.any?
            some.zip(answers) { |run, answer| @settled.call(run, !answer) } if answers
          end
        end

        # The same on any thread, and nobody hears what has come of it.
        def tell_elsewhere(runs, connection)
          in_turn(runs).each do |verb, some|
            @storage.public_send(verb, @node, some.map { |run| run.outcome.change }, connection: connection) if some.any?
          end
        end

        def close
          @closed = true
          @changed.broadcast
        end

        # @return [Integer] what waits to be told
        def size = @pending.size

        private

        # As many as go in one call, and at least one.
        def take
          runs = @pending.shift(BATCH_MAX)
          bytes = 0
          fit = runs.index { |run| (bytes += run.fetched.entry.bytesize) > BYTES_MAX }
          @pending.unshift(*runs.slice!([fit, 1].max..)) if fit
          runs
        end

        def tell(runs)
          in_turn(runs).each { |verb, some| send_off(verb, some) }
        end

        # Those that go back in front of their queues go last in, first out.
        def in_turn(runs)
          acks, failures = runs.partition { |run| run.outcome.change.is_a?(Storage::Ack) }
          { ack: acks, fail: failures.sort_by { |run| -run.number } }
        end

        def send_off(verb, runs)
          return if runs.empty?

          lost = false
          answers = @backoff.persist(verb) do |error|
            lost ||= error.is_a?(UnknownOutcomeError)
            next if error.is_a?(StorageError) && runs.size > 1

            @storage.public_send(verb, @node, runs.map { |run| run.outcome.change })
          end
          return runs.each { |run| send_apart(verb, run) } unless answers

          # After an answer that was lost, it may be the first try that has taken it.
          runs.zip(answers) { |run, answer| @settled.call(run, !answer && !lost) }
        end

        # One that is refused for good, as one that is too large is, must not hold up the others.
        def send_apart(verb, run)
          @apart += 1
          @scope.spin do
            send_off(verb, [run])
          ensure
            @apart -= 1
            @changed.signal
          end
        end
      end
      private_constant :Acker
    end
  end
end
