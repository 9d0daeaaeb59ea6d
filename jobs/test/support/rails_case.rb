# frozen_string_literal: true

require "jobs_helper"
require "pg"
require "support/rails_app"
require "support/redis_case"
require "tmpdir"

RailsApp.prepare

# A generated application on the tests' Redis, with two databases of SQLite, which are empty at the start of each test.
class RailsCase < RedisCase
  SCHEMA = <<~'RUBY'
    Note.connection.create_table(:notes, force: true) { |table| table.string :text }
    Other.connection.create_table(:others, force: true) { |table| table.string :text }
    [Note, Other].each(&:reset_column_information)
    Ringspun::Jobs.close # a test begins without any client of Redis
  RUBY

  class << self
    # A folder for the databases of this process.
    def folder = @@folder ||= Dir.mktmpdir("ringspun-rails-").tap { |path| Minitest.after_run { FileUtils.rm_rf(path) } }
  end

  # Before the leak checks look: the application serves all tests of this process.
  def before_setup
    Servers.redis
    @app = RailsApp.driver(env)
    super
  end

  def setup
    super
    app.run(SCHEMA)
  end

  # A web process of the application.
  attr_reader :app

  def env
    { "REDIS_URL" => "unix://#{redis_path}", "SEEN" => redis_path, "DATABASE_URL" => database("one"),
      "SECOND_URL" => database("two") }
  end

  def database(name) = "sqlite3:#{RailsCase.folder}/#{name}.sqlite3"

  # A worker process.
  def worker(*arguments, env: {}, folder: RailsApp.folder, ready: true, fresh: false)
    command = opened(RailsApp.command(folder, "bin/jobs", *arguments, env: { **self.env, **env }, fresh: fresh))
    command.await(/the worker is ready/) if ready
    command
  end

  # What jobs have told, the oldest first.
  def seen(count = 1) = Array.new(count) { call_and_wait("BLPOP", "seen")&.last || flunk("nothing more is seen") }

  def assert_nothing_seen = assert_equal([], call("LRANGE", "seen", 0, -1))

  def entries(queue = "default") = storage.list(queue, 0, 100).map { |job| JSON.parse(job.entry) }

  def jids(queue = "default") = entries(queue).map { |entry| entry["jid"] }

  private

  def call_and_wait(*command)
    call("PING")
    @redis.blocking_call(0, *command, RailsApp::START_SECONDS)
  end
end

# The same on Postgres.
module RailsPostgres
  def before_setup
    RailsPostgres.databases
    super
  end

  def self.databases
    @databases ||= begin
      connection = PG.connect(host: Servers.postgres_endpoint.folder, user: "ringspun", dbname: "postgres")
      %w[rails_one rails_two].each { |name| connection.exec("CREATE DATABASE #{name}") }
      connection.close
      true
    end
  end

  def database(name) = "postgresql://ringspun@#{Servers.postgres_endpoint.folder.gsub("/", "%2F")}/rails_#{name}"
end
