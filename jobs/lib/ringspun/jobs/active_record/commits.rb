# frozen_string_literal: true

module Ringspun
  module Jobs
    # Jobs and the transactions of Active Record.
    module ActiveRecord
      # Knows which jobs wait for which transactions. A strand or thread has transactions of its own, one on each database.
      #
      # It follows each transaction itself, and is none of its callbacks: Active Record drops those that come after one that has
      # raised, and calls none when nobody knows what has become of a COMMIT, see {Doubt}.
      #
      # @api private
      module Commits
        # Jobs that wait for the same transactions, and are stored together: each a Storage::Push, or the name of a class and an
        # id, when somebody else enqueues it. `enqueuer` is nil for the process's own, which can be another one by then.
        Group = Struct.new(:transactions, :enqueuer, :jobs) do
          # @return [Boolean] whether more can join, so that all stay in their order
          def joinable?(transactions, enqueuer) = self.enqueuer.equal?(enqueuer) && self.transactions == transactions

          def pushes = jobs.grep(Storage::Push)

          # Those that somebody else enqueues.
          def notes = jobs.grep_v(Storage::Push)

          def names = jobs.map { |job| job.is_a?(Storage::Push) ? Commits.name_of(job) : job }
        end

        # What becomes of the jobs of Active Job that callbacks of a commit enqueue: the ids of all, and the name of the class,
        # the id and the error of each that is not stored.
        Enqueued = Struct.new(:ids, :failed)

        CALLBACKS = :ringspun_jobs_callbacks # of a fiber, for a strand has transactions of its own
        # From this version on Active Job itself lets many wait for the commit, and has no names for when a job does.
        MANY_WAIT = Gem::Version.new("8.1")
        private_constant :CALLBACKS, :MANY_WAIT

        # Connection => the groups that wait for its transactions, the newest last.
        @groups = ObjectSpace::WeakKeyMap.new

        class << self
          # @param pushes [Array<Storage::Push>]
          # @param enqueuer [#push_all, nil] nil: the process's own, when they are stored
          # @return [Boolean] false: no transaction is open
          def after(pushes, enqueuer)
            transactions = ::ActiveRecord.all_open_transactions
            return false if transactions.empty?

            group = newest(transactions, enqueuer) || wait(Group.new(transactions, enqueuer, []))
            group.jobs.concat(pushes)
            true
          end

          # @param enqueuer [#push_all]
          # @return [Object, nil] the connection of a transaction that is open on the database where its jobs are kept. It may
          #   be one that nothing joins, such as that of a test: it has the lock of that database all the same
          def open_transaction(enqueuer)
            storage = keeper(enqueuer) or return
            ::ActiveRecord::Base.connection_handler.each_connection_pool do |pool|
              connection = pool.active_connection
              return connection if connection&.transaction_open? && storage.kept_by?(connection)
            end
            nil
          end

          # @param enqueuer [#push_all]
          # @return [Object, nil] the same, where jobs that wait for the commit wait for no other transaction: they are part of it
          def only_transaction(enqueuer)
            storage = keeper(enqueuer) or return
            one, *others = ::ActiveRecord.all_open_transactions
            one.connection if one && others.empty? && storage.kept_by?(one.connection)
          end

          # Notes a job that Active Job enqueues after the commit.
          #
          # @param job [::ActiveJob::Base]
          def note(job) = after([[job.class.name, job.job_id]], nil)

          # @param job [::ActiveJob::Base]
          # @param many [Boolean] whether it is one of `perform_all_later`, in which 7.2 asks no adapter
          # @return [Boolean] whether it is enqueued after the commit, by our adapter
          def waits?(job, many: false)
            adapter = job.queue_adapter
            return false unless defined?(Jobs::ActiveJob::Adapter) && adapter.is_a?(Jobs::ActiveJob::Adapter)

            wanted = job.class.enqueue_after_transaction_commit
            return wanted ? true : false if many_wait?
            return true if [true, :always].include?(wanted)

            !many && wanted != :never && adapter.try(:enqueue_after_transaction_commit?) == true
          end

          # @return [Boolean] whether Active Job lets many wait
          def many_wait? = ::ActiveJob.gem_version >= MANY_WAIT

          # A transaction begins. What still waits at its connection has lost its own transaction with the session to the server,
          # of which Active Record tells nobody.
          def begin(connection) = @groups[connection]&.clear

          # A transaction is committed. Stores the jobs that wait for no other one. May switch strands.
          #
          # @param enqueued [Enqueued] by its callbacks
          # @param error [Exception, nil] what a callback has raised
          # @raise [AfterCommitError]
          def committed(transaction, enqueued, error)
            groups = of(transaction)
            groups.each do |group|
              @groups[transaction.connection].delete_if { |other| other.equal?(group) }
              group.transactions.delete(transaction)
            end
            store(groups.select { |group| group.transactions.empty? }, enqueued, error)
          end

          # Notes which jobs the callbacks of a commit enqueue, which the block calls.
          #
          # @param enqueued [Enqueued]
          def callbacks(enqueued)
            around, Thread.current[CALLBACKS] = Thread.current[CALLBACKS], enqueued
            yield
          ensure
            Thread.current[CALLBACKS] = around
          end

          # Active Job enqueues jobs that have waited for the commit. An error of one would keep the others from being enqueued:
          # the adapter adds it there, and {#committed} tells it.
          #
          # @param ids [Array<String>]
          # @return [Enqueued, nil] nil: no callback of a commit calls this
          def enqueue(ids) = Thread.current[CALLBACKS]&.tap { |enqueued| enqueued.ids.concat(ids) }

          # What waits for a part of a transaction waits for what is around it.
          def passed(transaction, around)
            of(transaction).each { |group| group.transactions.map! { |each| each.equal?(transaction) ? around : each } }
          end

          def rolled_back(transaction) = of(transaction).each { |group| forget(group) }

          # @return [Array<Array(String, String)>] the jobs that waited for the connection's transactions
          def forsake(connection)
            groups = @groups[connection].to_a.dup
            groups.each { |group| forget(group) }
            groups.flat_map(&:names)
          end

          # @return [Array(String, String)]
          def name_of(push)
            job = Wire.parse(push.entry)
            [job["wrapped"] || job["class"], push.jid]
          end

          # @param jobs [Array<Array(String, String)>]
          # @return [String]
          def list(jobs) = jobs.map { |job| job.join(" ") }.join(", ")

          # For errors that are none of ours: they stay what they are.
          def log(text) = Jobs.config.tell(:error, text)

          private

          # @return [Storage, nil] nil: the program's transactions are elsewhere
          def keeper(enqueuer)
            storage = enqueuer.storage if enqueuer.respond_to?(:storage)
            storage if storage.respond_to?(:kept_by?)
          end

          def of(transaction) = @groups[transaction.connection].to_a.select { |group| group.transactions.include?(transaction) }

          def newest(transactions, enqueuer)
            group = @groups[transactions.last.connection]&.last
            group if group&.joinable?(transactions, enqueuer)
          end

          def wait(group)
            group.transactions.each { |transaction| (@groups[transaction.connection] ||= []) << group }
            group
          end

          def forget(group)
            group.transactions.each { |transaction| @groups[transaction.connection]&.delete_if { |other| other.equal?(group) } }
          end

          # In a shield: the data are committed, so a caller that is cancelled leaves when its jobs are stored.
          def store(groups, enqueued, error)
            pushes = groups.flat_map(&:pushes)
            answers = []
            Shielded.call { groups.each { |group| answers.concat(Client.store(group.enqueuer, group.pushes)) } } if pushes.any?
            failed = pushes.zip(answers).select { |_push, answer| answer.is_a?(Exception) }.map { |push, _| name_of(push) }
            failed.concat(left(groups, enqueued, error))
            tell(failed, answers + enqueued.failed.map(&:last), error) if failed.any?
          rescue Error
            raise
          rescue Exception
            log(unstored(pushes.drop(answers.size).map { |push| name_of(push) }))
            raise
          end

          # Active Record calls no more callbacks when one has raised.
          def left(groups, enqueued, error)
            skipped = error ? groups.flat_map(&:notes).reject { |_name, id| enqueued.ids.include?(id) } : []
            enqueued.failed.map { |name, id, _error| [name, id] } + skipped
          end

          # An Interrupt or a cancellation is not to be replaced by an error that a program may rescue.
          def tell(failed, answers, error)
            text = unstored(failed)
            return log(text) if error && !error.is_a?(StandardError)

            cause = error || answers.grep(Exception).first
            raise AfterCommitError.new("#{text}: #{(answers.grep(Exception).first || error).message}", failed, answers), cause:
          end

          def unstored(jobs)
            "the transaction is committed, but #{Words.noun(jobs.size, "this job is", "these jobs are")} not stored, or not " \
              "for certain: #{list(jobs)}"
          end
        end
      end

      # Tells {Commits} what becomes of a transaction, or of a part of one.
      #
      # @api private
      module Following
        def commit_records
          enqueued = Commits::Enqueued.new([], [])
          Commits.callbacks(enqueued) { super }
        rescue Exception => error
          raise
        ensure
          @run_commit_callbacks ? Commits.committed(self, enqueued, error) : Commits.passed(self, connection.current_transaction)
        end

        def rollback_records
          super
        ensure
          Commits.rolled_back(self)
        end
      end

      # Tells the caller of a transaction whose COMMIT has no answer which jobs are not enqueued.
      #
      # @api private
      module Doubt
        LOST = [::ActiveRecord::ConnectionFailed, ::ActiveRecord::AdapterTimeout].freeze

        def initialize(connection, ...)
          super
          Commits.begin(connection)
        end

        # May switch strands.
        #
        # @raise [CommitUnknownError]
        def commit
          Commits.forsake(connection) if Doubt.failed?(connection)
          super
        rescue *LOST
          jobs = Commits.forsake(connection)
          raise if jobs.empty?

          raise CommitUnknownError.new(Doubt.text(jobs, "the connection was lost during its COMMIT"), jobs: jobs)
        rescue ::ActiveRecord::ActiveRecordError
          raise # the database has answered
        rescue Exception => error
          # The program's own, such as a timeout's: it stays what it is.
          jobs = Commits.forsake(connection)
          Commits.log(Doubt.text(jobs, "#{error.class} has interrupted its COMMIT")) if jobs.any?
          raise
        end

        # Postgres answers a COMMIT after a failed statement with ROLLBACK, which Active Record takes for a commit.
        def self.failed?(connection)
          raw = connection.instance_variable_get(:@raw_connection)
          raw.respond_to?(:transaction_status) && raw.transaction_status == ::PG::PQTRANS_INERROR
        end

        def self.text(jobs, why)
          "nobody knows whether the transaction is committed, for #{why}. Look whether its " \
            "data are there, and enqueue these if so, which are not enqueued: #{Commits.list(jobs)}"
        end
      end

      # Notes the jobs of Active Job that wait for a commit.
      #
      # @api private
      module Noting
        private

        def raw_enqueue
          Commits.note(self) if Commits.waits?(self)
          super
        end
      end

      # Notes those of many, and lets them wait where Active Job does not.
      #
      # @api private
      module NotingAll
        def perform_all_later(*jobs)
          jobs.flatten!
          late, others = jobs.partition { |job| Commits.waits?(job, many: true) }
          late.each { |job| Commits.note(job) }
          return super if late.empty? || Commits.many_wait?

          super(others) if others.any?
          ::ActiveRecord.after_all_transactions_commit { super(late) }
          nil
        end
      end

      private_constant :Commits, :Following, :Doubt, :Noting, :NotingAll

      Jobs.commits = Commits
      # Both are in one file, which Active Record loads by the name of this one.
      ::ActiveRecord::ConnectionAdapters::RealTransaction.class_eval { prepend Doubt }
      ::ActiveRecord::ConnectionAdapters::Transaction.class_eval { prepend Following }
      ::ActiveSupport.on_load(:active_job) do
        prepend Noting
        ::ActiveJob.singleton_class.prepend(NotingAll)
      end
    end
  end
end
