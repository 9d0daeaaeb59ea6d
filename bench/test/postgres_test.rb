# frozen_string_literal: true

require_relative "test_helper"

require "pg"
require "bench/delay_proxy"
require "bench/libpq_program"
require "bench/meter"
require "bench/small_statements"

# What stands around the contenders in the tables of Postgres.
class BenchTest::PostgresTest < Minitest::Test
  def setup
    @server = Bench::PostgresServer.start
    @meter = Bench::Meter.new
  end

  def test_children_find_the_server_that_this_process_has_started
    program = 'require "bench"; require "bench/postgres_server"; print Bench::PostgresServer.start.folder'
    library = File.join(Bench::ROOT, "bench/lib")
    assert_equal @server.folder, IO.popen([RbConfig.ruby, "-I", library, "-e", program], &:read)
  end

  def test_what_backends_need_is_counted_also_when_they_have_ended
    before = @server.backend_seconds
    work = "select count(*) from generate_series(1, 200000)"
    connection = PG.connect(@server.options)
    connection.exec(work)
    running = @server.backend_seconds
    assert_operator running, :>, before
    @server.measure(@meter) { connection.exec(work) }
    assert_operator @meter.notes.fetch(:backend), :>, 0

    connection.close
    observer = PG.connect(@server.options)
    Thread.pass until observer.exec("select count(*) from pg_stat_activity where backend_type = 'client backend'")
                              .getvalue(0, 0) == "1"
    assert_operator @server.backend_seconds, :>, before
  ensure
    observer&.close
  end

  def test_strands_have_a_connection_each_or_share_some
    [6, 2].each do |connections|
      meter = Bench::Meter.new
      statements = Bench::SmallStatements.new(meter, Thread.method(:new), :value, strands: 6, statements: 60)
      assert_equal({ answered: 60 }, statements.by_pg(connections, @server.options))
      assert_equal 60, meter.operations
      assert_includes meter.notes, :backend
    end
  end

  def test_only_the_right_answer_counts
    statements = Bench::SmallStatements.new(@meter, ->(&work) { work.call }, :itself, strands: 2, statements: 10)
    assert_equal({ answered: 8 }, statements.measure { |number, _| number.zero? ? "1" : number.to_s })
  end

  def test_libpq_gets_every_answer
    [[:sequential, 50], [:pipelined, 50, 1], [:pipelined, 50, 7], [:batches, 50, 7]].each do |arguments|
      meter = Bench::Meter.new
      assert_equal 50, Bench::LibpqProgram.measure(meter, @server.options, *arguments)[:answered], arguments
      assert_equal 50, meter.operations
      assert_includes meter.notes, :backend
    end
  end

  def test_the_proxy_hands_on_every_byte_in_its_time
    Bench::DelayProxy.during do |options|
      sent = Bench.payload(1, 997) * 3_000 # more than sockets and one read of the proxy's hold
      answers = Array.new(3) { Thread.new { through(options, sent) } }.map(&:value)
      answers.each do |text, seconds|
        assert_equal sent + sent, text
        assert_operator seconds, :>=, Bench::DelayProxy::ROUND_TRIP
      end
    end
  end

  # Or a server would never see that its client is gone.
  def test_the_proxy_hands_on_the_end
    Bench::DelayProxy.during do |options|
      connection = PG.connect(options)
      pid = connection.backend_pid
      connection.close
      PG.connect(options) do |observer|
        Thread.pass until observer.exec_params("select 1 from pg_stat_activity where pid = $1", [pid]).ntuples.zero?
      end
    end
  end

  def test_libpq_wants_a_server
    error = assert_raises(RuntimeError) do
      capture_subprocess_io { Bench::LibpqProgram.measure(@meter, { host: "/no/such/folder" }, :sequential, 1) }
    end
    assert_equal "the floor has ended early", error.message
  end

  private

  # What the server makes of it, and how long that took.
  def through(options, text)
    PG.connect(options) do |connection|
      began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      answer = connection.exec_params("select $1::text || $1::text", [text]).getvalue(0, 0)
      [answer, Process.clock_gettime(Process::CLOCK_MONOTONIC) - began]
    end
  end
end
