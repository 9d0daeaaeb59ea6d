# frozen_string_literal: true

module Ringspun
  module Jobs
    # Jobs and the transactions of Active Record.
    module ActiveRecord
      # Knows which jobs wait for which transactions. A strand or thread has transactions of its own, one on each database.
      #
      # Active Record calls a transaction's callbacks when all is committed or rolled back; those of a savepoint it passes on to
      # what is around it. It calls none when nobody knows what has become of a COMMIT, see {Doubt}.
      #
      # @api private
      module Commits
        # Jobs that wait for the same transactions, and are stored together.
        Group = Struct.new(:transactions, :pushes, :names, :open) do
          # @return [Boolean] whether more can join, so that all stay in their order
          def joinable?(others) = open && transactions.size == others.size && transactions.zip(others).all? { |a, b| a.equal?(b) }
        end

        # Connection => the groups that wait for its transactions, the newest last.
        @groups = ObjectSpace::WeakKeyMap.new

        class << self
          # May switch strands.
          #
          # @param pushes [Array<Storage::Push>]
          # @yieldparam pushes [Array<Storage::Push>] which can be stored now
          # @return [Boolean] false: no transaction is open
          def after(pushes, &store)
            transactions = ::ActiveRecord.all_open_transactions
            return false if transactions.empty?

            group = newest(transactions) || wait(Group.new(transactions, [], [], true), &store)
            group.pushes.concat(pushes)
            group.names.concat(pushes.map { |push| [class_of(push), push.jid] })
            true
          end

          # Notes a job that somebody else enqueues after the commit.
          #
          # @param name [String] of its class
          # @param id [String]
          def note(name, id)
            transactions = ::ActiveRecord.all_open_transactions
            wait(Group.new(transactions, [], [[name, id]], false)) {} if transactions.any?
          end

          # A transaction begins. What still waits at its connection has lost its own transaction with the session to the server,
          # of which Active Record tells nobody.
          def begin(connection) = @groups[connection]&.clear

          # @return [Array<Array(String, String)>] the jobs that waited for the connection's transactions
          def forsake(connection)
            groups = @groups[connection].to_a.dup
            groups.each { |group| forget(group) }
            groups.flat_map(&:names)
          end

          private

          def newest(transactions)
            group = @groups[transactions.last.connection]&.last
            group if group&.joinable?(transactions)
          end

          def wait(group, &store)
            left = group.transactions.size
            group.transactions.each do |transaction|
              (@groups[transaction.connection] ||= []) << group
              transaction.after_commit { committed(group, &store) if (left -= 1).zero? }
              transaction.after_rollback { forget(group) }
            end
            group
          end

          def committed(group)
            forget(group)
            yield group.pushes if group.pushes.any?
          end

          def forget(group)
            group.open = false
            group.transactions.each { |transaction| @groups[transaction.connection]&.delete_if { |other| other.equal?(group) } }
          end

          def class_of(push)
            job = Wire.parse(push.entry)
            job["wrapped"] || job["class"]
          end
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
          super
        rescue *LOST
          jobs = Commits.forsake(connection)
          raise if jobs.empty?

          raise CommitUnknownError.new(Doubt.text(jobs), jobs: jobs)
        end

        def self.text(jobs)
          "nobody knows whether the transaction is committed, for the connection was lost during its COMMIT. Look whether its " \
            "data are there, and enqueue these if so, which are not enqueued: #{jobs.map { |job| job.join(" ") }.join(", ")}"
        end
      end

      # Notes the jobs of Active Job that wait for a commit.
      #
      # @api private
      module Noting
        # @return [Boolean]
        def self.waits?(job) = [true, :always].include?(job.class.enqueue_after_transaction_commit)

        private

        def raw_enqueue
          Commits.note(self.class.name, job_id) if Noting.waits?(self)
          super
        end
      end

      # @api private
      module NotingAll
        def perform_all_later(*jobs)
          jobs.flatten.each { |job| Commits.note(job.class.name, job.job_id) if Noting.waits?(job) }
          super
        end
      end

      private_constant :Commits, :Doubt, :Noting, :NotingAll

      Jobs.commits = Commits
      ::ActiveRecord::ConnectionAdapters::RealTransaction.class_eval { prepend Doubt }
      ::ActiveSupport.on_load(:active_job) do
        prepend Noting
        ::ActiveJob.singleton_class.prepend(NotingAll)
      end
    end
  end
end
