# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Sqlite < Storage
        # A connection of the caller's, on which a verb is done: in the transaction that is open on it, or else in one of its own.
        # The verb is a savepoint there, so that one which fails has done nothing, whatever becomes of the transaction.
        #
        # Whoever has a transaction open holds SQLite's lock, for which writers of all processes wait, one of them in its turn. So
        # nothing here waits for a turn, nor for the thread that writes: both could wait for the caller then. A turn is always
        # taken before SQLite's lock, and never after.
        #
        # @api private
        class Borrowed
          NAME = "ringspun_verb"
          # https://www.sqlite.org/rescode.html
          BUSY = 5
          READONLY = 8
          CORRUPT = 11
          private_constant :NAME, :BUSY, :READONLY, :CORRUPT

          @kinds = []
          # The database of each connection => the process that has used it first, and which file each path named then.
          @known = ObjectSpace::WeakKeyMap.new

          class << self
            # @param connection [Object]
            # @param path [String] where jobs are kept
            # @return [Borrowed]
            # @raise [UsageError] it is no connection to that file
            def of(connection, path)
              kind = @kinds.find { |one| one.takes?(connection) }
              return kind.new(connection, path).tap(&:check) if kind

              raise UsageError, "connection: must be one of Active Record, SQLite3::Database or Extralite::Database on " \
                                "#{path}, where jobs are kept, got #{connection.class}; #{OTHERWISE}"
            end

            # @param database [Object] of a gem
            # @return [Array(Integer, Hash)] the process, and by paths which files it has open there
            def known(database) = @known[database] ||= [Process.pid, {}]

            private

            def inherited(kind)
              super
              @kinds << kind if equal?(Borrowed)
            end
          end

          OTHERWISE = "for data that are elsewhere, let the job wait for their commit: after_commit: true"
          private_constant :OTHERWISE

          # @return [String] of the file
          attr_reader :path

          # (see Connection#beside)
          attr_accessor :beside

          def initialize(connection, path)
            @connection = connection
            @path = path
          end

          # It is the program's own file, unless it was one of jobs alone before.
          def app? = true

          # @raise [UsageError]
          # @raise [UnavailableError] its file has another name by now, or none
          def check
            check_process
            raise UsageError, "connection: is closed" if closed?

            check_file
            check_same
          end

          def check_file
            file = rows("PRAGMA database_list").find { |_, name, _| name == "main" }&.last.to_s
            return if !file.empty? && Location.identity(file) == Location.identity(@path)

            raise UsageError, "connection: is one to #{file.empty? ? "memory" : file}, and jobs are kept in #{@path}; either " \
                              "set the storage to that file, or: #{OTHERWISE}"
          end

          def run(sql, *values) = guard { change(named(sql), values) }
          def run_all(sql, all) = all.each { |values| run(sql, *values) }
          def rows(sql, *values) = guard { read(named(sql), values) }
          def row(sql, *values) = rows(sql, *values).first
          def value(sql, *values) = rows(sql, *values).first&.first
          def once(sql) = guard { change(sql, []) }

          # For {Schema}, which is inside of a verb's.
          def transaction = yield

          # When it gives the lock of the VM away is the caller's.
          def without_lock = yield

          # @return [Object] the block's value
          # @yield the verb
          def verb(&) = open? ? savepoint(&) : own_transaction(&)

          # @return [Boolean] whether it tells of the end of a transaction
          def tells? = false

          private

          # SQLite in a child believes that it holds what its parent has locked. Databases that are first used in the child are
          # not found out; the gem sqlite3 closes all of them there.
          def check_process
            return if database.nil? || Borrowed.known(database).first == Process.pid

            raise UsageError, "connection: was opened before this process was forked, and SQLite cannot be used so; open one here"
          end

          # What is written to a file that has no name any more is lost.
          def check_same
            now = Location.identity(@path)
            return if database.nil? || (now && file_of(database, now) == now)

            raise UnavailableError, "#{@path} was replaced or removed since connection: has opened it, and nothing was done; " \
                                    "open it anew"
          end

          def file_of(database, now) = Borrowed.known(database).last[@path] ||= (now if Location.open?(now))

          # The database object of its gem; nil: Active Record has not connected yet.
          def database = @connection

          def named(sql) = @beside ? Schema.prefixed(sql) : sql

          def savepoint
            once("SAVEPOINT #{NAME}")
            value = yield
            once("RELEASE #{NAME}")
            done = true
            value
          ensure
            undo("ROLLBACK TO #{NAME}", "RELEASE #{NAME}") unless done
          end

          def own_transaction
            once("BEGIN IMMEDIATE")
            value = yield
            commit
            value
          ensure
            undo("ROLLBACK")
          end

          def commit
            once("COMMIT")
          rescue StorageError => error
            raise unknown(error)
          end

          def unknown(error)
            UnknownOutcomeError.new("the disk has failed, so what was written may be lost: #{error.message}")
          end

          # SQLite may have rolled the whole transaction back by itself.
          def undo(*statements)
            statements.each { |sql| once(sql) } if open?
          rescue Error # that of the verb is the one to tell
            nil
          end

          def guard
            yield
          rescue *errors => error
            raise mapped(error), cause: error
          end

          def mapped(error)
            return DamagedError.new("#{@path}: #{error.message}") if damaged?(error)
            return only_reads(error) if readonly?(error)
            return StorageError.new("#{@path}: #{error.message}") unless busy?(error)

            UnavailableError.new("#{@path} is locked by another program, and nothing was done; a transaction that reads before " \
                                 "it writes begins with BEGIN IMMEDIATE")
          end

          # SQLite says the same of both where there is no WAL.
          def only_reads(error)
            UsageError.new("connection: does not write to #{@path}, for it only reads, or the file was renamed; give one that " \
                           "writes: #{error.message}")
          end

          # A connection of the gem sqlite3.
          class Plain < Borrowed
            def self.takes?(connection) = defined?(::SQLite3::Database) && connection.is_a?(::SQLite3::Database)

            def library = :sqlite3
            def open? = @connection.transaction_active?

            private

            def closed? = @connection.closed?
            def errors = [::SQLite3::Exception]
            def busy?(error) = AppConnection.busy?(error)
            def readonly?(error) = error.is_a?(::SQLite3::ReadOnlyException)
            def damaged?(error) = error.is_a?(::SQLite3::CorruptException)

            def read(sql, values)
              @connection.prepare(sql) { |statement| AppConnection.step(AppConnection.bind(statement, values)) }
            end

            def change(sql, values)
              read(sql, values)
              @connection.changes
            end
          end

          # A connection of extralite.
          class Extralite < Borrowed
            def self.takes?(connection) = defined?(::Extralite::Database) && connection.is_a?(::Extralite::Database)

            def library = :extralite
            def open? = @connection.transaction_active?

            private

            def closed? = @connection.closed?
            def errors = [::Extralite::Error]
            def busy?(_) = @connection.errcode & 0xff == BUSY
            def readonly?(_) = @connection.errcode & 0xff == READONLY
            def damaged?(_) = @connection.errcode & 0xff == CORRUPT
            def read(sql, values) = @connection.query_array(sql, *values)
            def change(sql, values) = @connection.execute(sql, *values)
          end

          # A connection of Active Record. Its own methods do all, so it knows that its transaction has changed something.
          class Record < Borrowed
            SQL_NAME = "Ringspun"
            private_constant :SQL_NAME

            def self.takes?(connection)
              defined?(::ActiveRecord::ConnectionAdapters::SQLite3Adapter) &&
                connection.is_a?(::ActiveRecord::ConnectionAdapters::SQLite3Adapter)
            end

            # Without a query.
            def self.to?(connection, path)
              return false unless takes?(connection)

              Library.same_file?(connection.pool.db_config, path)
            end

            # Most often the settings tell.
            def check_file = Record.to?(@connection, @path) || super

            def check
              check_owner
              super
            end

            def library = :sqlite3
            def open? = @connection.transaction_open?

            # It may be a part of a transaction that is rolled back alone.
            def verb
              alone = !open?
              done = false
              guard do
                @connection.transaction(requires_new: true) { yield.tap { done = true } }
              end
            rescue StorageError => error
              raise unless alone && done

              raise unknown(error)
            end

            def tells? = true

            # Calls the block when the transaction is committed; never, when it is rolled back.
            def after_commit(&) = @connection.current_transaction.after_commit(&)

            private

            # What it does would be part of somebody else's transaction. In tests all threads may have the same one.
            def check_owner
              owner = @connection.owner
              return if owner.nil? || owner == ::ActiveSupport::IsolatedExecutionState.context
              return if @connection.pool.active_connection.equal?(@connection)

              raise UsageError, "connection: is in use by another thread or strand, in whose transaction the job would be; " \
                                "give that of this one"
            end

            def database = @connection.instance_variable_get(:@raw_connection)

            # One that Active Record has closed itself it opens again.
            def closed? = database&.closed?
            def errors = [::ActiveRecord::ActiveRecordError]

            # A verb's own error comes out of the transaction as it is.
            def busy?(error) = !error.cause.nil? && AppConnection.busy?(error.cause)
            def damaged?(error) = error.cause.is_a?(::SQLite3::CorruptException)

            def readonly?(error)
              error.is_a?(::ActiveRecord::ReadOnlyError) || error.cause.is_a?(::SQLite3::ReadOnlyException)
            end

            def read(sql, values) = @connection.exec_query(sql, SQL_NAME, values).rows
            def change(sql, values) = @connection.exec_update(sql, SQL_NAME, values)
          end
          private_constant :Plain, :Extralite
        end
        private_constant :Borrowed
      end
    end
  end
end
