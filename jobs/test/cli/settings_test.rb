# frozen_string_literal: true

require "jobs_helper"
require "ringspun/jobs/cli"
require "support/command"
require "support/fork_server"
require "support/locale"
require "stringio"
require "tmpdir"

# What the command line and the configuration file say, and which of them counts.
class SettingsTest < Minitest::Test
  Jobs = Ringspun::Jobs
  CLI = Jobs::CLI

  # Before the descriptors are counted.
  def before_setup
    ForkServer.for("ringspun/jobs")
    super
  end

  def setup
    @folder = Dir.mktmpdir("ringspun-settings-")
  end

  def teardown = FileUtils.rm_rf(@folder)

  def path(name) = File.join(@folder, name)

  def write(name, text)
    FileUtils.mkdir_p(File.dirname(path(name)))
    File.write(path(name), text)
    path(name)
  end

  def refused(pattern, &block)
    error = assert_raises(Jobs::ConfigError, &block)
    assert_match pattern, error.message
    assert_equal 1, error.message.lines.size
  end

  # --- the command line ---

  def arguments(*words) = CLI.const_get(:Arguments).new(words)

  def settings(*words) = arguments(*words).settings

  def test_the_short_example
    words = %w[-r app.rb -q critical,5 -q default,1 -c 1000 --processes 4 --timeout 25 -C jobs.yml -e production]
    given = arguments(*words)
    assert_equal %w[app.rb jobs.yml production], [given.program, given.file, given.environment]
    assert_equal({ "concurrency" => 1000, "processes" => 4, "timeout" => 25, "queues" => { "critical" => 5, "default" => 1 } },
                 given.settings)
  end

  def test_every_setting_of_the_command_line_is_one_of_the_config
    words = %w[--storage memory --namespace n --log - --log-format json --log-level warn --redis redis://x:1/2 -t 1.5 -q a]
    config = Jobs::Config.new.update(settings(*words))
    assert_equal [:memory, "n", "-", "json", "warn", { url: "redis://x:1/2" }, 1.5, %w[a]],
                 [config.storage, config.namespace, config.log, config.log_format, config.log_level, config.redis, config.timeout,
                  config.queues]
  end

  def test_nothing_is_said
    assert_empty settings
    given = arguments
    assert_equal [nil] * 4, [given.program, given.file, given.environment, given.answer]
  end

  def test_queues_without_weights_are_strict
    assert_equal %w[a b], settings("-q", "a", "-q", "b")["queues"]
    assert_equal({ "a" => 3, "b" => 1 }, settings("-q", "a,3", "-q", "b")["queues"])
  end

  def test_queues_that_make_no_sense
    ["a,0", "a,-1", "a,x", "a,1,2", ",3", "", "a,"].each do |word|
      refused(/a queue must be NAME or NAME,WEIGHT \(1 or more\), got #{Regexp.escape(word.inspect)}/) { settings("-q", word) }
    end
    refused(/the queue a is given twice/) { settings("-q", "a", "-q", "a,2") }
  end

  def test_what_the_command_line_cannot_say
    refused(/invalid option: --wat; --help lists/) { arguments("--wat") }
    refused(/invalid option: --quue, did you mean --queue\?; --help lists/) { arguments("--quue", "a") }
    refused(/invalid argument: -c many/) { arguments("-c", "many") }
    refused(/missing argument: -r/) { arguments("-r") }
    refused(/unknown command "app.rb"; --help lists/) { arguments("app.rb") }
  end

  def test_help_and_version
    output = StringIO.new
    assert_equal 0, CLI.new(["--help"], output:).run
    assert_equal 0, CLI.new(["-V"], output:).run
    text = output.string
    assert_match(/^Usage: ringspun-jobs \[options\]$/, text)
    assert_match(/^ringspun-jobs #{Regexp.escape(Ringspun::VERSION)}$/, text)
    assert_operator text.lines.map(&:size).max, :<=, 121
    %w[--require --queue --concurrency --processes --timeout --config --environment --storage --namespace --redis --log
       --log-format --log-level --version --help].each { |name| assert_match(/^  (-\w, |    )#{name}\b/, text) }
  end

  # --- the file ---

  def file(text, environment: "development")
    CLI.const_get(:File).new(write("jobs.yml", text), environment)
  end

  def test_a_file
    given = file(<<~YAML)
      require: ./app.rb
      :concurrency: 20
      queues: { critical: 5, default: 1 }
      limits:
        slow: 3
      redis: { url: "redis://x", ssl_params: { verify_mode: 0 } }
      strategy: pool
      log_level: :warn
    YAML
    assert_equal "./app.rb", given.program
    config = Jobs::Config.new.update(given.settings)
    assert_equal [20, { "critical" => 5, "default" => 1 }, { "slow" => 3 }, :pool, "warn"],
                 [config.concurrency, config.queues, config.limits, config.strategy, config.log_level]
    assert_equal({ url: "redis://x", ssl_params: { verify_mode: 0 } }, config.redis)
  end

  def test_queues_as_a_list
    assert_equal %w[a b], file("queues: [a, b]").settings["queues"]
    assert_equal({ "a" => 2, "b" => 1 }, file("queues:\n  - [a, 2]\n  - b").settings["queues"])
    assert_equal({ "a" => 2 }, file("queues: ['a,2']").settings["queues"])
    refused(/a queue must be NAME or NAME,WEIGHT \(1 or more\), got {"a" ?=> ?2}/) { file("queues: [a: 2, b: 1]") }
    refused(/a queue must be NAME .*, got nil/) { file("queues: [a, ~]") }
  end

  def test_a_url_alone
    assert_equal({ url: "redis://x" }, Jobs::Config.new.update(file("redis: redis://x").settings).redis)
  end

  def test_sections
    text = <<~YAML
      concurrency: 1
      timeout: 1
      production:
        concurrency: 2
      test:
    YAML
    assert_equal({ "concurrency" => 1, "timeout" => 1 }, file(text).settings)
    assert_equal({ "concurrency" => 2, "timeout" => 1 }, file(text, environment: "production").settings)
    assert_equal({ "concurrency" => 1, "timeout" => 1 }, file(text, environment: "test").settings)
  end

  def test_erb
    assert_equal({ "concurrency" => 42 }, file("concurrency: <%= 6 * 7 %>").settings)
    assert_equal({ "concurrency" => 5 }, file("\u{feff}concurrency: 5").settings)
  end

  # Under cron there is no LANG.
  def test_a_file_in_the_locale_c
    write("crons.yml", "größe: { schedule: every hour, class: Report, args: [ü] }\n")
    Locale.in_locale_c do
      given = file("# größer\ntag: täg\nqueues: [<%= 'müll' %>]\ncron: #{path("crons.yml")}").settings
      assert_equal ["täg", ["müll"], ["größe"]], [given["tag"], given["queues"], given["cron"].keys]
    end
  end

  def test_an_empty_file
    assert_empty file("# nothing\n").settings
  end

  def test_files_that_make_no_sense
    refused(/jobs\.yml has an unknown setting concurency; there are require, .*beat.*redis/) { file("concurency: 1") }
    refused(/unknown setting concurency/) { file("concurency:") }
    refused(/unknown setting production: colour/) { file("production: { colour: red }") }
    refused(/unknown setting logger/) { file("logger: x") }
    refused(/jobs\.yml must have names and values/) { file("- a") }
    ["a: [", "a: !float abc", "a: !!omap [a]", "a: !!str { a: b }", "#{"[" * 6000}#{"]" * 6000}"].each do |text|
      refused(/jobs\.yml is no YAML: /) { file(text) }
    end
    refused(/jobs\.yml has ERB that raises SystemExit/) { file("<% exit %>") }
    refused(/jobs\.yml has a value of the class Date; put it in quotes, for a text/) { file("timeout: 2026-11-22") }
    refused(/jobs\.yml is no UTF-8: save it as such/) { file("\xff\xfet\0a\0g\0") }
    refused(/the YAML contains itself/) { file("labels: &all [*all]") }
    refused(/jobs\.yml has ERB that raises RuntimeError: no/) { file("<% raise 'no' %>") }
    refused(/jobs\.yml has ERB that raises SyntaxError/) { file("<% if %>") }
    refused(/jobs\.yml is no UTF-8: save it as such/) { file("tag: \xff") }
    refused(/unknown setting 5; there are/) { file("5: x") }
    refused(/the configuration file cannot be read: No such file.*other\.yml/) do
      CLI.const_get(:File).new(path("other.yml"), "test")
    end
  end

  def test_threads_of_sidekiqs_file_that_are_no_number
    ENV["RAILS_MAX_THREADS"] = "many"
    refused(/\ARAILS_MAX_THREADS must be a number, got "many"/) { CLI.const_get(:File).new(write("sidekiq.yml", ""), "test") }
  ensure
    ENV.delete("RAILS_MAX_THREADS")
  end

  def test_a_value_that_cannot_be
    refused(/concurrency must be an integer, 1 or more, got "many"/) { Jobs::Config.new.update(file("concurrency: many").settings) }
    refused(/there is no storage "mysql"; there are redis, memory, sqlite:PATH/) { Jobs::Config.new.update(file("storage: mysql").settings) }
    refused(/redis must be a URL or a Hash/) { Jobs::Config.new.update(file("redis:").settings) }
  end

  def test_the_files_of_the_guide
    guide = File.read(File.expand_path("../../../docs/17-jobs.md", __dir__))
    examples = guide.scan(/^```yaml\n(.*?)^```/m).flatten
    refute_empty examples
    examples.each { |text| Jobs::Config.new.update(file(text, environment: "production").settings) }
  end

  def test_the_guide_has_every_option_and_setting
    guide = File.read(File.expand_path("../../../docs/17-jobs.md", __dir__))
    names = Jobs::Config.settings.keys - [:logger]
    assert_empty(names.reject { |name| guide.include?("`#{name}`") })
    long = arguments("--help").answer.scan(/--[a-z-]+/).uniq - %w[--help --version]
    assert_empty(long.reject { |name| guide.include?("`#{name}`") })
  end

  # --- all of it ---

  # What a process has printed, and its status.
  def outcome_of(*words, env: {})
    env = { "REDIS_URL" => "redis://127.0.0.1:1", **env } # a storage that no test here reaches
    command = ForkedProgram.new("ringspun/jobs", env, chdir: @folder) { [Command::EXECUTABLE, *words] }
    [command.wait.exitstatus, command.log]
  ensure
    command&.close
  end

  # The same of a fresh Ruby, which finds libraries by its environment.
  def outcome_with(env, *words)
    command = Command.new(*words, chdir: @folder, env: env)
    [command.wait.exitstatus, command.lines.join]
  ensure
    command&.close
  end

  # In place of a worker it says what counts.
  TELL = <<~'RUBY'
    Ringspun::Jobs.configure { |config| config.concurrency = config.timeout = 20 }
    Ringspun::Jobs.const_get(:WorkerProcess).prepend(Module.new do
      def run
        puts %i[concurrency timeout dead_max retries].map { |name| Ringspun::Jobs.config.public_send(name) }.join(" "),
             ENV["RAILS_ENV"]
        exit 3
      end
    end)
  RUBY

  def test_the_command_line_comes_before_ruby_and_that_before_the_file
    write("app.rb", TELL)
    write("config/jobs.yml", "concurrency: 10\ntimeout: 10\ndead_max: 10\nrequire: app\ntest: { retries: 4 }")
    assert_equal [3, "30 20 10 25\ndevelopment\n"], outcome_of("-c", "30")
    assert_equal [3, "20 20 10 4\ntest\n"], outcome_of("-e", "test")
    assert_equal [3, "20 20 10 4\ntest\n"], outcome_of(env: { "APP_ENV" => "", "RAILS_ENV" => "test" })
    write("config/ringspun-jobs.yml", "dead_max: 5\nrequire: app")
    assert_equal [3, "20 20 5 25\ndevelopment\n"], outcome_of
  end

  # In place of a worker it has the file read again.
  READ_AGAIN = <<~'RUBY'
    Ringspun::Jobs.const_get(:WorkerProcess).prepend(Module.new do
      def run
        Dir.chdir("/")
        2.times do
          @reload.call(@log)
          File.delete(FILE) if File.exist?(FILE)
        end
        @log.flush
        exit 3
      end
    end)
  RUBY

  def test_the_file_is_read_again_where_it_was
    write("app.rb", "FILE = #{path("config/jobs.yml").inspect}\n#{READ_AGAIN}")
    write("config/jobs.yml", "require: app\ncron: { a: { schedule: every hour, class: A } }")
    status, text = outcome_of
    assert_equal 3, status, text
    assert_match(/the file was read again: the schedule has 1 entry$/, text)
    assert_match(%r{ERROR.* the schedule stays as it is: the configuration file cannot be read: .*config/jobs\.yml$}, text)
  end

  def test_the_programs_logger_and_the_command_lines_log
    write("app.rb", <<~'RUBY')
      Ringspun::Jobs.config.logger = Logger.new($stdout, formatter: ->(*, text) { "mine: #{text}\n" })
      worker = Ringspun::Jobs.const_get(:WorkerProcess)
      worker.prepend(Module.new { def run = Ringspun::Jobs.config.logger.warn("said") && exit(3) })
    RUBY
    assert_equal [3, "mine: said\n"], outcome_of("-r", "app.rb")
    assert_match(/ WARN pid=\d+ said\n\z/, outcome_of("-r", "app.rb", "--log", "-").last)
  end

  def test_a_folder_with_a_rails_app
    write("config/environment.rb", TELL)
    assert_equal [3, "20 20 10000 25\nproduction\n"], outcome_of("-e", "production")
    assert_equal 3, outcome_of("-r", @folder).first
  end

  def test_a_library
    assert_match(/\Aringspun-jobs: there is no file, folder or library nosuch\n\z/, outcome_of("-r", "nosuch").last)
    assert_match(%r{has no config/environment\.rb; name the file}, outcome_of("-r", ".").last)
    assert_match(/no program is given: name the one that has the jobs by -r/, outcome_of.last)
  end

  def test_a_mistake_is_one_line_and_status_64
    write("app.rb", "")
    write("late.yml", "lease: 1.5\nbeat: 1")
    write("queue.yml", "queues: { ringspun-quarantine: 1 }")
    write("limits.yml", "limits: { 'backup::a': 1 }")
    { %w[--wat] => /invalid option: --wat/, %w[-r app.rb -c 0] => /concurrency must be an integer, 1 or more, got 0/,
      %w[-r app.rb --redis http://x] => /RedisClient refuses the setting redis/,
      %w[-r app.rb --log /nowhere/log] => %r{the log /nowhere/log cannot be opened},
      %w[-r app.rb -C late.yml] => /beat must be at most half of lease, .* they are 1 s and 1.5 s/,
      %w[-r app.rb -C queue.yml] => /queues has "ringspun-quarantine", which is no name of a queue that programs may have/,
      %w[-r app.rb -C limits.yml] => /limits has "backup::a", which is no name/,
      %w[-r app.rb --storage mysql] => /there is no storage "mysql"; there are redis, memory/,
      %w[-r app.rb --storage memory --processes 2] => /processes must be 1 where the storage is in the memory of one process/,
      %w[-r app.rb --log-format xml] => /log_format must be text or json, got "xml"/ }.each do |words, pattern|
      assert_refused(pattern, *words)
    end
  end

  def assert_refused(pattern, *words, env: {})
    status, text = env.key?("RUBYLIB") ? outcome_with(env, *words) : outcome_of(*words, env: env)
    assert_equal [64, 1], [status, text.lines.size], text
    assert_match(/\Aringspun-jobs: #{pattern}/, text)
  end

  # As a gem has it.
  STORAGE = <<~'RUBY'
    class Files < Ringspun::Jobs::Storage::Memory
      def initialize(folder, **)
        super(**)
        puts "jobs are in #{folder}"
        exit(3)
      end
    end
    Ringspun::Jobs::Storage.register(:files) { |config, folder:| Files.new(folder, history: config.history) }
  RUBY

  def test_a_storage_of_a_gem
    write("gem/ringspun/jobs/storage/files.rb", STORAGE)
    write("gem/ringspun/jobs/storage/broken.rb", "require 'nosuch'")
    write("app.rb", "")
    library = { "RUBYLIB" => path("gem") }
    write("config/jobs.yml", "storage: { name: files, folder: /srv/jobs }\nrequire: ./app.rb")
    assert_equal [3, "jobs are in /srv/jobs\n"], outcome_with(library)
    assert_refused(/there is no storage {.*files.*}; there are redis, memory/)
    assert_refused(/the storage files needs the option folder/, "--storage", "files", env: library)
    write("config/jobs.yml", "storage: { name: files, folder: a, colour: red }\nrequire: ./app.rb")
    assert_refused(/the storage files has no option colour; it has folder/, env: library)
    write("config/jobs.yml", "storage: broken\nrequire: ./app.rb")
    assert_match(/cannot load such file -- nosuch/, outcome_with(library).last)
  end

  def test_what_a_program_adds_that_cannot_be_called
    { "Ringspun::Jobs.config.error_handlers << :report" => /error_handlers must have a method call, got :report/,
      "Ringspun::Jobs.config.server_middleware.add(String)" => /a middleware must have a method `call`, got String/,
      "Ringspun::Jobs.config.on(:startup)" => /the event startup needs a block/ }.each do |code, pattern|
      write("app.rb", code)
      assert_refused(pattern, "-r", "app.rb", "--storage", "memory")
    end
  end

  def test_what_a_program_for_sidekiq_adds_that_cannot_be_called
    { "config.server_middleware { |chain| chain.add(String) }" => /a middleware must be a class with a method call, got String/,
      "config.client_middleware { |chain| chain.prepend('Stamp') }" => /a middleware must be a class .*, got "Stamp"/,
      "config.error_handlers << :report" => /error_handlers must have a method call, got :report/,
      "config.death_handlers << nil" => /death_handlers must have a method call, got nil/ }.each do |code, pattern|
      write("app.rb", "require 'ringspun/jobs/sidekiq'\nSidekiq.configure_server { |config| #{code} }")
      assert_refused(pattern, "-r", "app.rb", "--storage", "memory", "--log", "log")
    end
  end

  def test_what_the_program_raises_is_its_own
    write("app.rb", "raise 'of the program'")
    status, text = outcome_of("-r", "app.rb")
    assert_equal 1, status
    assert_match(/app\.rb:1:in .*of the program \(RuntimeError\)/, text)
    write("app.rb", "require 'nosuch'")
    assert_match(/cannot load such file -- nosuch/, outcome_of("-r", "app.rb").last)
  end

  # --- Rails ---

  def test_the_state_of_active_support_is_kept_for_a_strand
    write("config/environment.rb", <<~'RUBY')
      module ActiveSupport
        IsolatedExecutionState = Struct.new(:isolation_level).new
      end
      Ringspun::Jobs.const_get(:WorkerProcess).prepend(Module.new do
        def run = puts(ActiveSupport::IsolatedExecutionState.isolation_level, Ringspun::Jobs::CLI.running?) || exit(3)
      end)
    RUBY
    assert_equal [3, "fiber\ntrue\n"], outcome_of
  end

  def test_an_app_without_the_railtie_is_refused
    write("config/environment.rb", "module Rails; def self.application = self; end")
    status, text = outcome_of
    assert_equal 64, status
    assert_match(/the Rails app has not required ringspun-jobs: its Gemfile must name the gem/, text)
  end
end
