# frozen_string_literal: true

require "digest"
require "fileutils"
require "json"
require "pathname"
require "rbconfig"
require "support/forked_command"
require "tmpdir"

# An application that `rails new` has generated, with our generator's files and those of test/rails/files. It stays in tmp/, one
# for each version of Rails and Ruby, until something that it was made of has changed.
class RailsApp
  ROOT = File.expand_path("../../..", __dir__)
  HERE = File.join(ROOT, "jobs/test/rails")
  VERSION = ENV.fetch("RINGSPUN_RAILS", "8.1")
  GEMS = File.join(HERE, VERSION)
  # Nothing that only a browser, a container or a clone of the application's own has a use for.
  WITHOUT = %w[bundle git test action-mailer action-mailbox action-text active-storage action-cable bootsnap dev-gems kamal solid
               thruster rubocop brakeman bundler-audit ci docker].freeze

  PRELUDE = File.join(__dir__, "rails_prelude.rb")

  # An application takes seconds to start, and many more beside other passes.
  START_SECONDS = 120

  class Error < StandardError; end

  class << self
    # @return [String] the folder of the application, made when there is none yet
    def folder = @folder ||= made(File.join(ROOT, "tmp/rails/#{VERSION}-#{RUBY_VERSION[/\d+\.\d+/]}/app"))

    # Makes what tests have in common: before the first one, for a test's time is limited, and it closes what it opens.
    def prepare
      folder
      server unless fresh?
    end

    # A driver for all tests of this process that have the same environment.
    def driver(env) = (@drivers ||= {})[env] ||= Driver.new(folder, env).tap { |one| Minitest.after_run { one.close } }

    # Another one like it, which a test may change.
    #
    # @yieldparam folder [String]
    def copy
      other = File.join(File.dirname(folder), "copy-#{Process.pid}")
      FileUtils.cp_r(folder, other)
      yield other
    ensure
      FileUtils.rm_rf(other)
    end

    # A setting of jobs, in the application's own configuration.
    def set(folder, text)
      path = "#{folder}/config/application.rb"
      File.write(path, File.read(path).sub(/^ *config\.load_defaults.*\n/) { |line| "#{line}    config.ringspun_jobs.#{text}\n" })
    end

    # Without the Bundler of the tests, and with that of the application.
    def env(folder)
      { "RUBYOPT" => nil, "RUBYLIB" => nil, "BUNDLER_SETUP" => nil, "BUNDLE_BIN_PATH" => nil,
        "BUNDLE_GEMFILE" => File.join(folder, "Gemfile"), "BUNDLE_PATH" => File.join(ROOT, "vendor/bundle"),
        "BUNDLE_VERSION" => "system", "BUNDLE_FROZEN" => "true", "SECRET_KEY_BASE" => "tests", "RAILS_ENV" => "production" }
    end

    # A program of the application, as `ruby FILE ARGUMENT...` in its folder, but forked from a Ruby that has loaded Rails: a boot
    # of that takes longer than most tests. By night it boots.
    #
    # @param fresh [Boolean] it boots, for the test is about that, or about its gems
    def run(folder, file, *arguments, env: {}, fresh: false)
      return ruby(folder, file, *arguments, env: env) if fresh || fresh?

      program = ForkedProgram.new(server, { **self.env(folder), **env }, chdir: folder) { [File.join(folder, file), *arguments] }
      program.wait.success? ? program.log : raise(Error, "#{[file, *arguments].join(" ")}:\n#{program.log}")
    ensure
      program&.close
    end

    # The same, and a test hears what it prints while it runs.
    #
    # @return [Command]
    def command(folder, file, *arguments, env: {}, chdir: folder, fresh: false)
      options = { chdir:, seconds: START_SECONDS, env: { **self.env(folder), **env } }
      return Command.new(*arguments, program: [file], **options) if fresh || fresh?

      ForkedCommand.new(*arguments, program: [File.expand_path(file, chdir)], server:, **options)
    end

    # From which its programs are forked.
    def server = ForkServer.for(PRELUDE, env: env(folder), options: ["-W0"], verbose: false)

    def fresh? = ENV["RINGSPUN_NIGHTLY"] == "1"

    def ruby(folder, *words, env: {})
      text = IO.popen({ **self.env(folder), **env }, [RbConfig.ruby, *words, { chdir: folder, err: %i[child out] }], &:read)
      Process.last_status.success? ? text : raise(Error, "#{words.join(" ")}:\n#{text}")
    end

    # A new one, as a user's is.
    def generate(folder, database: "sqlite3")
      FileUtils.rm_rf(folder)
      FileUtils.mkdir_p(File.dirname(folder))
      skipped = WITHOUT.map { |name| "--skip-#{name}" }
      ruby(File.dirname(folder), "-rbundler/setup", "-e", 'load Gem.bin_path("railties", "rails")', "--", "new",
           File.basename(folder), "--api", "--quiet", "--database=#{database}", *skipped,
           env: { "BUNDLE_GEMFILE" => File.join(GEMS, "Gemfile") })
      add_gems(folder)
      ruby(folder, "bin/rails", "generate", "ringspun:install", env: { "RAILS_ENV" => "development" })
    end

    private

    # Instead of the lines `gem "ringspun-jobs"` and `bundle install`.
    def add_gems(folder)
      root = Pathname(ROOT).relative_path_from(folder)
      %w[Gemfile Gemfile.lock].each do |name|
        text = File.read(File.join(GEMS, name))
        # The lock has the shortest way to each gem.
        text = text.gsub("../../../../", "#{root}/").sub("remote: ../../..\n", "remote: #{root}/jobs\n")
        File.write(File.join(folder, name), text)
      end
    end

    def made(folder)
      File.open(File.join(ROOT, "tmp/rails.lock"), File::CREAT | File::RDWR) do |lock|
        lock.flock(File::LOCK_EX)
        stamp = "#{folder}.stamp"
        next if File.exist?(stamp) && File.read(stamp) == fingerprint

        generate(folder)
        FileUtils.cp_r("#{HERE}/files/.", folder)
        keep_in_redis(folder)
        set(folder, "dead_max = 77")
        File.write(stamp, fingerprint)
      end
      folder
    end

    # What the generator writes has a test of its own; all others look into the Redis of the tests.
    def keep_in_redis(folder)
      path = "#{folder}/config/ringspun-jobs.yml"
      text = File.read(path)
      File.write(path, text.sub(/^storage: .*$/, 'redis: <%= ENV.fetch("REDIS_URL") %>'))
    end

    def fingerprint
      files = [__FILE__, *Dir["#{HERE}/{files,#{VERSION}}/**/*"], *Dir["#{ROOT}/jobs/lib/generators/**/*"]]
      Digest::SHA256.hexdigest(files.select { |path| File.file?(path) }.sort.map { |path| File.read(path) }.join("\0"))
    end
  end

  # A process that has loaded the application, as one of its web processes, and does what a test says. It has no other way to say
  # why it does not start than what it prints.
  class Driver
    CODE = File.join(__dir__, "rails_driver.rb")

    def initialize(folder, env)
      @log = Tempfile.create("driver")
      orders, @orders = IO.pipe
      @answers, answers = IO.pipe
      channels = [orders, answers].map { |io| "/proc/#{Process.pid}/fd/#{io.fileno}" }
      @pid = start(channels, { **RailsApp.env(folder), **env }, folder)
      answer
    rescue Error
      close
      raise
    ensure
      [orders, answers].compact.each(&:close)
    end

    # @return [Object] what JSON makes of the code's value
    # @raise [Error] with the names of the error's class and its superclasses
    def run(code)
      @orders.puts(JSON.generate(code))
      answer.fetch(0)
    end

    # What the code raises.
    #
    # @return [Hash{String => Object}] error, message
    def error_of(code)
      @orders.puts(JSON.generate(code))
      read
    end

    def close
      @orders.close
      Process.kill(:KILL, -@pid)
    rescue Errno::ESRCH
      nil
    ensure
      [@answers, @log].each(&:close)
      File.unlink(@log.path)
    end

    private

    def start(arguments, env, folder)
      return RailsApp.server.run(CODE, arguments, env, @log.path, folder) unless RailsApp.fresh?

      pid = spawn(env, RbConfig.ruby, "-W0", CODE, *arguments, chdir: folder, pgroup: true, in: File::NULL, %i[out err] => @log)
      Process.detach(pid)
      pid
    end

    def answer
      value = read
      value.is_a?(Hash) ? raise(Error, value.values.join("\n")) : value
    end

    def read
      @answers.wait_readable(START_SECONDS) or raise Error, "no answer:\n#{File.read(@log.path)}"
      JSON.parse(@answers.gets || raise(Error, "the application has ended:\n#{File.read(@log.path)}"))
    end
  end
end
