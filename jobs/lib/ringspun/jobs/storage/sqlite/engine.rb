# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Sqlite < Storage
        # What a process has of a file: a thread that writes and one that reads, each with a connection, and the bells. It belongs
        # to the process that has made it.
        #
        # What many callers want at the same time is written in one transaction. When the work of one of them fails, the others
        # do theirs again without it, so each is a function of the tables alone.
        #
        # @api private
        class Engine
          # What is asked of a file whose tables the program may not be able to use.
          VERSION = ->(connection) { Schema.version_of(connection) }
          # Changes when any other connection has written. The number is one of the connection alone.
          CHANGES = ->(connection) { [connection.object_id, connection.changes] }
          PLAIN = [VERSION, CHANGES].freeze
          # For whoever wants no more than that the files are those of all.
          NOTHING = ->(_) {}
          private_constant :VERSION, :CHANGES, :PLAIN, :NOTHING

          @living = {}.compare_by_identity

          # Without a lock, which a handler of a signal that forks could not take. Each is one step under the lock of the VM.
          class << self
            # @return [Array<Engine>] those of this process
            def living = @living.keys

            # @api private
            def born(engine) = @living[engine] = true

            # @api private
            def died(engine) = @living.delete(engine)

            # @api private
            def forget = @living.clear
          end

          # @return [Integer] the process
          attr_reader :pid

          # @return [String] of the file
          attr_reader :path

          # @return [Bells]
          attr_reader :bells

          # @return [Symbol] the gem by which it opens the file
          attr_reader :library

          # @param path [String]
          # @param durable [Boolean] whether what is stored outlives the host
          # @param library [Symbol, nil] see {Sqlite#initialize}
          # @param options [Hash] for {Tables}
          def initialize(path, durable:, library: nil, **options)
            @path = path
            @pid = Process.pid
            @durable = durable
            @lock_file = LockFile.open(path)
            @pairing = Pairing.new(path, @lock_file)
            choose(library)
            @tables_options = { lock_file: @lock_file, **options }
            @pauses = [Pause.new, Pause.new] # of the reader and of the writer, which the reader may wait for
            @writer = Lane.new("ringspun sqlite writer", idle: -> { @pauses.last.work { look_around } }) do |requests|
              @pauses.last.work { write_all(requests) }
            end
            @reader = Lane.new("ringspun sqlite reader") { |requests| @pauses.first.work { read_all(requests) } }
            @bells = Bells.new("#{path}-wake") { data_version }
            Engine.born(self)
          end

          # @return [Boolean] whether it is a file of the program's own
          def app? = @app

          # @return [Boolean] whether this process can use it
          def usable? = @pid == Process.pid && @writer.alive? && @reader.alive?

          # May switch strands.
          #
          # @param durable [Boolean] false: it need not outlive the host
          # @yieldparam tables [Tables]
          # @return [Object] the block's value
          def write(durable: true, &work) = @writer.call(work, durable: durable)

          # May switch strands.
          #
          # @yieldparam tables [Tables]
          # @return [Object] the block's value
          def read(&work) = @reader.call(work)

          # May switch strands.
          #
          # @param connection [Object, nil] of the caller's
          # @return [Version] of the tables in the file, which stay as they are
          # @raise [StorageError] they are another program's
          def version(connection = nil) = connection ? VERSION.call(borrow(connection)) : @reader.call(VERSION)

          # Does a verb on a connection of the caller's. Waits for nothing but SQLite's own lock.
          #
          # @param connection [Object]
          # @param inside [Boolean] whether a transaction must be open on it
          # @yieldparam tables [Tables]
          # @return [Object] the block's value
          # @raise [UsageError] it is no connection to the file, or by another copy of SQLite
          def on(connection, inside: false, &work)
            borrowed = borrow(connection)
            if inside && !borrowed.open?
              raise UsageError, "no transaction is open on connection:, so nothing would keep the outcome and its effect together"
            end

            woken = []
            value = borrowed.verb { done_on(borrowed, woken, work) }
            @bells.ring(woken) if woken.any? && !borrowed.tells? && !borrowed.open?
            value
          end

          # Waits until no thread uses a connection, closes both, and lets no thread begin before the pauses are ended.
          #
          # SQLite knows the locks of its process. A child that had inherited an open connection would believe that it holds what
          # its parent has locked, and two of them would write at once, even by new connections. See
          # https://www.sqlite.org/howtocorrupt.html#_carrying_an_open_database_connection_across_a_fork_
          #
          # @param begun [Array<Pause>] gets those that have begun, also where the caller is interrupted
          # @return [nil]
          def rest(begun)
            Thread.handle_interrupt(Object => :on_blocking) { @pauses.each { |pause| begun << pause.tap(&:begin) } }
            Thread.handle_interrupt(Object => :never) { close_connections }
          end

          # Closes what nobody uses now, of connections that have other files than those who come, for all of a process share
          # what they have of a database.
          #
          # @return [nil]
          def let_go
            @pauses.first.try { close_reading unless @reading.nil? || same_reading? }
            @pauses.last.try { close_writing unless @writing.nil? || @pairing.current?(@write_files) }
            nil
          end

          # In a forked child: closes what it shares with its parent.
          #
          # @return [nil]
          def abandon
            @abandoned = true
            @bells.abandon
            @lock_file.abandon
            nil
          end

          # Ends the threads when all that was asked for is done. May switch strands.
          #
          # @return [nil]
          # @raise [UnavailableError]
          # @raise [StorageError] the file could not be written to; it is closed all the same
          def close
            @bells.close
            write(&:unlock_nodes) if @lock_file.held.any? && usable?
          ensure
            shut
          end

          # Ends the threads, and leaves the nodes their locks while another one has the file open.
          #
          # @return [nil]
          def shut
            each_of([-> { @bells.close }, -> { @reader.close }, -> { @writer.close }, -> { @bells.close_sender },
                     -> { save_some }, -> { Aside.call { close_connections } }, # which takes a lock
                     -> { Engine.died(self) }, -> { @lock_file.close }])
          end

          # @return [nil]
          # @raise [UsageError] this process was forked with open connections, and {Forks} has not heard of that
          def check_left
            return if @pid == Process.pid || @abandoned || (@reading || @writing).nil?

            raise UsageError, "#{@path} was open when Process.daemon was called, and SQLite cannot be used then; " \
                              "call Ringspun::Jobs.close before"
          end

          private

          # All that open a file in a process do so by the same copy of SQLite.
          def choose(wanted)
            other = Engine.living.find { |one| one.path == @path }
            @library, @app = other ? [other.library, other.app?] : Library.for(@path, wanted) { |look| first_look(look) }
            Library.load_app_s(@path) if @library == :sqlite3
            chosen = true
          rescue SystemCallError => error # such as of a process that has too many files open
            raise UnavailableError, "#{@path} cannot be used: #{error.message}"
          ensure
            @lock_file.close unless chosen
          end

          # The first connection writes into the file what is in a `-wal`.
          def first_look(look)
            @lock_file.turn do
              @pairing.check(app: false)
              look.call
            end
          end

          def done_on(borrowed, woken, work)
            Schema.migrate(borrowed)
            tables = Tables.new(borrowed, **@tables_options)
            tables.note_boot
            value = work.call(tables)
            tables.finish
            woken.concat(tables.woken.uniq)
            borrowed.after_commit { @bells.ring(woken) } if borrowed.tells? && woken.any?
            value
          end

          def borrow(connection) = Borrowed.of(connection, @path).tap { |borrowed| check_library(borrowed) }

          def check_library(borrowed)
            Library.load_app_s(@path) if borrowed.library == :sqlite3
            return if borrowed.library == @library

            raise UsageError, Library.two_copies(@path, borrowed.library, @library, "connection:")
          end

          def open_connection(**) = (@library == :sqlite3 ? AppConnection : Connection).new(@path, app: @app, **)

          # Whichever of them fails, those after it are done.
          def each_of((step, *others))
            step.call
          ensure
            each_of(others) if others.any?
          end

          def save_some
            @pairing.save_some(@writing) if @writing && !@overwritten && @pairing.current?(@write_files)
          end

          def close_connections
            close_reading
          ensure
            close_writing
          end

          def close_reading
            @pairing.close(@reading, @read_files, keep: @overwritten) if @reading
          ensure
            @reading = @read_tables = @read_files = nil
          end

          def close_writing
            @wal_end&.close
            @pairing.close(@writing, @write_files, keep: @overwritten) if @writing
          ensure
            @writing = @write_tables = @write_files = @wal_end = nil
          end

          # Asked for up to twenty times a second while somebody waits, by a thread that looks itself unless the reader is at
          # work: most of what it would cost is to wake another one.
          def data_version
            @pauses.first.try { CHANGES.call(@reading) if same_reading? } || @reader.call(CHANGES)
          rescue LostError => error # whoever writes next is told
            @owed = error
            nil
          rescue Error, SystemCallError, IOError # there will be a next look, and its thread must not end
            nil
          end

          # Leaves files that others have not, for as long as they are open nobody else can begin with new ones, and the next call
          # may come in hours. In a file of the program's own that is of no use: the program has them open, too.
          def look_around
            return if @app || @overwritten

            leave_files unless @writing.nil? || @pairing.current?(@write_files)
            @pauses.first.try { close_reading unless @reading.nil? || same_reading? }
          rescue StandardError # there will be a next look, and its thread must not end
            nil
          end

          # The next call that writes is told, as it would have been if it had come before.
          def leave_files
            request = Lane::Request.new(NOTHING, false)
            write_together([request])
            @owed = request.error if @writing.nil?
          end

          def same_reading? = @reading && @pairing.current?(@read_files)

          def write_all(requests)
            owed, @owed = @owed, nil
            return refuse(requests, owed) if owed
            return refuse(requests, @pairing.overwritten) if @overwritten

            write_together(requests) || requests.each { |request| write_together([request]) }
          end

          # @return [Boolean] false: the work of one of several has failed, and nothing was done
          def write_together(requests)
            tables = writable(requests) or return true
            failed = nil
            @lock_file.turn do
              same_files
              tables.begin_anew
              @writing.transaction(durable: @durable && requests.any?(&:durable)) do
                Schema.still_usable(@writing, @write_version)
                tables.note_locks unless @lock_file.number == @noted_locks
                requests.each do |request|
                  request.value = request.work.call(tables)
                rescue StandardError => error
                  failed = [request, error]
                  raise
                end
                tables.finish
              end
              @noted_locks = @lock_file.number
              refuse_lost unless @pairing.kept?(@writing, @write_files)
            end
            requests.each { |request| request.error = nil }
            woken = tables.woken.uniq
            @bells.ring(woken) if woken.any?
            true
          rescue StandardError => error
            close_writing unless @writing.nil? || @writing.usable?
            return false if failed && requests.size > 1

            refuse(requests, error)
            true
          end

          # What the system says, such as of a process that has too many files open, comes before anything is done.
          def refuse(requests, error)
            error = UnavailableError.new("#{@path} cannot be used: #{error.message}") if error.is_a?(SystemCallError)
            requests.each { |request| request.error = error }
          end

          # What is written to a file that has no name any more is lost. The next call opens the new one.
          def same_files
            if @pairing.same?(@write_files)
              raise @pairing.overwritten unless same_end?

              return
            end

            moved = Location.identity(@path) != @write_files.main
            error = moved ? @pairing.move(@writing, @write_files) : @pairing.leave(@writing, @write_files, app: @app)
            @lock_file.let_all_go if moved # numbers of nodes begin anew in a new file
            close_writing
            let_all_go
            raise error
          end

          # One that was written over stays so: what this process has not seen of it nobody can tell.
          def same_end?
            same = @wal_end.nil? || @wal_end.same?
            @overwritten = true unless same
            same
          end

          def refuse_lost
            raise UnknownOutcomeError, "#{@path}, its -wal or its -shm was replaced or removed while it was written to, so " \
                                       "what was written may be lost"
          end

          def let_all_go = Engine.living.each { |engine| engine.let_go if engine.path == @path }

          def writable(requests)
            return @write_tables if @write_tables

            @lock_file.turn do
              Location.prepare(@path)
              let_all_go
              @pairing.check(app: @app)
              @writing = open_connection
              Schema.there?(@writing) # before anything is changed in a file of another program
              @writing.wal # in a turn, for two that change the mode of a new file do not wait for each other
              @write_files = @pairing.join(@writing, &:call)
              @wal_end = (WalEnd.of(@path, @write_files) if @write_files.wal?)
              Schema.migrate(@writing)
              @write_version = Schema.usable_version(@writing)
              tables = Tables.new(@writing, **@tables_options)
              @writing.transaction { tables.note_boot }
              @write_tables = tables
            end
          rescue StandardError => error
            refuse(requests, error)
            close_writing
          end

          def read_all(requests)
            return unless connect(requests)

            plain, requests = requests.partition { |request| PLAIN.include?(request.work) }
            plain.each { |request| answer(request) { request.work.call(@reading) } }
            tables = (requests.any? && readable(requests)) or return
            requests.each do |request|
              tables.begin_anew
              answer(request) do
                @reading.transaction(writes: false) do
                  Schema.still_usable(@reading, @read_version)
                  request.work.call(tables)
                end
              end
            end
            close_reading unless @reading.usable?
          end

          def answer(request)
            request.value = yield
            request.error = nil
          rescue StandardError => error
            request.error = error
          end

          # @return [Connection, nil] nil: the requests have been refused
          def connect(requests)
            raise @pairing.overwritten if @overwritten
            return @reading if same_reading?

            close_reading
            @lock_file.renew
            files = @write_files
            write(&NOTHING) if @pairing.whole? || (files && !@pairing.current?(files)) # before there are others
            Location.prepare(@path)
            @pairing.check(app: @app)
            @reading = open_connection(rows: 500)
            join_reading
            @reading
          rescue StandardError => error
            refuse(requests, error)
            close_reading
          end

          def join_reading
            @read_files = @pairing.join(@reading) { |agree| @lock_file.try_turn(&agree) }
          end

          # Where the tables are not there yet, the writer makes them. It must never wait for the reader, which waits for it here.
          def readable(requests)
            return @read_tables if @read_tables

            unless Schema.there?(@reading)
              write(&NOTHING)
              join_reading # it is in WAL mode now
            end
            @read_version = Schema.usable_version(@reading)
            @read_tables = Tables.new(@reading, **@tables_options)
          rescue StandardError => error
            refuse(requests, error)
            close_reading
          end
        end
        private_constant :Engine
      end
    end
  end
end
