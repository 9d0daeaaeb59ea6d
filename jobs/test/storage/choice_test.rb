# frozen_string_literal: true

require "jobs_helper"
require_relative "../support/program_of"
require_relative "../support/redis_case"
require "tmpdir"

# Which storage a program gets, and what it is told.
class StorageChoiceTest < RedisCase
  include ProgramOf

  FILE = "a file of the program's"
  SERVER = "the Redis at the usual address"
  NAMED = "the Redis that is named"
  SET = "what storage: says"
  TOLD = "an error with both lines"

  # What is set, in production or not, with Sidekiq's names or not, a Redis that answers at the usual address or not; in Rails and
  # outside alike. The first row that fits counts.
  TABLE = [
    [:storage,            "*",   "*",   "*",   SET],
    [:storage_and_redis,  "*",   "*",   "*",   SET],
    [:redis_url,          "*",   "*",   "*",   NAMED],
    [:redis,              "*",   "*",   "*",   NAMED],
    [:namespace,          "*",   "*",   "*",   NAMED],
    [:recover_exq,        "*",   "*",   "*",   NAMED],
    [:milliseconds,       "*",   "*",   "*",   NAMED],
    [:empty_redis_url,    false, false, "*",   FILE],
    [:storage_taken_back, false, false, "*",   FILE],
    [:nothing,            false, false, "*",   FILE],
    ["*",                 "*",   "*",   true,  SERVER],
    ["*",                 "*",   "*",   false, TOLD]
  ].freeze

  SETTINGS = { storage: { storage: :memory }, storage_and_redis: { storage: :memory, redis: "redis://named:1/2" },
               redis_url: {}, redis: { redis: "redis://named:1/2" }, namespace: { namespace: "ours" },
               recover_exq: { recover_exq: true }, milliseconds: { milliseconds: true }, empty_redis_url: {},
               storage_taken_back: { storage: nil }, nothing: {} }.freeze
  ENVIRONMENT = { redis_url: { "REDIS_URL" => "redis://named:1/2" }, empty_redis_url: { "REDIS_URL" => "" },
                  storage_and_redis: { "REDIS_URL" => "redis://named:1/2" } }.freeze

  def expected(*conditions)
    TABLE.find { |*row, _outcome| row.zip(conditions).all? { |said, is| said == "*" || said == is } }.last
  end

  def both = [true, false]

  def test_every_combination
    outcomes = SETTINGS.keys.product(both, both, both, both).map do |set, production, sidekiq, answers, rails|
      program(rails:, production:, sidekiq:, answers:, env: ENVIRONMENT.fetch(set, {})) do
        got = outcome(Jobs::Config.new.update(SETTINGS[set]))
        assert_equal expected(set, production, sidekiq, answers), got, [set, { production:, sidekiq:, answers:, rails: }].inspect
        got
      end
    end
    assert_equal [160, [FILE, SERVER, NAMED, SET, TOLD].sort], [outcomes.size, outcomes.uniq.sort]
  end

  def outcome(config)
    storage = Storage.for(config)
    case storage.identity
    when /\Athe memory of process #{Process.pid}\z/ then SET
    when "sqlite:#{File.realpath(@root)}/storage/jobs.sqlite3" then FILE
    when "redis://localhost:#{RedisClient::Config::DEFAULT_PORT}/0"
      config.milliseconds || config.recover_exq ? NAMED : SERVER
    when "redis://named:1/2", %r{\Aredis://localhost:\d+/0, namespace ours\z} then NAMED
    else flunk storage.identity
    end
  rescue Jobs::ConfigError => error
    assert_told(error.message)
  ensure
    storage&.close
  end

  def assert_told(message)
    assert_includes message, "Write storage: sqlite:storage/jobs.sqlite3 (a file"
    assert_includes message, "redis: redis://HOST:6379/0"
    assert_includes message, "REDIS_URL=redis://HOST:6379/0"
    assert_match(%r{\Anothing says where jobs are kept, and (the environment is staging|ringspun/jobs/sidekiq is loaded); so it },
                 message)
    assert_equal 1, message.lines.size
    TOLD
  end

  def test_a_server_that_answers_with_an_error_is_one_and_one_that_lets_nobody_in_is_none
    call("CONFIG", "SET", "requirepass", "secret")
    program(production: true) do
      error = assert_raises(Jobs::ConfigError) { Storage.for(Jobs::Config.new) }
      assert_match(/does not let this program in: NOAUTH/, error.message)
    end
  ensure
    @redis.call("CONFIG", "SET", "requirepass", "")
  end

  # --- production ---

  def environment(**env)
    program(env: env.transform_keys(&:to_s)) { [home.production?, home.environment] }
  end

  def test_what_production_is
    assert_equal [false, "development"], environment
    assert_equal [false, "test"], environment(RACK_ENV: "test")
    %w[APP_ENV RAILS_ENV RACK_ENV].each do |name|
      assert_equal [true, "production"], environment(name => "production")
      assert_equal [true, "staging"], environment(name => "staging")
      assert_equal [false, "development"], environment(name => "")
    end
    assert_equal [true, "production"], environment(APP_ENV: "development", RACK_ENV: "production"), "any of them"
  end

  def test_in_rails_it_is_that_of_rails
    program(rails: true, production: true, env: { "RACK_ENV" => "test" }) { assert_predicate home, :production? }
    program(rails: true, env: { "APP_ENV" => "production" }) { refute_predicate home, :production? }
  end

  # --- whose folder ---

  def test_a_folder_of_its_own
    Dir.mktmpdir do |given|
      program(env: { "RINGSPUN_JOBS_DIR" => given }) { assert_equal File.join(given, "jobs.sqlite3"), home.file("jobs.sqlite3") }
      program(rails: true, env: { "RINGSPUN_JOBS_DIR" => given }) do
        assert_equal File.join(@root, "storage/jobs.sqlite3"), home.file("jobs.sqlite3")
      end
    end
  end

  def test_the_folder_of_the_main_program
    program do
      { "app.rb" => @root, "bin/web.rb" => @root, "exe/web" => @root, "config/environment.rb" => @root,
        "lib/app.rb" => "#{@root}/lib" }.each do |path, folder|
        home.loaded(File.join(@root, path))
        assert_equal folder, home.folder, path
      end
      home.loaded(nil)
      assert_equal Dir.pwd, home.folder
    end
  end

  # Of a server that has given itself a title, of irb, and of a gem's executable.
  def test_the_main_program_of_a_process
    File.write("#{@root}/app.rb", 'p Dir.chdir("/") { $0 = "title"; Ringspun::Jobs.const_get(:Home).folder }')
    FileUtils.mkdir_p("#{@root}/gems/bin")
    FileUtils.cp("#{@root}/app.rb", "#{@root}/gems/bin/puma")
    start = [RbConfig.ruby, *Program::LOAD_PATH, "-rringspun/jobs"]
    env = { "RUBYOPT" => nil }
    assert_equal "#{@root.inspect}\n", told(env, *start, "app.rb")
    assert_equal "\"/\"\n", told(env, *start, "-e", File.read("#{@root}/app.rb"))
    assert_equal "\"/\"\n", told({ **env, "GEM_PATH" => [*Gem.path, "#{@root}/gems"].join(":") }, *start, "gems/bin/puma")
  end

  def told(env, *words) = IO.popen([env, *words, { chdir: @root, err: %i[child out] }], &:read)

  def test_a_folder_that_is_not_there_or_may_not_be_written
    program(env: { "RINGSPUN_JOBS_DIR" => "/nowhere" }) do
      error = assert_raises(Jobs::ConfigError) { Storage.for(Jobs::Config.new) }
      assert_match(%r{\Athere is no folder /nowhere for /nowhere/jobs.sqlite3; make it first\. Nothing says where .* write },
                   error.message)
      assert_match(/REDIS_URL=/, error.message)
    end
    program(root: "/proc") do
      error = assert_raises(Jobs::ConfigError) { Storage.for(Jobs::Config.new) }
      assert_match(%r{/proc/storage\. Nothing says where jobs are kept, so it would be a file at /proc: write storage: },
                   error.message)
    end
  end

  # --- relative paths ---

  # Of irb and the like, which have no other.
  def test_a_current_folder_that_is_gone
    program do
      home.loaded(nil)
      gone = Dir.mktmpdir
      Dir.chdir(gone) do
        Dir.rmdir(gone)
        [nil, "sqlite:jobs.sqlite3"].each do |storage|
          error = assert_raises(Jobs::ConfigError) { Storage.for(Jobs::Config.new.update(storage:)) }
          assert_match(/\Athe current folder is gone, and no other is known: write the whole path/, error.message)
        end
      end
    end
  end

  def test_a_relative_path_is_one_in_the_folder_of_the_program
    program do
      FileUtils.mkdir_p("#{@root}/db")
      forms = ["sqlite:db/a", { name: "sqlite", path: "db/a" }, { "name" => "sqlite", "path" => "db/a", "durable" => "normal" }]
      forms.each do |value|
        storage = Storage.for(Jobs::Config.new.update(storage: value))
        assert_equal "sqlite:#{File.realpath(@root)}/db/a", storage.identity
      end
    end
    assert_equal ["sqlite:/b/a", "sqlite:/a", "sqlite:", :memory, { name: :x, path: "/b/c" }],
                 ["sqlite:a", "sqlite:/a", "sqlite:", :memory, { name: :x, path: "c" }].map { |one| Storage.located(one, "/b") }
  end

  # --- identity ---

  def test_the_identity_has_no_password
    { {} => "redis://localhost:6379/0", { url: "redis://me:secret@h:1/3" } => "redis://h:1/3",
      { url: "rediss://:secret@h:1" } => "rediss://h:1/0", { host: "::1", port: 5 } => "redis://[::1]:5/0",
      { path: "/run/r.sock" } => "unix:///run/r.sock", { path: "/run/r.sock", db: 2 } => "unix:///run/r.sock, database 2",
      { name: "main", sentinels: [{ host: "s" }], db: 2 } => "redis://main by sentinels, database 2" }.each do |options, identity|
      assert_equal identity, Storage::Redis.new(options).identity
      assert_equal "#{identity}, namespace n", Storage::Redis.new(options, namespace: "n").identity
    end
    assert_equal "Ringspun::Jobs::Storage", Storage.new.identity
  end
end
