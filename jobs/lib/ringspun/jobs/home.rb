# frozen_string_literal: true

require "rbconfig"

module Ringspun
  module Jobs
    # Which program this process is of: its folder, by which the processes of one program find the same file, and whether it is in
    # production.
    #
    # The folder is what a framework or the command line has said, or else that of the main program. A program in `bin`, `exe` or
    # `config` belongs to the folder around it. The executable of a gem, such as a web server or irb, is no program of the user's:
    # then it is the current folder.
    #
    # @api private
    module Home
      # The names that mean no production. Who may see the web pages depends on that as well.
      SAFE = %w[development test].freeze
      VARIABLES = %w[APP_ENV RAILS_ENV RACK_ENV].freeze
      # Says where the files of a program without a framework are.
      FOLDER = "RINGSPUN_JOBS_DIR"
      # The folder for files of an application, as Rails has one.
      STORAGE = "storage"
      # Folders of programs that belong to the folder around them.
      INNER = %w[bin exe config].freeze
      private_constant :SAFE, :VARIABLES, :INNER

      # The main program at its start: a server changes its name, and may change the current folder.
      @program = [$PROGRAM_NAME, File.expand_path($PROGRAM_NAME)].freeze

      class << self
        # Says it for a framework.
        #
        # @param root [String]
        # @param environment [String]
        # @return [nil]
        def settle(root, environment)
          @root = root
          @environment = environment
          nil
        end

        # Says which program this process has loaded, for a command that is not the program itself.
        #
        # @param path [String, nil] nil: what it has loaded has no file of its own
        # @return [nil]
        def loaded(path)
          @loaded = path || :none
          nil
        end

        # @return [String] the whole path
        def folder = @root || folder_of(main)

        # @param name [String] of a file
        # @return [String] the path at which a program has the file that says nothing; its folder is there
        # @raise [SystemCallError]
        def file(name)
          given = ENV.fetch(FOLDER, "")
          return File.join(File.expand_path(given), name) unless @root || given.empty?

          within = File.join(folder, STORAGE)
          Dir.mkdir(within) unless File.directory?(within)
          File.join(within, name)
        rescue Errno::EEXIST # another process was first
          File.join(within, name)
        end

        # By what a framework says; else by any of these variables, as a program may have several.
        #
        # @return [Boolean] whether somebody's data depend on it
        def production? = !SAFE.include?(environment)

        # @return [Boolean]
        def test? = environment == "test"

        # @return [String] the one whose section of a file counts
        def section = given.first || SAFE.first

        # @return [String]
        def environment
          return @environment if @environment

          given.find { |name| !SAFE.include?(name) } || section
        end

        private

        # An empty variable says nothing.
        def given = ENV.values_at(*VARIABLES).reject { |name| name.to_s.empty? }

        # @return [String, nil]
        def main
          return (@loaded unless @loaded == :none) if @loaded

          name, path = @program
          renamed = File.expand_path($PROGRAM_NAME) unless $PROGRAM_NAME == name
          [renamed, path].compact.find { |each| File.file?(each) && !of_a_gem?(each) }
        end

        def folder_of(path)
          return current unless path

          folder = File.dirname(path)
          INNER.include?(File.basename(folder)) ? File.dirname(folder) : folder
        end

        # @raise [ConfigError]
        def current
          Dir.pwd
        rescue SystemCallError => error
          raise ConfigError, "the current folder is gone, and no other is known: write the whole path of the storage, or " \
                             "change to a folder that there is (#{error.message})"
        end

        def of_a_gem?(path)
          whole = File.realpath(path)
          [Gem.bindir, RbConfig::CONFIG["bindir"], *Gem.path].any? do |folder|
            File.directory?(folder) && whole.start_with?("#{File.realpath(folder)}/")
          end
        end
      end
    end
    private_constant :Home
  end
end
