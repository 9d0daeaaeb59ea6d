# frozen_string_literal: true

require "support/rails_case"

# The worker process of a generated application.
class RailsWorkerTest < RailsCase
  include RailsPostgres
  include Strands

  def test_concurrency_is_that_of_the_pool_unless_it_is_set
    process = worker(env: { "POOL" => "7" }, ready: false, fresh: true)
    assert_equal "7", process.await(/concurrency=(\d+) the worker is ready/)[1]
    assert_predicate process.finish, :success?
    refute_match(/the pool of/, process.lines.join)
  end

  def test_a_pool_that_is_too_small_is_told_at_the_start
    process = worker("-c", "10", env: { "POOL" => "3" }, ready: false)
    setting = RailsApp::VERSION.to_f < 8.1 ? "pool" : "max_connections"
    text = process.await(/WARN .*(the pool of the database .*)$/)[1]
    assert_match(/database primary has 3 connections for 10 jobs at once.* set #{setting}: 10 for primary in config.database.yml/,
                 text)
    process.await(/concurrency=10 the worker is ready/)
  end

  def test_settings_in_the_applications_configuration
    assert_equal [77, "unix://#{redis_path}"], app.run("Ringspun::Jobs.config.then { |all| [all.dead_max, all.redis[:url]] }")
    RailsApp.copy do |folder|
      RailsApp.set(folder, "concurency = 7")
      process = worker(folder: folder, ready: false)
      process.await(/\Aringspun-jobs: there is no setting concurency, did you mean concurrency\?/)
      assert_equal 64, process.wait.exitstatus
    end
  end

  def test_a_job_with_steps_goes_on_in_another_worker
    return if RailsApp::VERSION.to_f < 8.1 # has none

    process = worker
    app.run("StepsJob.perform_later; nil")
    assert_equal ["first"], seen
    assert_predicate process.finish, :success?
    assert_nothing_seen
    worker
    assert_equal ["second 1"], seen
  end

  def test_jobs_come_by_a_schedule_in_the_applications_zone
    assert_equal "Etc/UTC", app.run("Ringspun::Jobs.config.cron_zone")
    Dir.mktmpdir do |folder|
      settings = File.read("#{RailsApp.folder}/config/fast.yml")
      File.write("#{folder}/jobs.yml", "#{settings}\ncron: { beat: { schedule: every second, class: SessionJob } }\n")
      process = worker("-C", "#{folder}/jobs.yml")
      assert_equal process.pid.to_s, seen.first.split.first
      assert_predicate process.finish, :success?
    end
    cron = storage.crons.first
    assert_equal ["* * * * * * Etc/UTC", true], [cron.schedule, JSON.parse(cron.text)["wrapped"]]
  end

  def test_processes_have_connections_of_their_own
    worker("--processes", "2", fresh: true)
    app.run("ActiveJob.perform_all_later(Array.new(40) { SessionJob.new }); nil")
    sessions = seen(40).uniq.map(&:split)
    assert_equal sessions.size, sessions.map(&:last).uniq.size, "a connection of two processes"
  end

  def test_the_quarantine_has_connections_of_its_own
    first = worker("-C", "config/fast.yml")
    app.run("DeadlyJob.perform_later; nil")
    refute_predicate first.wait, :success?
    second = worker("-C", "config/fast.yml")
    lapse(first.pid)
    app.run("SessionJob.perform_later; nil")
    runs = seen(2)
    app.run("SessionJob.perform_later; nil")
    runs.concat(seen)
    of_worker, others = runs.map(&:split).partition { |pid, _| pid == second.pid.to_s }
    assert_equal [2, 1], [of_worker.size, others.size]
    refute_includes of_worker.map(&:last), others.first.last
  end

  # A job that tells its process, which version of its class it runs, and which one has the name by now. It ends when the test
  # says so.
  def write_version(folder, number)
    File.write("#{folder}/app/jobs/tell_job.rb", <<~RUBY)
      class TellJob < ApplicationJob
        def perform(text)
          tell("begins", text)
          Seen.wait
          tell("ends", text)
        end

        def tell(what, text)
          current = TellJob.equal?(self.class) ? "current" : "old"
          Seen << "\#{Process.pid} \#{text} \#{what} in \#{version} of \#{TellJob.new.version} \#{current}"
        end

        def version = #{number}
      end
    RUBY
  end

  def enqueue(text) = app.run("TellJob.perform_later('#{text}'); nil")

  def let_end = call("RPUSH", "go", "1")

  def told(pid, *texts) = texts.map { |text| "#{pid} #{text} current" }

  def test_in_development_a_job_after_a_change_waits_for_those_before_and_runs_the_new_code
    RailsApp.copy do |folder|
      write_version(folder, 1)
      pid = worker(env: { "RAILS_ENV" => "development" }, folder: folder).pid
      enqueue("a")
      assert_equal told(pid, "a begins in 1 of 1"), seen
      write_version(folder, 2)
      enqueue("b")
      yield_until("both are in flight") { storage.stats[:in_flight] == 2 }
      let_end
      assert_equal told(pid, "a ends in 1 of 1", "b begins in 2 of 2"), seen(2)
      let_end
      assert_equal told(pid, "b ends in 2 of 2"), seen
      write_version(folder, 3)
      enqueue("c")
      let_end
      assert_equal told(pid, "c begins in 3 of 3", "c ends in 3 of 3"), seen(2)
    end
  end
end
