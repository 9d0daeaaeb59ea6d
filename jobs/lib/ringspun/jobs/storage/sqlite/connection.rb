# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Sqlite < Storage
        # The file is not as SQLite has left it.
        class DamagedError < StorageError; end
        private_constant :DamagedError

        # One connection to the file, for one thread. Statements are prepared once.
        #
        # SQLite computes under the lock of the VM, for its statements take less time than that lock costs. What may sleep gives
        # it away: the beginning of a transaction, which may wait for other programs, and its end, which waits for the disk.
        #
        # @api private
        class Connection
          # https://www.sqlite.org/rescode.html
          IOERR = 10
          CORRUPT = 11
          FULL = 13
          CANTOPEN = 14
          # The WAL is cut to this size after it has grown beside somebody who reads for long.
          WAL_BYTES = 64 << 20
          # What to look at where SQLite does not say what is missing.
          NEEDS = "it needs room on the disk for what is beside it, also for new files, and a disk that is well and can be " \
                  "written to"
          # A program that takes no turns is waited for as long.
          PATIENCE_SECONDS = 5
          private_constant :IOERR, :CORRUPT, :FULL, :CANTOPEN, :WAL_BYTES, :NEEDS, :PATIENCE_SECONDS

          @patience = PATIENCE_SECONDS

          class << self
            # @return [Numeric] seconds that a new connection waits for a program that writes without taking turns
            attr_accessor :patience
          end

          # @return [String]
          attr_reader :path

          # @return [Boolean, nil] whether our tables have a prefix there, see {Schema}
          attr_accessor :beside

          # @param path [String]
          # @param app [Boolean] whether it is the program's own file
          # @param rows [Integer] the number of rows after which a read gives the lock of the VM away; 0: never
          # @raise [UnavailableError]
          # @raise [StorageError]
          def initialize(path, app: false, rows: 0)
            @path = path
            @app = app
            @rows = rows
            @statements = {}.compare_by_identity
            @synchronous = nil
            guard do
              open_file
              without_lock do
                execute("PRAGMA mmap_size = 0")
                execute("PRAGMA journal_size_limit = #{WAL_BYTES}")
              end
            end
          rescue Error
            @db&.close
            raise
          end

          def app? = @app

          # Has whoever reads go on beside who writes. The mode stays in the file. To change it is to wait for readers, one of
          # them perhaps a thread of this process, which needs the lock of the VM.
          #
          # @return [nil]
          # @raise [UnavailableError]
          def wal
            without_lock { once("PRAGMA journal_mode = WAL") } unless value("PRAGMA journal_mode") == "wal"
            nil
          end

          # @param sql [String] a literal, for it is known by its identity
          # @return [Integer] how many rows it has changed
          def run(sql, *values) = guard { change(statement(sql), values) }

          # Runs a statement for each of several rows of values, by one call of the gem.
          #
          # @param sql (see #run)
          # @param all [Array<Array>]
          # @return [nil]
          def run_all(sql, all)
            guard { statement(sql).batch_execute(all) }
            nil
          end

          # @return [Array<Array>]
          def rows(sql, *values) = guard { read(statement(sql), values) }

          # @return [Array, nil] the first row
          def row(sql, *values) = rows(sql, *values).first

          # @return [Object, nil] what the first row has first
          def value(sql, *values) = rows(sql, *values).first&.first

          # Extralite steps a statement of one value for a third of what a list of rows costs a thread that has just been woken.
          #
          # @return [Integer] a number that changes when another connection has written
          def changes
            guard do
              @changes ||= @db.prepare_splat("PRAGMA data_version")
              number = @changes.next
              @changes.reset # or it would keep the WAL from being used anew
              number
            end
          end

          # Runs a statement that is not kept.
          def once(sql) = guard { execute(sql) }

          # @param durable [Boolean] whether its end waits for the disk
          # @yield must raise nothing but what ends the transaction
          # @return [Object] the block's value
          # @raise [UnavailableError] another program holds the file; nothing was done
          # @raise [UnknownOutcomeError] the disk has failed at the end
          def transaction(durable: true, writes: true)
            synchronous(durable) if writes
            without_lock { writes ? run("BEGIN IMMEDIATE") : run("BEGIN") }
            begin
              value = yield
              without_lock { guard(ending: writes) { change(statement("COMMIT"), []) } }
              ended = true
            ensure
              roll_back unless ended
            end
            value
          end

          # @return [Boolean] false: what it has begun it can neither end nor undo
          def usable? = !@stuck

          # Gives the lock of the VM away for every row, for a statement that takes long.
          #
          # @return [Object] the block's value
          def without_lock
            @db.gvl_release_threshold = 1
            yield
          ensure
            @db.gvl_release_threshold = @rows
          end

          # @return [nil]
          def close
            [*@statements.values, @changes].compact.each(&:close)
            nil
          ensure
            @changes = nil
            @statements.clear
            @db.close
          end

          private

          # What follows is all that is of one gem. See {AppConnection} for the other.

          def open_file
            @db = ::Extralite::Database.new(@path)
            @db.busy_timeout = Connection.patience
          end

          def execute(sql) = @db.execute(sql)

          def prepare(sql) = @db.prepare_array(sql)

          def change(statement, values) = statement.execute(*values)

          def read(statement, values) = statement.bind(*values).to_a

          def guard(ending: false)
            yield
          rescue ::Extralite::BusyError
            raise locked
          rescue ::Extralite::Error => error
            raise mapped(error, ending), cause: error
          end

          # What both have.

          def statement(sql) = @statements[sql] ||= prepare(@beside ? Schema.prefixed(sql) : sql)

          def synchronous(durable)
            return if @synchronous == durable

            once("PRAGMA synchronous = #{durable ? "FULL" : "NORMAL"}")
            @synchronous = durable
          end

          # SQLite may have done that by itself.
          def roll_back
            guard { execute("ROLLBACK") } if @db.transaction_active?
          rescue Error # whoever waits hears of the error before, and closing the connection undoes it
            @stuck = true
          end

          def locked
            UnavailableError.new("#{@path} is locked by another program, or by a transaction of this one that does not end, " \
                                 "and nothing was done")
          end

          def mapped(error, ending)
            code = @db ? @db.errcode & 0xff : CANTOPEN
            if ending && code != FULL
              return UnknownOutcomeError.new("the disk has failed, so what was written to #{@path} may be lost: #{error.message}")
            end

            return UnavailableError.new("#{@path} cannot be opened: #{error.message}; #{NEEDS}") if code == CANTOPEN
            return DamagedError.new("#{@path}: #{error.message}") if code == CORRUPT

            StorageError.new("#{@path}: #{refused(code, error)}")
          end

          # The error of a disk without room for the `-shm`, or for the share of a user, is one of the disk for SQLite.
          def refused(code, error)
            case code
            when FULL then "the disk is full, and nothing was done; make room, and the next call stores again"
            when IOERR then "#{error.message}, and nothing was done; #{NEEDS}"
            else error.message
            end
          end
        end
        private_constant :Connection
      end
    end
  end
end
