# frozen_string_literal: true

module Ringspun
  module Jobs
    # Takes a job from its arguments to the enqueuer: checks them, calls the middleware, and makes the entry.
    #
    # @api private
    class Client
      # The most jobs in one call of the storage.
      BULK = 1000
      # The bytes at which a call is full before that: other clients of the storage wait meanwhile.
      BULK_BYTES = 4 * 1024 * 1024

      # A push that is to wait for the commit, if a transaction is open that it cannot be part of.
      Later = Struct.new(:push) do
        def entry = push.entry
      end

      # Stores jobs whose transactions are committed. May switch strands.
      #
      # @param enqueuer [#push_all, nil] nil: the process's own
      # @param pushes [Array<Storage::Push>]
      # @return [Array<String, Exception, nil>] as {Enqueuer#push_all}, with what it has raised as the answer of each
      def self.store(enqueuer, pushes)
        answers = []
        in_batches(pushes) do |batch|
          enqueuer ||= Jobs.enqueuer
          answers.concat(enqueuer.push_all(batch, connection: Jobs.commits.open_transaction(enqueuer)))
        rescue StandardError => error
          answers.concat(Array.new(batch.size, error))
        end
        answers
      end

      # @param jobs [Enumerable<Object>]
      # @param batch [Array] which has what the block gets, also when an error is raised
      # @param make [#call] makes a push of a job
      def self.in_batches(jobs, batch = [], make = :itself.to_proc)
        bytes = 0
        jobs.each_entry do |job|
          push = make.call(job)
          batch << push
          bytes += push.entry.bytesize if push
          next if batch.size < BULK && bytes < BULK_BYTES

          yield batch
          batch.clear
          bytes = 0
        end
        yield batch unless batch.empty?
      end

      # @param enqueuer [#push, #push_all]
      # @param chain [Chain]
      # @param milliseconds [Boolean] see {Config#milliseconds}
      # @param after_commit [Boolean] see {Config#after_commit}
      def initialize(enqueuer, chain:, milliseconds:, after_commit: false)
        @enqueuer = enqueuer
        @unserved = Unserved.of(enqueuer)
        @chain = chain
        @milliseconds = milliseconds
        @after_commit = after_commit
      end

      # @param template [Template]
      # @param arguments [Array]
      # @param connection [Object, nil] see {Enqueuer#push}
      # @param checked [Boolean] whether the arguments have passed {Arguments.check}
      # @return [String, nil] the jid
      def push(template, arguments, at = nil, delay = nil, connection = nil, checked: false)
        push = new_push(template, arguments, at, delay, checked)
        return unless push

        later = (template.after_commit || @after_commit) && !connection && waits?(template)
        connection ||= only_transaction if later
        return push.jid if later && !connection && defer([push])

        connection ||= open_transaction
        jid = connection ? @enqueuer.push(push, connection: connection) : @enqueuer.push(push)
        @unserved.see(push.queue, connection)
        jid
      end

      # @param jobs [Enumerable<Object>]
      # @param connection (see #push)
      # @yieldparam job [Object] one of them
      # @yieldreturn [Storage::Push, nil] as {#made} makes it
      # @return [Array<String, nil>] their jids
      # @raise [BulkError]
      def push_all(jobs, connection = nil, &make)
        answers = []
        batch = []
        Client.in_batches(jobs, batch, make) { answers.concat(stored(batch, connection)) }
        failed = answers.find { |answer| answer.is_a?(Exception) }
        failed ? raise(BulkError.new(answers), cause: failed) : answers
      rescue Error => error
        raise if error.is_a?(BulkError) || answers.none?

        # An invalid job keeps those before it in its batch from being stored.
        batch << nil if error.is_a?(InvalidJobError)
        raise BulkError.new(answers + Array.new(batch.size, error))
      end

      # @param checked (see #push)
      # @return [Storage::Push, Later, nil] nil when a middleware has stopped it
      def made(template, arguments, at, delay, checked: false)
        push = new_push(template, arguments, at, delay, checked)
        return push unless template.after_commit || @after_commit

        push && waits?(template) ? Later.new(push) : push
      end

      # @param enqueuer [#push, #push_all, nil] nil: this one's
      # @param chain [Chain, nil] nil: this one's
      # @return [Client] with others than this one's
      def with(enqueuer, chain)
        self.class.new(enqueuer || @enqueuer, chain: chain || @chain, milliseconds: @milliseconds, after_commit: @after_commit)
      end

      private

      def waits?(template)
        wanted = template.after_commit
        wanted.nil? ? @after_commit : wanted
      end

      # @return [Object, nil] a connection of the caller's with an open transaction on the database where jobs are kept. Without
      #   it the caller would wait for the end of that transaction, and so for himself.
      def open_transaction = Jobs.commits&.open_transaction(@enqueuer)

      # @return (see #open_transaction)
      def only_transaction = Jobs.commits&.only_transaction(@enqueuer)

      # @return [Boolean] false: no transaction is open
      def defer(pushes)
        commits = Jobs.commits or
          raise ConfigError, 'after_commit is for programs with Active Record; require "ringspun/jobs/active_record"'
        commits.after(pushes, (@enqueuer unless Jobs.own?(@enqueuer)))
      end

      # A job that middleware has stopped has no push, and nil as its answer. A connection that is given is that of a transaction,
      # which includes the job.
      def stored(pushes, connection)
        return store_seen(pushes, connection) if pushes.all?(Storage::Push)

        connection ||= only_transaction
        waiting = connection ? [] : pushes.grep(Later).map(&:push)
        deferred = waiting.any? && defer(waiting)
        sent = pushes.filter_map { |push| push.is_a?(Later) ? (push.push unless deferred) : push }
        answers = sent.empty? ? [] : answers_of(sent, connection, deferred)
        return answers if sent.size == pushes.size

        pushes.map { |push| push.is_a?(Later) && deferred ? push.push.jid : push && answers.shift }
      end

      # An error is that of these jobs alone when others of the batch wait already.
      def answers_of(pushes, connection, deferred)
        store_seen(pushes, connection)
      rescue Error => error
        raise unless deferred

        Array.new(pushes.size, error)
      end

      def store_seen(pushes, connection)
        connection ||= open_transaction
        answers = @enqueuer.push_all(pushes, connection: connection)
        seen = nil # most often all have the same queue
        pushes.each { |push| @unserved.see(seen = push.queue, connection) unless push.queue.equal?(seen) }
        answers
      end

      def new_push(template, arguments, at, delay, checked)
        Arguments.check(arguments) unless checked
        return template.push(arguments, @milliseconds, at, delay) if @chain.empty?

        through_middleware(template, arguments, at, delay)
      end

      def through_middleware(template, arguments, at, delay)
        job = template.job(arguments, @milliseconds, at)
        job = template.enqueued(job, @milliseconds) unless delay || at || job["at"]
        reached = false
        answer = @chain.invoke(template.job_class, job, template.queue) { (reached = true) && job }
        return unless reached && template.passes?(answer)

        check(job)
        template.push_of(job, @milliseconds, at, delay)
      end

      def check(job)
        Arguments.check(job["args"])
        Wire.__send__(:check, job)
        Options.queue("a middleware's queue", job["queue"])
        Options.unique_for("a middleware's unique_for", job["unique_for"])
        Options.priority("a middleware's #{Wire::PRIORITY}", job.fetch(Wire::PRIORITY, 0))
      rescue MalformedEntryError => error
        raise InvalidJobError, "a middleware has made the job invalid: #{error.message}"
      end
    end
    private_constant :Client
  end
end
