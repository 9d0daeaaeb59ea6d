# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Sqlite < Storage
        # The SQLite that the gem extralite-bundle brings along; and which one a file is opened by. A file of the program's own is
        # opened by the gem sqlite3, as the program does: two copies of SQLite in one process drop each other's locks on it, see
        # https://www.sqlite.org/howtocorrupt.html#multiple_copies_of_sqlite_linked_into_the_same_application
        #
        # Ruby loads extensions so that all of them see each other's symbols. The first SQLite of a process would then serve every
        # gem that has one: an old one that another gem has loaded would write our file, or ours, which is built without FTS5,
        # would run the queries of the program. So what the program's bundle has is loaded first, and ours looks for symbols in
        # itself first (https://man7.org/linux/man-pages/man3/dlopen.3.html, RTLD_DEEPBIND).
        #
        # @api private
        module Library
          # All before can corrupt a database in WAL mode: https://www.sqlite.org/wal.html#the_wal_reset_bug
          VERSION = "3.51.3"
          # As Linux has it on all processors, dlopen(3).
          DEEPBIND = 8
          NAMES = %i[extralite sqlite3].freeze
          # https://www.sqlite.org/rescode.html
          BUSY = 5
          CANTOPEN = 14
          private_constant :DEEPBIND, :BUSY, :CANTOPEN

          module_function

          # @return [nil]
          # @raise [ConfigError]
          def load
            return if @loaded

            unless defined?(::Extralite)
              require "sqlite3" if defined?(::SQLite3) || Gem.loaded_specs.key?("sqlite3")
              keep_apart
              require "extralite"
            end
            memory = ::Extralite::Database.new(":memory:")
            [::Extralite.sqlite3_version, memory.query_single_splat("SELECT sqlite_version()")].each { |version| check(version) }
            memory.close
            @loaded = true
            nil
          rescue LoadError => error
            raise ConfigError, "the storage sqlite needs a gem; write gem \"extralite-bundle\", \"~> 2.15\" into the Gemfile " \
                               "(#{error.message})"
          end

          # @param version [String]
          # @raise [ConfigError]
          def check(version)
            return if Gem::Version.new(version) >= Gem::Version.new(VERSION)

            raise ConfigError, "the storage sqlite needs SQLite #{VERSION} or later, for earlier ones can corrupt the file, " \
                               "and this process has loaded #{version}; run: bundle update extralite-bundle sqlite3"
          end

          # @param path [String] of a file that no storage of this process has open
          # @param wanted [Symbol, nil] as the settings say
          # @yieldparam look [Proc] opens the file, and is to be called if that may be done
          # @yieldreturn [Boolean] what it says
          # @return [Array(Symbol, Boolean)] the gem, and whether it is the program's own file
          # @raise [ConfigError]
          # @raise [UnavailableError] nobody can say now
          def for(path, wanted)
            configs = active_record_s(path).each { |config| refuse_old(path) || refuse_mode(config, path) }
            wanted ||= :sqlite3 if configs.any?
            openers = openers(path)
            refuse_two(path) if (openers | [*wanted]).size > 1
            gem = wanted || openers.first
            return [gem, true] if gem

            Location.refuse_unknown(path) if defined?(::SQLite3) && open_by_others?(Location.identity(path))
            [defined?(::SQLite3::Database) && yield(-> { beside?(path) }) ? :sqlite3 : :extralite, false]
          end

          # @param library [Symbol] of the connection
          # @param opened_by [Symbol]
          # @param what [String] the connection's name
          # @return [String]
          def two_copies(path, library, opened_by, what)
            "#{what} is one of the gem #{library}, and the storage has opened #{path} by #{opened_by}: two copies of SQLite " \
              "drop each other's locks on it. Set the storage to { name: :sqlite, path: #{path.inspect}, library: " \
              "#{library.inspect} }"
          end

          # @param config [ActiveRecord::DatabaseConfigurations::DatabaseConfig]
          # @return [Boolean] whether it names that file
          def same_file?(config, path) = Location.same?(File.expand_path(file_of(config.database), root), path)

          # Loads the gem sqlite3, and looks at its library.
          #
          # @param path [String] for the message
          # @return [nil]
          # @raise [ConfigError]
          def load_app_s(path)
            require "sqlite3"
            # Early versions of the gem do not say.
            packaged = !::SQLite3.const_defined?(:SQLITE_PACKAGED_LIBRARIES) || ::SQLite3::SQLITE_PACKAGED_LIBRARIES
            check_app_s(path, ::SQLite3::SQLITE_LOADED_VERSION, packaged: packaged)
          rescue LoadError => error
            raise ConfigError, "#{path} is to be opened by the gem sqlite3, which is not there: #{error.message}"
          end

          # @param version [String]
          # @param packaged [Boolean] whether the gem has brought it along
          # @return [nil]
          # @raise [ConfigError]
          def check_app_s(path, version, packaged: true)
            return if Gem::Version.new(version) >= Gem::Version.new(VERSION)

            system = "; it was built with the SQLite of the system, so then also: bundle config set build.sqlite3 " \
                     "--disable-system-libraries && bundle pristine sqlite3"
            raise ConfigError, "#{path} is opened by the program's own gem sqlite3, which has SQLite #{version}. Before " \
                               "#{VERSION} it can corrupt the file; run: bundle update sqlite3#{system unless packaged}; or " \
                               "give jobs a file of their own"
          end

          # Where the linker cannot do that, the version tells whose library came first.
          def keep_apart
            require_fiddle
            _, path = $LOAD_PATH.resolve_feature_path("extralite")
            Fiddle::Handle.new("#{File.dirname(path)}/extralite_ext.so", Fiddle::RTLD_LAZY | DEEPBIND) if path
          rescue LoadError, Fiddle::DLError
            nil
          end

          # Ruby 3.4 warns that it will be a gem of its own, and no program has to know that. Where Bundler hides that gem, the
          # version of the library decides: see above.
          def require_fiddle
            verbose, $VERBOSE = $VERBOSE, nil
            require "fiddle"
          ensure
            $VERBOSE = verbose
          end

          # Before anybody has opened it, as in a worker that starts.
          #
          # @return [Array<ActiveRecord::DatabaseConfigurations::DatabaseConfig>] those that name the file
          def active_record_s(path)
            return [] unless defined?(::ActiveRecord::Base)

            configs = ::ActiveRecord::Base.connection_handler.connection_pool_list(:all).map(&:db_config)
            configs.select { |config| config.adapter == "sqlite3" && same_file?(config, path) }
          end

          # Before Rails 8.0 connections wait for a lock in the library: https://www.sqlite.org/c3ref/busy_timeout.html
          def refuse_old(path)
            return if ::ActiveRecord.version >= Gem::Version.new("8.0")

            raise ConfigError, "Active Record #{::ActiveRecord.version} stops the whole process while a job waits for the lock " \
                               "for #{path}, also the job that has the lock; use Rails 8.0 or give jobs a file of their own"
          end

          # Active Record would set it with each new connection, and wait for ours, which keep the other one.
          def refuse_mode(config, path)
            pragmas = config.configuration_hash[:pragmas].to_h
            mode = pragmas[:journal_mode] || pragmas["journal_mode"]
            return if mode.nil? || mode.to_s.casecmp?("wal")

            raise ConfigError, "the settings of Active Record have journal_mode: #{mode} for #{path}, and jobs there need WAL, " \
                               "which it has without that line; leave it out, or give jobs a file of their own"
          end

          # It may be the address of a file, https://www.sqlite.org/uri.html
          def file_of(database) = database.to_s.delete_prefix("file:").delete_prefix("//").sub(/\?.*\z/, "")

          def root = defined?(::Rails.root) && ::Rails.root ? ::Rails.root.to_s : Dir.pwd

          # The gems by which the program itself has the file open.
          def openers(path)
            file = Location.identity(path)
            return [] unless Location.open?(file)

            { extralite: "::Extralite::Database", sqlite3: "::SQLite3::Database" }.select do |_, name|
              Object.const_defined?(name) && ObjectSpace.each_object(Object.const_get(name)).any? { |one| opened?(one, file) }
            end.keys
          end

          def open_by_others?(file)
            !file.nil? && Location.surely? { Location.open_files.count { |one,| one == file } > Guard.count(file) }
          end

          def opened?(database, file)
            !database.closed? && Location.identity(database.filename.to_s) == file
          rescue StandardError # one that is being opened or closed
            false
          end

          # To be called while nobody has it open.
          def beside?(path)
            return false unless File.size?(path)

            database = ::Extralite::Database.new(path)
            !database.query_single_splat("SELECT 1 FROM sqlite_schema WHERE name = 'ringspun_version'").nil?
          rescue ::Extralite::Error => error
            nobody_knows = database.nil? || [BUSY, CANTOPEN].include?(database.errcode & 0xff)
            raise UnavailableError, "#{path} cannot be opened: #{error.message}" if nobody_knows

            false # whoever opens it next is told
          ensure
            database&.close
          end

          def refuse_two(path)
            raise ConfigError, "#{path} is opened in this process by the gem sqlite3 and by extralite, and two copies of " \
                               "SQLite drop each other's locks on it; open it by one of them, which library: of the storage names"
          end
          private_class_method :keep_apart, :require_fiddle, :active_record_s, :refuse_old, :refuse_mode, :file_of, :root,
                               :openers, :open_by_others?, :opened?, :beside?, :refuse_two
        end
        private_constant :Library
      end
    end
  end
end
