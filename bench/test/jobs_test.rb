# frozen_string_literal: true

require_relative "test_helper"

require "socket"
require "bench/http_server"
require "bench/jobs_file"
require "bench/meter"
require "bench/rails_jobs"
require "bench/sqlite_library"
require "bench/working"

# What stands around the contenders in the tables of jobs.
class BenchTest::JobsTest < Minitest::Test
  def test_a_server_answers_in_every_type_and_is_emptied
    server = Bench::RedisServer.start
    assert_equal "PONG", server.ask("PING")
    assert_equal 2, server.ask("LPUSH", "list", "", "a\r\nb")
    assert_equal ["a\r\nb", ""], server.ask("LRANGE", "list", 0, -1)
    assert_nil server.ask("GET", "nothing")
    assert_match(/WRONGTYPE/, assert_raises(RuntimeError) { server.ask("GET", "list") }.message)
    server.empty
    assert_equal 0, server.ask("DBSIZE")
  end

  def test_there_is_one_server_for_each_way_to_keep_what_it_has
    once, always = %w[no always].map { |fsync| Bench::RedisServer.start(fsync:) }
    assert_same once, Bench::RedisServer.start
    assert_equal %w[appendonly no], once.ask("CONFIG", "GET", "appendonly")
    assert_equal %w[appendonly yes], always.ask("CONFIG", "GET", "appendonly")
    assert_equal %w[appendfsync always], always.ask("CONFIG", "GET", "appendfsync")
    refute_equal once.port, always.port
  end

  def test_the_floor_pushes_every_job_once
    server = Bench::RedisServer.start
    sample = floor("redis_push.c", server.port, 150, 64, 217) # the last batch is a smaller one
    assert_equal({ "bytes" => 150 * 217, "lost" => 0 }, sample["proof"], sample["failed"])
    assert_equal 150, sample["operations"]
    assert_equal 0, server.ask("DBSIZE")
  end

  def test_the_floor_wants_a_server
    assert_match(/exit 1: connect/, floor("redis_push.c", FreePort.find, 1, 1, 217)["failed"])
  end

  def test_the_floor_of_a_file_inserts_every_job_once_in_both_ways
    %w[full normal].each do |durable|
      sample = floor("sqlite_push.c", *Bench::SqliteLibrary.files, durable, 100, 48, 217)
      assert_equal({ "bytes" => 100 * 217, "lost" => 0 }, sample["proof"], sample["failed"])
      assert_equal 100, sample["operations"]
    end
  end

  def test_the_floor_of_a_file_says_that_it_has_no_library
    assert_equal "no SQLite for the floor", floor("sqlite_push.c", "", "nowhere.so", "full", 1, 1, 217)["unavailable"]
  end

  # In a process of its own, for this one must not load a gem with SQLite in it.
  def test_a_file_has_what_a_server_has
    program = <<~'RUBY'
      require "json"
      require "bench/table"
      require "bench/jobs_file"
      file = Bench::JobsFile.new(ARGV.first, "normal")
      file.push(%w[{"jid":"1"} {"jid":"2"}])
      file.push(%w[{"jid":"3"}], at: 9e9)
      before = [file.waiting, file.entry, file.jobs_left.values]
      file.empty
      puts JSON.generate([*before, file.waiting, file.storage.stats.fetch(:scheduled)])
    RUBY
    Dir.mktmpdir do |folder|
      out, = Open3.capture2e(Bench::Sampler::LIBRARIES, RbConfig.ruby, "-e", program, folder)
      assert_equal [2, '{"jid":"1"}', [2, 0], 0, 0], JSON.parse(out), out
    end
  end

  def test_requests_are_answered_after_the_latency_and_side_by_side
    Bench::HttpServer.during(0.05) do |port|
      began = now
      sockets = Array.new(300) { TCPSocket.new("127.0.0.1", port) }
      sockets.each { |socket| socket.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n") }
      answers = sockets.map(&:read)
      assert_operator now - began, :>=, 0.05
      assert_equal 1, answers.uniq.size
      assert_match(/\AHTTP\/1.1 200 OK\r\n.*\r\n\r\nhello\z/m, answers.first)
    ensure
      sockets.each(&:close)
    end
  end

  def test_a_worker_that_ends_is_no_reason_to_wait
    with_scratch do
      working = Bench::Working.new(Bench::Meter.new, :ringspun, 0, ["done 1"])
      error = assert_raises(RuntimeError) { working.run { working.news } }
      assert_match(/\Athe worker has ended \(pid \d+ exit 64\): .*concurrency must be an integer/, error.message)
    end
  end

  def test_no_process_of_several_outlives_an_error
    with_scratch do
      before = children
      working = Bench::Working.new(Bench::Meter.new, :sidekiq, 1, ["each"], processes: 2)
      began = nil
      error = assert_raises(RuntimeError) { working.run { (began = children - before) && raise("no more") } }
      assert_equal ["no more", 2], [error.message, began.size]
      assert_equal before, children
    end
  end

  def test_jobs_that_a_worker_has_left_or_failed_are_told
    with_scratch do
      working = Bench::Working.new(Bench::Meter.new, :ringspun, 5, [])
      working.enqueue("HardJob", [1], 3)
      assert_equal({ left: 3, failed: 0 }, working.finish)
      Bench::RedisServer.start.ask("ZADD", "retry", 1, "a job")
      assert_equal({ left: 3, failed: 1 }, working.finish)
    end
  end

  def test_a_database_of_the_server_is_asked
    server = Bench::PostgresServer.start
    server.ask("create database sample")
    assert_equal "sample", server.ask("select current_database()", database: "sample")
    assert_match(/does not exist/, assert_raises(RuntimeError) { server.ask("select * from nothing") }.message)
  ensure
    server.ask("drop database sample")
  end

  def test_without_its_gems_the_application_says_how_they_are_installed
    missing = { "BUNDLE_GEMFILE" => File.join(Bench::ROOT, "nowhere/Gemfile") }
    error = assert_raises(Bench::Unavailable) { Bench::RailsJobs.find_gems(missing) }
    assert_equal "bin/setup --peers", error.message
  end

  private

  def children = File.read("/proc/self/task/#{Process.pid}/children").split

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def floor(program, *arguments)
    table = BenchTest.table { floor(program) { |**| arguments } }
    Bench::Sampler.new(time_limit: 60.0).sample(table, table.floor, {})
  end

  def with_scratch
    kept = ENV.fetch("BENCH_SCRATCH", nil)
    Dir.mktmpdir do |folder|
      ENV["BENCH_SCRATCH"] = folder
      yield
    end
  ensure
    ENV["BENCH_SCRATCH"] = kept
  end
end
