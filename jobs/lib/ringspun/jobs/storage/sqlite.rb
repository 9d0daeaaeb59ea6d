# frozen_string_literal: true

require "json"
require "securerandom"
require "zlib"

module Ringspun
  module Jobs
    class Storage
      # A file of SQLite, for the processes of one host, without a server. It needs the gem extralite-bundle.
      #
      # Next to the file are those of SQLite (`-wal` and `-shm`), the locks of the processes (`-locks`) and a folder of sockets by
      # which they wake each other (`-wake`). All are for the owner of the file alone.
      #
      # As `connection:` the verbs take one of Active Record, SQLite3::Database or Extralite::Database on the same file, and are
      # done in the transaction that is open on it. Workers hear of that at once where Active Record tells of the commit, and
      # within {Looks::SHORTEST_SECONDS} otherwise; where the disk takes longer than that for it, as long again may pass, up to
      # {Looks::LONGEST_SECONDS}. Verbs that wait, and those by which a node fetches and leaves, take none.
      # A connection that is closed, that only reads, that another thread or strand has from its pool, or that was used before a
      # fork, is refused with a UsageError.
      class Sqlite < Storage
      end

      register(:sqlite) do |config, path:, durable: :full, library: nil|
        Sqlite.new(path, durable: durable, library: library, milliseconds: config.milliseconds, history: config.history)
      end
    end
  end
end

require_relative "sqlite/library"
require_relative "sqlite/aside"
require_relative "sqlite/location"
require_relative "sqlite/schema"
require_relative "sqlite/connection"
require_relative "sqlite/app_connection"
require_relative "sqlite/borrowed"
require_relative "sqlite/lock_file"
require_relative "sqlite/file_set"
require_relative "sqlite/wal_end"
require_relative "sqlite/guard"
require_relative "sqlite/pairing"
require_relative "sqlite/lane"
require_relative "sqlite/pause"
require_relative "sqlite/looks"
require_relative "sqlite/bells"
require_relative "sqlite/tables"
require_relative "sqlite/engine"
require_relative "sqlite/forks"
require_relative "sqlite/search"
require_relative "sqlite/verbs"

module Ringspun
  module Jobs
    class Storage
      class Sqlite
        include Search
        include Verbs

        # Seconds between looks at queues that may be held back by a limit.
        LOOK_SECONDS = 0.5
        # The most jobs that are forgotten in one transaction.
        CLEARED_MAX = 5000
        private_constant :LOOK_SECONDS, :CLEARED_MAX

        # To be called before somebody else opens a file.
        #
        # @param path [String]
        # @param library [Symbol] by which it is to be opened
        # @return [nil]
        # @raise [ConfigError] a storage of this process has it open by the other one
        # @api private
        def self.refuse_other(path, library)
          return if Engine.living.empty? || (file = Location.identity(path)).nil?

          other = Engine.living.find { |engine| engine.library != library && Location.identity(engine.path) == file }
          raise ConfigError, Library.two_copies(other.path, library, other.library, "this connection") if other
        end

        # @return [String] the file
        # @since 0.1.0
        attr_reader :path

        # @param path [String] of a file in a folder that exists. It is made if it is not there.
        # @param durable [Symbol, String] :full: what is stored outlives the host; :normal: it outlives the processes, and a host
        #   that loses its power may lose the last seconds
        # @param library [Symbol, String, nil] :sqlite3 or :extralite: the gem by which the program itself opens this file, where
        #   it has tables of its own; nil: as Active Record is set, and as the program has it open when it is first used
        # @param milliseconds [Boolean] see {Config#milliseconds}
        # @param history [Numeric] see {Config#history}
        # @raise [ConfigError]
        # @since 0.1.0
        def initialize(path, durable: :full, library: nil, milliseconds: false, history: HISTORY_SECONDS)
          super()
          raise ConfigError, "the storage sqlite needs a path, as in sqlite:jobs.sqlite3" if path.to_s.empty?

          known = %w[full normal].include?(durable.to_s)
          raise ConfigError, "durable must be full or normal, got #{durable.inspect}" unless known

          known = library.nil? || Library::NAMES.include?(library.to_sym)
          raise ConfigError, "library must be sqlite3 or extralite, got #{library.inspect}" unless known

          Library.load
          @path = Location.prepare(path.to_s)
          @options = { durable: durable.to_s == "full", library: library&.to_sym, milliseconds: milliseconds,
                       history: Seconds.limit("history", history, "a number of seconds") }
          @lock = Thread::Mutex.new
        end

        # @return [nil] verbs need none; whoever has a transaction on the file gives its connection
        # @since 0.1.0
        def connect = nil

        # (see Storage#shared?)
        def shared? = true

        # (see Storage#identity)
        def identity = "sqlite:#{@path}"

        # @param connection [Object] of Active Record
        # @return [Boolean] whether it is one to this file
        # @api private
        def kept_by?(connection) = Borrowed::Record.to?(connection, @path)

        # Ends all waits, and returns when all that was asked for is done, also in a strand that is cancelled. May switch strands.
        #
        # @return [nil]
        # @raise [StorageError] the nodes cannot be given up in the file; all is closed nevertheless
        # @since 0.1.0
        def close
          engine = Aside.call { @lock.synchronize { @engine.tap { @engine = nil } } }
          Shielded.call { engine.close } if engine && engine.pid == Process.pid
          nil
        end

        # (see Storage#push)
        def push(pushes, connection: nil)
          return if pushes.empty?

          outcomes = write(connection) { |tables| tables.push(pushes) }
          outcomes if outcomes.any?
        end

        # (see Storage#fetch)
        def fetch(node, queues, max, limits: {}, connection: nil)
          refuse(connection)
          return [] if queues.empty? || !max.positive?

          take(engine, node, queues, max, limits)
        end

        # (see Storage#wait_any)
        def wait_any(node, queues, seconds, max: 1, limits: {}, connection: nil)
          refuse(connection)
          return [] unless max.positive?

          give_up = steady + seconds
          with_bell(node, queues, []) do |bell, engine|
            told = nil
            loop do
              fetched = told == :there ? take(engine, node, queues, max, limits) : look(engine, node, queues, max, limits)
              left = give_up - steady
              return fetched if fetched.any? || !left.positive? || bell.ended

              told = bell.wait(limits.empty? ? left : [left, LOOK_SECONDS].min)
              return [] if bell.ended
            end
          end
        end

        # (see Storage#wait_due)
        def wait_due(seconds, connection: nil)
          refuse(connection)
          give_up = steady + seconds
          with_bell(nil, [Bells::DUE], false) do |bell, engine|
            loop do
              return true if engine.read(&:unheard?) && engine.write(durable: false, &:take_unheard)

              left = give_up - steady
              return false if bell.ended || !left.positive?

              bell.wait(left)
              return false if bell.ended
            end
          end
        end

        # (see Storage#clear)
        def clear(place, connection: nil) = in_parts { write(connection) { |tables| tables.clear_some(place, CLEARED_MAX) } }

        # (see Storage#trim_done)
        def trim_done(seconds, connection: nil)
          in_parts { write(connection, durable: false) { |tables| tables.trim_some_done(seconds, CLEARED_MAX) } }
        end

        private

        # Others write between two parts.
        #
        # @yieldreturn [Integer] how many are done; less than {CLEARED_MAX}: those were the last
        def in_parts
          count = 0
          loop do
            some = yield
            count += some
            return count if some < CLEARED_MAX
          end
        end

        def steady = Process.clock_gettime(Process::CLOCK_MONOTONIC)

        def write(connection, durable: true, &)
          connection ? engine.on(connection, &) : engine.write(durable: durable, &)
        end

        def read(connection, &) = connection ? engine.on(connection, &) : engine.read(&)

        # Ends what is in flight, in the transaction in which its effect is.
        def finish(connection, &) = connection ? engine.on(connection, inside: true, &) : engine.write(&)

        # What a transaction could not take back: the wait, and the kernel's lock of a node.
        def refuse(connection)
          return unless connection

          raise UsageError, "this verb of the storage sqlite takes no connection:, for no transaction could take it back; " \
                            "leave it out"
        end

        # A forked child begins anew, and so does a process that has killed the threads.
        def engine
          current = @engine
          return current if current&.usable?

          Aside.call { @lock.synchronize { @engine&.usable? ? @engine : begin_anew } }
        end

        def begin_anew
          before = @engine
          before&.check_left
          @engine = Engine.new(@path, **@options)
          before.shut if before&.pid == Process.pid
          @engine
        end

        # A wait has one engine: a look that comes while the storage is closed would open it again with another one.
        #
        # @param nothing [Object] the value where the storage was closed, or its threads were killed, before a look
        # @yieldparam bell [Bells::Bell]
        # @yieldparam engine [Engine]
        def with_bell(node, names, nothing)
          engine = self.engine
          bell = engine.bells.open(node, names)
          yield bell, engine
        rescue UnavailableError
          raise unless bell && (bell.ended || !engine.usable?)

          nothing
        ensure
          engine&.bells&.close_bell(bell)
        end

        def look(engine, node, queues, max, limits)
          return [] unless engine.read { |tables| tables.anything?(node, queues) }

          take(engine, node, queues, max, limits)
        end

        # What it has done is lost only with the host, and then no job of it is in flight any more.
        def take(engine, node, queues, max, limits)
          engine.write(durable: false) { |tables| tables.fetch(node, queues, max, limits) }
        end
      end
    end
  end
end
