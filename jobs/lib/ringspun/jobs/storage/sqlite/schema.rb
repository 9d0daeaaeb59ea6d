# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Sqlite < Storage
        # The tables, and the steps from each version of them to the next. A file of jobs alone says its version in
        # `user_version`. In a file of the program's own that belongs to the program, as the names of tables do: there ours have
        # a prefix, and a table says the version.
        #
        # An entry is written once, and what moves from place to place is a narrow row. The numbers of jobs are also the places
        # of those at the end of a queue; the places in front of it are below 0. Neither is ever given twice.
        #
        # @api private
        module Schema
          # "RSjb", by which a file says whose it is.
          APPLICATION = 0x5253_6a62

          FIRST = <<~SQL
            CREATE TABLE state (id INTEGER PRIMARY KEY, next INTEGER NOT NULL, front INTEGER NOT NULL, boot TEXT NOT NULL,
                                wakes_at REAL, wakes_by TEXT, due_unheard INTEGER NOT NULL, hold REAL NOT NULL,
                                processed INTEGER NOT NULL, failed INTEGER NOT NULL, twice INTEGER NOT NULL,
                                base REAL NOT NULL, beaten REAL);
            INSERT INTO state VALUES (1, 1, -1, '', NULL, NULL, 0, 0, 0, 0, 0, 0, NULL);
            CREATE TABLE queues (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, paused INTEGER NOT NULL DEFAULT 0,
                                 used INTEGER NOT NULL DEFAULT 0, most INTEGER);
            CREATE TABLE jobs (id INTEGER PRIMARY KEY, entry TEXT NOT NULL);
            CREATE TABLE ready (queue INTEGER NOT NULL, priority INTEGER NOT NULL, place INTEGER NOT NULL, job INTEGER NOT NULL,
                                PRIMARY KEY (queue, priority, place)) WITHOUT ROWID;
            CREATE TABLE flight (job INTEGER PRIMARY KEY, node INTEGER NOT NULL, queue INTEGER NOT NULL, number INTEGER NOT NULL);
            CREATE TABLE sets (job INTEGER PRIMARY KEY, kind INTEGER NOT NULL, at REAL NOT NULL, sum INTEGER NOT NULL);
            CREATE INDEX sets_in_order ON sets (kind, at, job);
            CREATE INDEX sets_sums ON sets (sum);
            CREATE TABLE nodes (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, listed INTEGER NOT NULL,
                                lease REAL, lasts REAL, locked INTEGER NOT NULL DEFAULT 0, gone REAL,
                                losses INTEGER NOT NULL DEFAULT 0);
            CREATE TABLE locks (token TEXT PRIMARY KEY, jid TEXT NOT NULL, ends REAL NOT NULL) WITHOUT ROWID;
            CREATE INDEX locks_ends ON locks (ends);
            CREATE TABLE pushed (jid TEXT PRIMARY KEY, ends REAL NOT NULL) WITHOUT ROWID;
            CREATE INDEX pushed_ends ON pushed (ends);
            CREATE TABLE results (jid TEXT PRIMARY KEY, text TEXT NOT NULL, ends REAL NOT NULL) WITHOUT ROWID;
            CREATE INDEX results_ends ON results (ends);
            CREATE TABLE histories (jid TEXT PRIMARY KEY, events TEXT NOT NULL, ends REAL NOT NULL) WITHOUT ROWID;
            CREATE INDEX histories_ends ON histories (ends);
            CREATE TABLE trials (jid TEXT PRIMARY KEY, tries INTEGER NOT NULL, isolated INTEGER NOT NULL,
                                 deaths INTEGER NOT NULL, last TEXT NOT NULL) WITHOUT ROWID;
            CREATE TABLE places (jid TEXT PRIMARY KEY, queue INTEGER NOT NULL, waits_until REAL NOT NULL,
                                 running INTEGER NOT NULL) WITHOUT ROWID;
            CREATE TABLE old_runs (node TEXT NOT NULL, fetched_from TEXT NOT NULL, jid TEXT NOT NULL, queue INTEGER NOT NULL,
                                   ends REAL NOT NULL, PRIMARY KEY (node, fetched_from, jid)) WITHOUT ROWID;
            CREATE TABLE signals (id INTEGER PRIMARY KEY, node TEXT NOT NULL, message TEXT NOT NULL, ends REAL NOT NULL);
            CREATE TABLE announced (node TEXT PRIMARY KEY, info TEXT NOT NULL, work TEXT NOT NULL, beat REAL NOT NULL,
                                    ends REAL NOT NULL) WITHOUT ROWID;
            CREATE TABLE measured (class TEXT PRIMARY KEY, processed INTEGER NOT NULL, failed INTEGER NOT NULL,
                                   milliseconds INTEGER NOT NULL, histogram TEXT NOT NULL) WITHOUT ROWID;
          SQL

          # Jobs that are done, the last minutes of each class, and how many jobs are where, so that nobody counts them.
          SECOND = <<~SQL
            CREATE TABLE done (job INTEGER PRIMARY KEY, at REAL NOT NULL, seconds REAL, class TEXT NOT NULL, queue INTEGER NOT NULL,
                               node TEXT NOT NULL);
            CREATE INDEX done_in_order ON done (at, job);
            CREATE INDEX done_of_class ON done (class, at, job);
            CREATE TABLE minutes (class TEXT NOT NULL, minute INTEGER NOT NULL, processed INTEGER NOT NULL, failed INTEGER NOT NULL,
                                  milliseconds INTEGER NOT NULL, histogram TEXT NOT NULL, PRIMARY KEY (class, minute)) WITHOUT ROWID;
            CREATE INDEX minutes_in_order ON minutes (minute);
            ALTER TABLE queues ADD COLUMN size INTEGER NOT NULL DEFAULT 0;
            CREATE TABLE set_sizes (kind INTEGER PRIMARY KEY, size INTEGER NOT NULL);
            INSERT INTO set_sizes VALUES (0, 0), (1, 0), (2, 0);
            UPDATE queues SET size = (SELECT count(*) FROM ready WHERE queue = queues.id);
            UPDATE set_sizes SET size = (SELECT count(*) FROM sets WHERE sets.kind = set_sizes.kind);
            ALTER TABLE locks ADD COLUMN stays INTEGER NOT NULL DEFAULT 1;
            ALTER TABLE state ADD COLUMN oldest INTEGER NOT NULL DEFAULT 2;
          SQL

          # The entries of schedules, each with the last tick that was pushed.
          THIRD = <<~SQL
            CREATE TABLE crons (name TEXT PRIMARY KEY, source TEXT NOT NULL, schedule TEXT NOT NULL, text TEXT NOT NULL,
                                tick REAL NOT NULL, seen REAL NOT NULL, paused INTEGER NOT NULL DEFAULT 0,
                                runs TEXT NOT NULL DEFAULT '[]') WITHOUT ROWID;
          SQL

          # The index by which the done jobs of a queue are found.
          FOURTH = "CREATE INDEX done_of_queue ON done (queue, at, job);\n"

          # A step that lets programs before it go on with the tables leaves `state.oldest` as it is. One after which they would
          # write what is wrong sets it to its own number.
          STEPS = [FIRST, SECOND, THIRD, FOURTH].freeze

          # What a file of the program's own has of ours in front of each name, and the table with the version.
          PREFIX = "ringspun_"
          VERSION = "ringspun_version"
          OURS = /\b(?:#{STEPS.join.scan(/CREATE (?:TABLE|INDEX) (\w+)/).flatten.join("|")})\b/
          private_constant :PREFIX, :VERSION, :OURS

          @prefixed = {}.compare_by_identity

          module_function

          # @param sql [String] a literal, for it is known by its identity
          # @return [String] the same on tables with the prefix
          def prefixed(sql) = @prefixed[sql] ||= prefix(sql).freeze

          # Brings a file to the version of this program. To be called in a turn of its own, or in the caller's transaction.
          #
          # @param connection [Connection, Borrowed]
          # @return [nil]
          # @raise [StorageError] the file is another program's, or of a version that this one cannot use
          def migrate(connection)
            return if there?(connection)

            connection.transaction do
              version = usable_version(connection) # another process may have come first
              STEPS.drop(version).each { |step| step.split(";\n").each { |statement| create(connection, statement) } }
              note(connection, [STEPS.size, version].max)
            end
            nil
          end

          # @return [Boolean] whether there is nothing to migrate
          # @raise (see migrate)
          def there?(connection) = usable_version(connection) >= STEPS.size

          # @return [Integer]
          # @raise (see migrate)
          def usable_version(connection)
            version = version_of(connection)
            refuse_new(connection, version) unless version.known >= version.oldest

            version.there
          end

          # To be called in each transaction: another process may have brought the file to a later version meanwhile.
          #
          # @param before [Integer] the version that it had
          # @return [nil]
          # @raise (see migrate)
          def still_usable(connection, before)
            usable_version(connection) unless number(connection) == before
            nil
          end

          # Finds out which names the tables have.
          #
          # @return [Version]
          # @raise [StorageError] the file is another program's
          def version_of(connection)
            there = find(connection)
            Version.new(there, STEPS.size, there > STEPS.size ? connection.value("SELECT oldest FROM state") : there)
          end

          # @return [Boolean] whether it is a file of the program's own, with tables of ours in it
          def beside?(connection) = !connection.value("SELECT 1 FROM sqlite_schema WHERE name = 'ringspun_version'").nil?

          class << self
            private

            def prefix(sql) = sql.gsub(OURS) { |name| PREFIX + name }

            def create(connection, statement) = connection.once(connection.beside ? prefix(statement) : statement)

            def note(connection, version)
              unless connection.beside
                connection.once("PRAGMA application_id = #{APPLICATION}")
                connection.once("PRAGMA user_version = #{version}")
                return
              end
              connection.once("CREATE TABLE IF NOT EXISTS #{VERSION} (number INTEGER NOT NULL)")
              connection.once("DELETE FROM #{VERSION}")
              connection.once("INSERT INTO #{VERSION} VALUES (#{version})")
            end

            def number(connection)
              connection.value(connection.beside ? "SELECT number FROM ringspun_version" : "PRAGMA user_version")
            end

            def find(connection)
              empty = empty?(connection) # before anything else: another process may make the tables meanwhile
              connection.beside = connection.value("PRAGMA application_id") != APPLICATION
              return number(connection) if !connection.beside || beside?(connection)

              connection.beside = connection.app?
              refuse(connection) unless connection.app? || empty
              0
            end

            def empty?(connection) = connection.value("SELECT count(*) FROM sqlite_schema").zero?

            def refuse(connection)
              raise StorageError, "#{connection.path} has tables of another program; give jobs a file of their own, or say by " \
                                  "which gem this program opens it, as in { name: :sqlite, path: #{connection.path.inspect}, " \
                                  "library: :sqlite3 }"
            end

            def refuse_new(connection, version)
              raise StorageError, "#{connection.path} has version #{version.there} of the tables, which programs need that " \
                                  "know version #{version.oldest}, and this one knows #{version.known} at most: run: bundle " \
                                  "update ringspun-jobs, and start it anew"
            end
          end
        end
        private_constant :Schema
      end
    end
  end
end
