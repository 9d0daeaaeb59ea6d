# frozen_string_literal: true

require_relative "test_helper"

require "pg"
require "bench/delay_proxy"
require "bench/libpq_program"
require "bench/meter"
require "bench/row_streams"
require "bench/shared_connections"
require "bench/slow_neighbours"
require "bench/small_statements"
require "bench/tls_postgres_server"

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

  def test_rows_have_the_promised_size_and_order
    name = @server.resources(300)
    assert_equal name, Bench::PostgresServer.resources(300)
    assert_equal name, @server.resources(300), "made once"
    PG.connect(@server.options) do |connection|
      rows = connection.exec("select * from #{name} order by cdate").values
      assert_equal (1..300).map(&:to_s), rows.map(&:first)
      name_and_body = rows.last.values_at(3, 5).map(&:bytesize)
      assert_equal [Bench::PostgresServer::NAME_BYTES, Bench::PostgresServer::BODY_BYTES], name_and_body
    end
  end

  def test_rows_come_in_each_way_and_leave_the_connection_free
    sql = "select i, i * 2 from generate_series(1, 600) i" # more than two chunks
    PG.connect(@server.options) do |connection|
      %i[by_results by_row by_chunks by_tuple].each do |way|
        rows = []
        Bench::RowStreams.public_send(way, connection, sql) { |row| rows << (row.is_a?(Array) ? row : row.values) }
        assert_equal (1..600).map { |i| [i, i * 2].map(&:to_s) }, rows, way
      end
      assert_equal "1", connection.exec("select 1").getvalue(0, 0)
    end
  end

  def test_a_stream_ends_with_a_new_connection
    PG.connect(@server.options) do |connection|
      pid = connection.backend_pid
      assert_equal 7, Bench::RowStreams.first_rows(connection, "select generate_series(1, 1000)", 7)
      refute_equal pid, connection.backend_pid
    end
  end

  def test_a_stream_that_is_cancelled_leaves_its_connection
    PG.connect(@server.options) do |connection|
      pid = connection.backend_pid
      2.times { assert_equal 7, Bench::RowStreams.first_rows_and_cancel(connection, "select generate_series(1, 100000)", 7) }
      assert_equal [pid, "1"], [connection.backend_pid, connection.exec("select 1").getvalue(0, 0)]
    end
  end

  def test_connections_that_are_shared_are_with_one_at_a_time
    Bench::SharedConnections.during(2, @server.options, ->(each) { each.exec("set application_name = 'shared'") }) do |pool|
      pool.take do |first|
        pool.take { |second| refute_equal first.backend_pid, second.backend_pid }
        assert_equal "shared", first.exec("show application_name").getvalue(0, 0)
      end
      assert_raises(PG::Error) { pool.take { |connection| connection.exec("wrong") } }
      assert_equal 2, Array.new(2) { pool.take(&:backend_pid) }.uniq.size, "it is given back after an error"
    end
  end

  def test_the_server_with_tls_is_another_one_and_counts_its_own_backends
    Bench::TlsPostgresServer.during do |options|
      refute_equal @server.folder, Bench::TlsPostgresServer.start.folder
      PG.connect(options) do |connection|
        assert_predicate connection, :ssl_in_use?
        Bench::TlsPostgresServer.start.measure(@meter) { connection.exec("select count(*) from generate_series(1, 200000)") }
      end
    end
    assert_operator @meter.notes.fetch(:backend), :>, 0
  end

  def test_the_slow_ones_are_there_until_all_quick_ones_are_answered
    %w[unknown known locked].each do |kind|
      meter = Bench::Meter.new
      proof = Bench::SlowNeighbours.in_threads(meter, kind:, strands: 4, statements: 40, seconds: 0.1)
      assert_equal({ answered: 40, neighbours: Bench::SlowNeighbours::CONNECTIONS - 1 }, proof, kind)
      assert_operator meter.notes.fetch(:p99), :>, 0
    end
  end

  def test_libpq_takes_rows_in_each_way
    table = @server.resources(300)
    %i[whole single chunked].each do |how|
      taken = libpq(:rows, how, 2, 6, "select * from #{table}")
      assert_equal({ bytes: 2 * 300 * Bench::PostgresServer::BODY_BYTES, rows: 600 }, taken, how)
    end
    assert_equal 21, libpq(:resets, :single, 3, 7, "select * from #{table}")[:rows]
  end

  def test_libpq_wants_a_server
    error = assert_raises(RuntimeError) do
      capture_subprocess_io { Bench::LibpqProgram.measure(@meter, { host: "/no/such/folder" }, :sequential, 1) }
    end
    assert_equal "the floor has ended early", error.message
  end

  private

  def libpq(*arguments) = Bench::LibpqProgram.measure(Bench::Meter.new, @server.options, *arguments)

  # What the server makes of it, and how long that took.
  def through(options, text)
    PG.connect(options) do |connection|
      began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      answer = connection.exec_params("select $1::text || $1::text", [text]).getvalue(0, 0)
      [answer, Process.clock_gettime(Process::CLOCK_MONOTONIC) - began]
    end
  end
end
