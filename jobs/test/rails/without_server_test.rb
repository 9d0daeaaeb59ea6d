# frozen_string_literal: true

require "jobs_helper"
require "support/rails_app"

RailsApp.prepare

# A generated application as the generator leaves it: web and worker, and no server.
class RailsWithoutServerTest < Minitest::Test
  include AnyBackend

  # What jobs have told, in a file.
  TELL = <<~'RUBY'
    module Tell
      PATH = Rails.root.join("tmp/told").to_s

      def self.call(text) = File.write(PATH, "#{text}\n", mode: "a")
    end
  RUBY

  JOBS = <<~'RUBY'
    class SoftJob < ApplicationJob
      def perform(text) = Tell.call("soft #{text}")
    end

    class HardJob
      include Ringspun::Jobs::Job

      def perform(text) = Tell.call("hard #{text}")
    end
  RUBY

  ENQUEUE = <<~'RUBY'
    SoftJob.perform_later("now")
    HardJob.perform_async("now")
    ActiveJob.perform_all_later(SoftJob.new("bulk"), SoftJob.new("more"))
    HardJob.set(in: 0.1).perform_async("later")
    puts "kept in #{Ringspun::Jobs.storage.identity}"
  RUBY

  # Nothing of it says where a Redis is, and nobody has it in SEEN.
  def env(environment: "production")
    { "DATABASE_URL" => "sqlite3:storage/one.sqlite3", "SECOND_URL" => "sqlite3:storage/two.sqlite3", "RAILS_ENV" => environment,
      "REDIS_URL" => nil, "RINGSPUN_JOBS_DIR" => nil, "SEEN" => nil }
  end

  def application
    RailsApp.copy do |folder|
      FileUtils.rm_rf(["#{folder}/config/ringspun-jobs.yml", "#{folder}/storage", "#{folder}/config/initializers/tests.rb",
                       *Dir["#{folder}/app/jobs/*"] - ["#{folder}/app/jobs/application_job.rb"]])
      FileUtils.mkdir_p(["#{folder}/tmp", "#{folder}/elsewhere"])
      File.write("#{folder}/app/models/tell.rb", TELL)
      JOBS.split(/^(?=class )/).zip(%w[soft_job hard_job]) { |text, name| File.write("#{folder}/app/jobs/#{name}.rb", text) }
      RailsApp.run(folder, "bin/rails", "generate", "ringspun:install", env: env(environment: "development"))
      yield File.realpath(folder)
    end
  end

  def runner(folder, code, **) = RailsApp.run(folder, "bin/rails", "runner", code, env: env(**))

  def start(folder, **) = @worker = RailsApp.command(folder, "bin/jobs", env: env, **)

  def teardown
    @worker&.close
    super
  end

  TOLD = ["hard later", "hard now", "soft bulk", "soft more", "soft now"].freeze

  def assert_all_run(folder, place, **)
    assert_includes runner(folder, ENQUEUE), "kept in #{place}\n"
    start(folder, **)
    @worker.await(/storage=#{Regexp.escape(place)} queues=\* concurrency=20 the worker is ready/)
    5.times { @worker.await(/class=(Soft|Hard)Job queue=default elapsed=\S+ done$/) }
    assert_predicate @worker.finish, :success?
    assert_equal TOLD, File.readlines("#{folder}/tmp/told", chomp: true).sort
  end

  def test_what_a_web_process_enqueues_a_worker_runs
    application do |folder|
      assert_all_run(folder, place = "sqlite:#{folder}/storage/jobs.sqlite3", fresh: true)
      text = RailsApp.run(folder, "bin/jobs", "status", env:)
      assert_match(/^processed 5, failed 0, enqueued 0, scheduled 0, .*\nin #{Regexp.escape(place)}$/, text)
      # From another folder, with the application named: still the same file.
      assert_match(/^in #{Regexp.escape(place)}$/, told(folder, "-r", "#{folder}/config/environment.rb"))
      assert_empty Dir.children("#{folder}/elsewhere")
    end
  end

  def told(folder, *words)
    RailsApp.ruby(folder, "-e", 'Dir.chdir("elsewhere") { load "../bin/jobs" }', "--",
                  "status", "-C", "../config/ringspun-jobs.yml", *words, env:)
  end

  def test_in_an_initializer_a_path_is_one_in_the_application
    application do |folder|
      File.write("#{folder}/config/ringspun-jobs.yml", "queues: ['*']\n")
      File.write("#{folder}/config/initializers/jobs.rb", <<~RUBY)
        Ringspun::Jobs.configure { |config| config.storage = "sqlite:tmp/here.sqlite3" }
      RUBY
      assert_all_run(folder, "sqlite:#{folder}/tmp/here.sqlite3")
    end
  end

  def test_without_any_setting_it_is_a_file_and_in_production_an_error_with_the_lines
    application do |folder|
      File.write("#{folder}/config/ringspun-jobs.yml", "queues: ['*']\n")
      FileUtils.rm_rf("#{folder}/storage")
      text = runner(folder, ENQUEUE, environment: "development")
      assert_includes text, "kept in sqlite:#{folder}/storage/jobs.sqlite3\n"
      said = "jobs are kept in sqlite:#{folder}/storage/jobs.sqlite3, for nothing says where\n"
      log = File.readlines("#{folder}/log/development.log")
      assert_equal 1, log.count { |line| line.end_with?(said) }, log.join # behind a tag of Active Job's
      File.write("#{folder}/config/initializers/nobody.rb", <<~RUBY)
        RedisClient::Config.__send__(:remove_const, :DEFAULT_PORT)
        RedisClient::Config::DEFAULT_PORT = 1
      RUBY
      start(folder)
      @worker.await(%r{\Aringspun-jobs: nothing says where .* the environment is production; .* Write storage: sqlite:storage/})
      assert_equal 64, @worker.wait.exitstatus
    end
  end
end
