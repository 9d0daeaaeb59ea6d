# frozen_string_literal: true

module Ringspun
  module Jobs
    # What makes a class a job: it can be enqueued, and workers run its method `perform`.
    #
    #   class Mail
    #     include Ringspun::Jobs::Job
    #     job_options queue: "mail", retry: 5
    #
    #     def perform(address, text) = deliver(address, text)
    #   end
    #   Mail.perform_async("a@example.org", "Hello")
    #
    # A worker makes an instance for each run.
    module Job
      # @api private
      def self.included(job_class)
        super
        job_class.extend(ClassMethods)
      end

      # The classes of jobs that have other names on the wire than their own, by these names.
      #
      # @return [Hash{String => Class}]
      # @api private
      def self.wrappers = @wrappers ||= {}

      # Sets the options of a class of jobs, which subclasses inherit, and enqueues its jobs.
      module ClassMethods
        # Sets the options of all jobs of the class; {#set} changes them for single jobs.
        #
        # @option values [String, Symbol] :queue the default is "default"
        # @option values [Boolean, Integer] :retry whether a job that fails is tried again, or how often; the default is true:
        #   {Config#retries} times
        # @option values [String, Symbol] :retry_queue the queue for its further tries; the default is the same queue
        # @option values [Numeric] :retry_for seconds after its first failure for which it is tried again, however often
        # @option values [Boolean] :dead whether a job that is not tried again is kept among the dead; the default is true
        # @option values [Boolean, Integer] :backtrace whether a job that has failed keeps the error's backtrace, or how many
        #   lines of it
        # @option values [Numeric, nil] :unique_for seconds for which no second job with the same arguments may be in the same
        #   queue
        # @option values [Symbol, String] :unique_until what ends that earlier: :success, the default, :start, or only :expiry
        # @option values [Boolean] :after_commit whether a job waits for the commit of the transactions of Active Record that are
        #   open when it is enqueued; it gets its jid at once. When one is rolled back, the job does not exist. Where the only
        #   one is on the database in which jobs are kept, the job is part of it. The default is {Config#after_commit}
        # @option values [Array<String>] :tags what dashboards show beside the job
        # @option values [Integer] :priority from -100 to 100: of the jobs of a queue those with the smallest one run first; the
        #   default is 0
        # @option values [Integer] :deaths how often a job may end its process while it is isolated in it, until it is dead; 0: it
        #   does not run again when its process has ended, which is so without this option where `retry` is false or 0
        # @option values [Numeric] :keep_result seconds for which {Jobs.result} has what `perform` has returned, as it comes out
        #   of JSON
        # @return [Hash{Symbol => Object}] {#options}
        # @raise [InvalidJobError] which names what is wrong
        # @since 0.1.0
        def job_options(**values)
          @own_options = own_options.merge(Options.check(values)).freeze
          forget_options
          options
        end

        # @return [Hash{Symbol => Object}] the options of this class, those that it inherits included
        # @since 0.1.0
        def options
          @options ||= (superclass.respond_to?(:job_options) ? superclass.options : Options::DEFAULTS).merge(own_options).freeze
        end

        # Sets how long a job that has failed waits until it is tried again.
        #
        # @yieldparam count [Integer] how many times it had failed before
        # @yieldparam error [Exception]
        # @yieldparam job [Hash] with String keys
        # @yieldreturn [Numeric, Symbol, nil] seconds; :dead, and it is not tried again; :discard, and it is forgotten; nil: the
        #   default
        # @return [Proc, nil] without a block: the one that was set here, or is inherited
        # @since 0.1.0
        def retry_in(&block)
          @retry_in = block if block
          @retry_in || (superclass.retry_in if superclass.respond_to?(:retry_in))
        end

        # Sets a block that is called when a job has failed and is not tried again any more.
        #
        # @yieldparam job [Hash] with String keys
        # @yieldparam error [Exception]
        # @yieldreturn [Object] :discard: the job is forgotten instead of kept among the dead
        # @return [Proc, nil] without a block: the one that was set here, or is inherited
        # @since 0.1.0
        def retries_exhausted(&block)
          @retries_exhausted = block if block
          @retries_exhausted || (superclass.retries_exhausted if superclass.respond_to?(:retries_exhausted))
        end

        # Enqueues a job. May switch strands.
        #
        # @param arguments [Array<Object>] for `perform`: values that JSON has, and no Symbols
        # @return [String, nil] its jid; nil when another job holds its lock, or a middleware has stopped it
        # @raise [InvalidJobError] which says where the arguments do not survive JSON
        # @raise (see Enqueuer#push)
        # @since 0.1.0
        def perform_async(*arguments) = Jobs.client.push(job_template, arguments)

        # Enqueues a job that is to run after some seconds, by the storage's clock. May switch strands.
        #
        # @param seconds [Numeric]
        # @param arguments (see #perform_async)
        # @return (see #perform_async)
        # @raise (see #perform_async)
        # @since 0.1.0
        def perform_in(seconds, *arguments)
          Jobs.client.push(job_template, arguments, nil, Template.delay(Options.seconds(:in, seconds)))
        end

        # Enqueues a job that is to run at a time. May switch strands.
        #
        # @param time [Time, Numeric] or seconds since the epoch
        # @param arguments (see #perform_async)
        # @return (see #perform_async)
        # @raise (see #perform_async)
        # @since 0.1.0
        def perform_at(time, *arguments) = Jobs.client.push(job_template, arguments, Options.time(:at, time))

        # Enqueues many jobs, a thousand in one call of the storage. May switch strands.
        #
        #   Mail.perform_bulk([["a@example.org", "Hello"], ["b@example.org", "Hello"]])
        #
        # @param all [Enumerable<Array>] the arguments of each
        # @return [Array<String, nil>] as {Job::ClassMethods#perform_async} returns for each
        # @raise [BulkError] when some of them are stored and some are not
        # @raise (see #perform_async)
        # @since 0.1.0
        def perform_bulk(all) = BoundJob.new(self).perform_bulk(all)

        # Options for single jobs, which win over those of the class.
        #
        #   Mail.set(queue: "slow", in: 60).perform_async("a@example.org", "Hello")
        #
        # It takes what {#job_options} takes, and:
        #
        # @option options [String] :unique_token the name of the job's unique lock; by default made of class, queue and arguments
        # @option options [Numeric] :in seconds, as {#perform_in}
        # @option options [Time, Numeric] :at as {#perform_at}
        # @option options [Object, nil] :connection one that the storage takes as `connection:`: the job is stored on it, at once,
        #   alone and without a second attempt. In a storage that is a database, it is part of the transaction that is open on
        #   it. A storage says which ones it takes, and raises UsageError for all others
        # @return [BoundJob]
        # @raise [InvalidJobError] which names what is wrong
        # @since 0.1.0
        def set(**options) = BoundJob.new(self, **options)

        private

        def job_template = @job_template ||= Template.new(self, options)

        def forget_options
          @options = @job_template = nil
          subclasses.each { |job_class| job_class.__send__(:forget_options) }
        end

        def own_options = @own_options || {}.freeze
      end

      # @return [String, nil] the job's id; nil outside of a worker
      # @since 0.1.0
      attr_reader :jid

      # Ends this run; the job runs again after the given seconds, which does not count as a failure.
      #
      # @param seconds [Numeric]
      # @return [void] never
      # @raise [Snooze] which the worker handles, and no `rescue => error` takes
      # @raise [InvalidJobError] when that is no number of seconds
      # @since 0.1.0
      def snooze(seconds)
        raise Snooze, Options.seconds(:snooze, seconds)
      end

      # Has a job follow this one: it is stored in the same step in which this one is acknowledged. So it is enqueued once when
      # this one is done, whatever dies in between, and never when this one fails, snoozes or is cancelled.
      #
      # Outside of a worker, where nothing is acknowledged, it is enqueued at once. May switch strands.
      #
      # @param job_class [Class, String, BoundJob] as for {Jobs.enqueue}, or what {ClassMethods#set} returns
      # @param arguments (see ClassMethods#perform_async)
      # @return [String, nil] its jid, though it may be refused yet if it is unique; nil when a middleware has stopped it
      # @raise [InvalidJobError]
      # @since 0.1.0
      def follow_with(job_class, *arguments)
        raise UsageError, "what follows a job is said before done!" if @ringspun_run&.acknowledged?

        bound = job_class.is_a?(BoundJob) ? job_class : BoundJob.new(job_class)
        return bound.perform_async(*arguments) unless jid

        push = bound.push(Jobs.client, arguments, nil) or return
        (@ringspun_followers ||= []) << push
        push.jid
      end

      # Acknowledges this job in a transaction of its own: what it does there and that it is done are committed together, or
      # neither is. So its effect happens once, whatever dies in between. What is to follow the job ({#follow_with}) is stored
      # with that, and so is the end of its unique lock.
      #
      #   Account.transaction do
      #     account.update!(balance: account.balance + amount)
      #     done!(connection: Account.connection)
      #   end
      #
      # When the transaction is rolled back, the job is in flight as before: an error that leaves `perform` is a failure as ever.
      # When it is committed, the job is done, whatever `perform` raises or returns afterwards; that is logged, and what it
      # returns is not kept. Where jobs that are done are kept, {Config#keep_done}, the time that it has taken ends here.
      #
      # Outside of a worker, where nothing is acknowledged, it does nothing. May switch strands.
      #
      # @param connection [Object] on which a transaction is open, and which the storage takes as `connection:`
      # @return [nil]
      # @raise [TakenAwayError] the job was taken away, and runs elsewhere: let it leave the transaction
      # @raise [UsageError] the storage has no part in such a transaction; or none is open; or one with it is committed already
      # @since 0.1.0
      def done!(connection:)
        @ringspun_own_ack&.call(@ringspun_run, connection)
      end

      # For the worker.
      #
      # @return [Array<Storage::Push>, nil]
      # @api private
      def followers = @ringspun_followers

      # Whether somebody has cancelled this job. A cancellation ends a wait; a job that computes must ask.
      #
      # @return [Boolean]
      # @since 0.1.0
      def cancelled? = @ringspun_cancelled == true

      # For the worker.
      #
      # @api private
      attr_writer :jid

      # For the worker: has the job acknowledge itself.
      #
      # @param own_ack [#call]
      # @param run [Worker::Run]
      # @api private
      def acknowledge_by(own_ack, run)
        @ringspun_own_ack = own_ack
        @ringspun_run = run
      end

      # For Active Job: whether the job has called {#done!} and is not in flight any more, for that is committed or the job was
      # taken away. May switch strands.
      #
      # @return [Boolean]
      # @raise [UnavailableError]
      # @api private
      def ended? = @ringspun_own_ack&.ended?(@ringspun_run) == true

      # For the worker: from now on the job is {#cancelled?}.
      #
      # @api private
      def mark_cancelled = @ringspun_cancelled = true
    end
  end
end
