# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      # Sends the outcomes of runs to the storage, in batches of all that have ended meanwhile. It tries again for as long as the
      # worker lives, and until the storage has an outcome its run keeps its place.
      #
      # @api private
      class Acker
        # Outcomes that go in one call of the storage.
        BATCH_MAX = 500
        # Other clients of the storage wait meanwhile, and it may refuse a call that is too large.
        BYTES_MAX = 4 * 1024 * 1024

        # @param scope [Scope] which owns the strands that this starts
        # @yieldparam run [Run]
        # @yieldparam taken_away [Boolean] whether it was not in flight here any more
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

        # Returns when it is closed and the storage has all outcomes. May switch strands.
        def work
          until @closed && @pending.empty? && @apart.zero?
            next @changed.wait if @pending.empty?

            send_batch(take)
          end
        end

        # Tries once, for the worker ends. May switch strands.
        #
        # @param runs [Array<Run>] that have ended and are not settled
        def send_once(runs)
          unsent = @pending.to_set # of others an answer may have been lost
          in_turn(runs).each do |verb, some|
            answers = @storage.public_send(verb, @node, some.map { |run| run.outcome.noted }) if some.any?
            some.zip(answers) { |run, answer| @settled.call(run, !answer && unsent.include?(run)) } if answers
          end
        end

        # The same on any thread; the answers are ignored.
        def send_elsewhere(runs, connection)
          in_turn(runs).each do |verb, some|
            @storage.public_send(verb, @node, some.map { |run| run.outcome.noted }, connection: connection) if some.any?
          end
        end

        def close
          @closed = true
          @changed.broadcast
        end

        # @return [Integer] how many runs wait to be sent
        def size = @pending.size

        private

        # As many as go in one call, and at least one.
        def take
          runs = @pending.shift(BATCH_MAX)
          bytes = 0
          fit = runs.index { |run| (bytes += bytes_of(run)) > BYTES_MAX }
          @pending.unshift(*runs.slice!([fit, 1].max..)) if fit
          runs
        end

        def bytes_of(run)
          change = run.outcome.change
          return run.fetched.entry.bytesize unless change.is_a?(Storage::Ack)

          followers = change.pushes ? change.pushes.sum { |push| push.entry.bytesize } : 0
          run.fetched.entry.bytesize + followers + (change.result ? change.result.bytesize : 0)
        end

        def send_batch(runs)
          in_turn(runs).each { |verb, some| send_off(verb, some) }
        end

        # The youngest go back in front of their queues first, so that the oldest come out first.
        def in_turn(runs)
          acks, failures = runs.partition { |run| run.outcome.change.is_a?(Storage::Ack) }
          { ack: acks, fail: failures.sort_by { |run| -run.number } }
        end

        # @param lost [Boolean] whether an earlier try may have done it without an answer
        def send_off(verb, runs, lost: false)
          return if runs.empty?

          answers = @backoff.persist(verb) do |error|
            lost ||= error.is_a?(UnknownOutcomeError)
            next if error.is_a?(StorageError) && runs.size > 1

            @storage.public_send(verb, @node, runs.map { |run| run.outcome.noted })
          end
          return runs.each { |run| send_apart(verb, run) } unless answers

          # If an answer was lost, an earlier try may have taken the job out of what is in flight, and nobody else has it.
          runs.zip(answers) { |run, answer| @settled.call(run, !answer && !lost) }
        end

        # A run that is refused for good, such as one that is too large, must not hold up the others. Those have been done,
        # without an answer.
        def send_apart(verb, run)
          @apart += 1
          @scope.spin do
            send_off(verb, [run], lost: true)
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
