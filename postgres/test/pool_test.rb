# frozen_string_literal: true

require "postgres_helper"
require "support/seeds"
require "pg"
require "tmpdir"

# How connections are had, shared, given back and lost.
# servers: all
class PostgresPoolTest < Minitest::Test
  include OnPool
  include NoNames

  # What the server says, or PgBouncer.
  ENDED = /terminating connection|server conn(ection closed| crashed)/

  def test_nothing_connects_before_the_first_use
    pool = Postgres::Pool.new("postgres://localhost:1/nowhere", password: "secret")
    refute_match(/secret/, pool.inspect)
    assert_match(/localhost:1/, assert_raises(Postgres::ConnectError) { pool.query("select 1") }.message)
    assert_raises(Postgres::ConnectError) { pool.session {} }
    assert_equal 0, pool.metrics[:connections]
  ensure
    pool.close
  end

  def test_what_is_wrong_is_said_before_anything_connects
    [{}, { pipelining: false }].each do |options|
      pool = Postgres::Pool.new("postgres://localhost:1/nowhere", **options)
      WRONG.each { |call| assert_raises(Ringspun::UsageError) { call.call(pool) } }
      Thread.new { WRONG.each { |call| assert_raises(Ringspun::UsageError) { call.call(pool) } } }.join
    ensure
      pool.close
    end
  end

  WRONG = [->(pool) { pool.query(nil) }, ->(pool) { pool.query("copy t to stdout") },
           ->(pool) { pool.query("select $1", Object.new) },
           ->(pool) { pool.batch { |batch| batch.query("select 1").query("select $1", Object.new) } },
           ->(pool) { pool.stream("select $1", Object.new) {} }, ->(pool) { pool.query("select 1", timeout: 1i) },
           ->(pool) { pool.session(timeout: "x") {} }, ->(pool) { pool.transaction(timeout: Float::NAN) {} },
           ->(pool) { pool.transaction(isolation: :none) {} }, ->(pool) { pool.transaction(retry: -1) {} },
           ->(pool) { pool.transaction(read_only: "no") {} }, lambda(&:transaction)].freeze
  private_constant :WRONG

  def test_options_that_are_wrong
    { { lanes: 5 } => "lanes: expected a whole number from 1 to 4, got 5",
      { min: 11 } => "min: expected a whole number from 0 to 10, got 11",
      { max: 0 } => "max: expected a whole number from 1 on, got 0",
      { timeout: -1 } => "timeout: must be more than 0 seconds, got -1",
      { timeout: 0 } => "timeout: must be more than 0 seconds, got 0",
      { statement_cache: "x" } => 'statement_cache: expected a whole number from 0 on, got "x"' }.each do |options, message|
      assert_equal message, assert_raises(Ringspun::UsageError) { pool(**options) }.message
    end
    assert_raises(Ringspun::UsageError) { pool(nonsense: 1) }
  end

  IN_A_URI = { "lanes=3" => [:lanes, 3], "max=20" => [:max, 20], "min=2" => [:min, 2], "timeout=1.5" => [:timeout, 1.5],
               "checkout_timeout=0.5" => [:checkout_timeout, 0.5],
               "max_lifetime=60" => [:max_lifetime, 60.0],
               "statement_cache=0" => [:statement_cache, 0], "pipelining=false" => [:pipelining, false] }.freeze
  private_constant :IN_A_URI

  def test_options_of_the_pool_in_the_uri
    IN_A_URI.each do |text, (name, value)|
      pool = Postgres::Pool.new("postgres://localhost/shop?sslmode=disable&pool_#{text}")
      assert_equal value, pool.config.public_send(name), text
      assert_equal "disable", pool.config.options["sslmode"]
    end
    defaults = Postgres::Pool.new("postgres://db").config.to_h.values_at(:lanes, :max, :statement_cache, :checkout_timeout)
    assert_equal [2, 10, 256, 5], defaults
  end

  def test_an_option_of_the_pool_counts_before_that_of_the_uri
    source = "postgres://localhost/shop?pool_max=20&pool_lanes=3&pool_pipelining=true"
    config = Postgres::Pool.new(source, max: 5, pipelining: false).config
    assert_equal [5, 3, false], [config.max, config.lanes, config.pipelining]
    assert_equal [20, 2], Postgres::Pool.new(source, lanes: 2, max: nil).config.to_h.values_at(:max, :lanes)
    assert_equal [3, 1, 2], [Postgres.connect(source), Postgres.connect("postgres://db"), Postgres.connect(source, lanes: 2)]
      .map { |pool| pool.config.lanes }
  end

  def test_options_of_the_pool_in_the_uri_that_are_wrong
    { "pool_max=many" => 'pool_max: expected a whole number, got "many"',
      "pool_timeout=1_0" => 'pool_timeout: expected seconds, got "1_0"',
      "pool_pipelining=yes" => 'pool_pipelining: expected true or false, got "yes"',
      "pool_lanes=5" => "lanes: expected a whole number from 1 to 4, got 5",
      "pool_mx=1" => /there is no option pool_mx, did you mean pool_max\?/,
      "pool_types=x" => /types is an option of Pool.new, and is given there\z/,
      "max=1" => /max is an option of Pool.new, and is given there, or as pool_max in the URI\z/ }.each do |text, message|
      [-> { Postgres::Pool.new("postgres://db?#{text}") }, -> { Postgres.connect("postgres://db?#{text}") }].each do |call|
        assert_operator message, :===, assert_raises(Ringspun::UsageError, &call).message
      end
    end
    assert_match(/pool_max/, assert_raises(Ringspun::UsageError) { Postgres::Pool.new("postgres://db", pool_max: 3) }.message)
  end

  def test_poolers_that_lose_statements_are_known_by_their_hosts
    supavisor = "postgres://me@aws-0-eu-central-1.pooler.supabase.com"
    said = /to aws-0.*pooler.supabase.com:6543 one at a time/
    pool = nil
    assert_output("", said) { pool = Postgres::Pool.new("#{supavisor}:6543/shop") }
    refute pool.config.pipelining
    [["#{supavisor}:5432/shop", {}, true], ["postgres://pooler.supabase.com.example:6543/shop", {}, true],
     ["#{supavisor}:6543/shop", { pipelining: true }, true], ["#{supavisor}:6543/shop", { pipelining: false }, false]]
      .each do |source, options, expected|
        assert_output("", "") { pool = Postgres::Pool.new(source, **options) }
        assert_equal expected, pool.config.pipelining
      end
    assert_raises(Ringspun::UsageError) { Postgres::Pool.new("postgres://db", pipelining: "no") }
  end

  def test_after_its_end_it_is_closed
    pool = pool()
    pool.query("select 1")
    pool.close
    assert_predicate pool, :closed?
    assert_raises(Ringspun::ClosedError) { pool.query("select 1") }
    assert_raises(Ringspun::ClosedError) { pool.session {} }
    assert_raises(Ringspun::ClosedError) { Thread.new { pool.query("select 1") }.tap { |t| t.report_on_exception = false }.value }
    pool.close
  end

  def test_the_time_that_a_pool_gives_each_call_counts_everywhere
    sql = "select pg_sleep(60)"
    [->(pool) { pool.query(sql) }, ->(pool) { pool.stream(sql) {} }, ->(pool) { pool.session { |s| s.query(sql) } },
     ->(pool) { pool.transaction { |t| t.query(sql) } },
     ->(pool) { pool.transaction { |t| t.transaction { |u| u.batch { |b| b.query(sql) } } } }].each do |call|
      on_pool(timeout: 0.2) { |pool| assert_raises(Ringspun::TimeoutError) { call.call(pool) } }
    end
  end

  def test_when_all_connections_are_in_use_the_error_names_who_has_them
    on_pool(max: 1, checkout_timeout: 0.02) do |pool, machine|
      before = machine.now
      pool.session do
        said = assert_raises(Postgres::PoolTimeoutError) { pool.session {} }.message
        who = /within 0.02 s: all 1 are in use.*\n#<Ringspun::Strand.*for (?<seconds>\d+\.\d) s, at .*pool_test\.rb:\d+/
        assert_match(/\Ano connection #{who}/, said)
        assert_operator said[who, :seconds].to_f, :<=, (machine.now - before).round(1)
      end
      assert_equal 1, pool.session { |session| session.query_value("select 1") }
    end
  end

  def test_who_waits_is_served_in_order
    on_pool(max: 1) do |pool, machine|
      order = []
      pool.session do
        @strands = Array.new(4) { |number| machine.spin { pool.session { order << number } } }
        await(machine) { pool.metrics[:waiting] == 4 }
      end
      machine.await(@strands)
      assert_equal [[0, 1, 2, 3], { connections: 1, idle: 1, waiting: 0 }], [order, pool.metrics.first(3).to_h]
    end
  end

  def test_who_stops_waiting_takes_no_place_along
    on_pool(max: 1) do |pool, machine|
      pool.session do
        strands = Array.new(4) { machine.spin { pool.session(timeout: 0.01) {} } }
        strands.each { |strand| assert_raises(Postgres::PoolTimeoutError) { strand.await } }
        gone = machine.spin { pool.session {} }
        await(machine) { pool.metrics[:waiting] == 1 }
        gone.terminate
        assert_raises(Ringspun::TerminatedError) { gone.await }
      end
      assert_equal [1, { connections: 1, idle: 1, waiting: 0 }],
                   [pool.session { |s| s.query_value("select 1") }, pool.metrics.first(3).to_h]
    end
  end

  def test_machines_share_the_places
    pool = pool(max: 1)
    on_machine = -> { Ringspun.run { pool.session { |session| session.query_value("select pg_backend_pid()") } } }
    first = on_machine.call
    done = Thread::Queue.new
    answer = Thread::Queue.new
    thread = Thread.new do
      answer << on_machine.call
      done.pop
    end
    second = answer.pop
    refute_equal first, second
    assert_equal 1, pool.metrics[:connections]
    refute_equal second, on_machine.call
    assert_equal 1, pool.metrics[:connections]
    done << true
    thread.join
  ensure
    pool&.close
  end

  def test_close_ends_connections_of_other_threads_that_nobody_uses
    before = sockets
    pool = pool()
    ready, closed = Array.new(2) { Thread::Queue.new }
    thread = Thread.new do
      Ringspun.run do
        pool.query("select 1")
        pool.session { |session| session.query("select 1") }
        ready << sockets
        closed.pop
        assert_raises(Ringspun::ClosedError) { pool.query("select 1") }
      end
    end
    assert_equal before + 2, ready.pop
    pool.close
    assert_equal before, sockets
  ensure
    closed << true
    thread.join
  end

  # Its stream may still use the number of the descriptor, which must not be that of another file by then.
  def test_close_of_connections_of_other_threads_leaves_the_descriptor_to_its_stream
    pool = pool(lanes: 1)
    ready, closed = Array.new(2) { Thread::Queue.new }
    thread = Thread.new do
      Ringspun.run do |machine|
        pool.query("select 1")
        lane = pool.instance_variable_get(:@lanes).fetch(machine).instance_variable_get(:@lanes).first
        stream = lane.session.stream
        ready << stream.to_io.fileno
        closed.pop
        assert_raises(SystemCallError) { stream.write("bytes") && stream.flush }
        lane.close # and not the stream alone: when the lane was collected, it would close a number that is another's by then
        assert_predicate stream, :closed?
      end
    end
    number = ready.pop
    pool.close
    Dir.mktmpdir do |folder|
      files = Array.new(20) { |name| File.open(File.join(folder, name.to_s), "w+") }
      refute_includes files.map(&:fileno), number
      closed << true
      thread.join
      assert_equal [""], files.map { |file| file.rewind && file.read }.uniq
      files.each(&:close)
    end
  end

  def test_close_ends_what_strands_of_other_threads_wait_for
    pool = pool(lanes: 1)
    asking = Thread::Queue.new
    thread = Thread.new do
      Ringspun.run do |machine|
        pool.query("select 1")
        strands = Array.new(3) { machine.spin { pool.query("select pg_sleep(60)") } }
        asking << true
        strands.map { |strand| assert_raises(Postgres::ConnectionLost) { strand.await } }
      end
    end
    asking.pop
    look { |other| Thread.pass until running(other).size == 3 }
    pool.close
    thread.value.each do |error|
      assert_equal [true, "the connection is lost: the client was closed"], [error.in_doubt?, error.message]
    end
    look { |other| end_others(other) } # of the server, which does not see yet that nobody is there
  end

  def test_close_ends_connections_that_somebody_has
    [->(&work) { Ringspun.run(&work) }, ->(&work) { work.call }].each do |place|
      pool = pool()
      sql = "select pg_sleep(60), '#{SecureRandom.hex(6)}'"
      thread = Thread.new { place.call { assert_raises(Postgres::ConnectionLost) { pool.transaction { |t| t.query(sql) } } } }
      look { |other| Thread.pass until running(other).include?(sql) }
      pool.close
      assert_equal [true, "the connection is lost: the client was closed"], [thread.value.in_doubt?, thread.value.message]
      look { |other| end_others(other) }
    end
  end

  def test_connections_of_threads_that_have_ended_are_closed
    before = sockets
    pool = pool(lanes: 1)
    3.times do
      know_as_quick(pool, "select 1")
      Thread.new { Ringspun.run { pool.query("select 1") } }.join
    end
    assert_equal before + 1, sockets # the next thread closes those of the last
    pool.close
    assert_equal before, sockets
  end

  def test_close_while_the_first_connection_begins
    server = TCPServer.new("127.0.0.1", 0)
    Ringspun.run do |machine|
      pool = Postgres::Pool.new("postgres://127.0.0.1:#{server.local_address.ip_port}/nowhere")
      strand = machine.spin { pool.query("select 1") }
      peer = server.accept
      pool.close
      assert_raises(Ringspun::ClosedError) { strand.await }
    ensure
      peer&.close
    end
  ensure
    server.close
  end

  def test_the_time_of_a_call_ends_a_connection_that_is_never_opened
    server = TCPServer.new("127.0.0.1", 0)
    pool = Postgres::Pool.new("postgres://127.0.0.1:#{server.local_address.ip_port}/nowhere?sslmode=disable&connect_timeout=0")
    pool.__send__(:courier).call { nil } # so that its thread is there before the time of a call begins
    late = HANGING.map { |call| -> { assert_raises(Ringspun::TimeoutError) { call.call(pool) } } }
    in_strands = Ringspun.run { |machine| machine.await(late.map { |call| machine.spin(&call) }) }
    in_threads = late.map { |call| quiet_thread(&call) }.map(&:value)
    (in_strands + in_threads).each do |error|
      assert_match(/\Ano connection to 127.0.0.1:\d+ before the deadline/, error.message)
    end
    assert_equal({ connections: 0, idle: 0, waiting: 0 }, pool.metrics.first(3).to_h)
  ensure
    pool&.close
    server.close
  end

  # As many as are opened at once. The courier comes to them before their time is over, or would say that it did not.
  HANGING = [->(pool) { pool.session(timeout: 2) {} }, ->(pool) { pool.transaction(timeout: 2) {} },
             ->(pool) { pool.stream("select 1", timeout: 2) {} }].freeze
  private_constant :HANGING

  def test_a_connection_that_takes_too_long_to_open_for_who_has_no_deadline
    server = TCPServer.new("127.0.0.1", 0)
    port = server.local_address.ip_port
    pool = Postgres::Pool.new("postgres://127.0.0.1:#{port}/nowhere?sslmode=disable", connect_timeout: 0.01)
    ask = [->(db) { db.query("select 1") }, ->(db) { db.batch { |batch| batch.query("select 1") } }, ->(db) { db.session {} }]
    ask.each do |call|
      error = assert_raises(Ringspun::TimeoutError) { call.call(pool) }
      assert_equal "127.0.0.1:#{port}: no connection within 0.01 s", error.message
    end
  ensure
    pool&.close
    server.close
  end

  def test_a_connection_that_has_ended_while_nobody_used_it_is_replaced
    on_pool(lanes: 1) do |pool, machine|
      2.times do
        pids = [pool.query_value("select pg_backend_pid()"), pool.session { |s| s.query_value("select pg_backend_pid()") }]
        look { |other| pids.each { |pid| other.query("select pg_terminate_backend($1)", pid) } }
        left = "select count(*) from pg_stat_activity where pid = any($1)"
        await(machine) { look { |other| other.query_value(left, pids) }.zero? }
        machine.sleep(0.02) # what is quiet for less is not looked at
        assert_equal 1, pool.query_value("select 1")
        assert_equal 2, pool.session { |s| s.query_value("select 2") }
      end
    end
  end

  def test_a_connection_that_has_lived_long_enough_is_replaced
    on_pool(max_lifetime: 0.001) do |pool, machine|
      pid = -> { pool.session { |s| s.query_value("select pg_backend_pid()") } }
      first = pid.call
      machine.sleep(0.002)
      refute_equal first, pid.call
    end
  end

  def test_statements_under_way_when_the_connection_ends_are_in_doubt
    on_pool(lanes: 1) do |pool, machine|
      first = "first_#{SecureRandom.hex(6)}"
      pool.execute("create sequence #{first}")
      strand = machine.spin { pool.query("select pg_sleep(60)") }
      again = machine.spin { pool.query_value("select 7 from pg_sleep(60 * (nextval('#{first}') = 1)::int)", idempotent: true) }
      await(machine) { look { |other| running(other) }.size == 2 }
      look { |other| end_others(other) }
      error = assert_raises(Postgres::ConnectionLost) { strand.await }
      assert_match(ENDED, error.message)
      assert_predicate error, :in_doubt?
      assert_equal [7, 8], [again.await, pool.query_value("select 8")]
    ensure
      pool.execute("drop sequence #{first}")
    end
  end

  def test_a_stream_whose_connection_ends_is_told_why
    on_pool do |pool, machine|
      [->(&work) { work.call(pool) }, pool.method(:session), pool.method(:transaction)].each do |place|
        streaming = machine.spin { place.call { |client| client.stream("select pg_sleep(60)") { nil } } }
        await(machine) { look { |other| running(other) }.any? }
        look { |other| end_others(other) }
        assert_match(ENDED, assert_raises(Postgres::ConnectionLost) { streaming.await }.message)
      end
    end
  end

  def test_connections_that_are_ended_by_chance_lose_nobody
    on_pool(lanes: 2, max: 3) do |pool, machine|
      random = Random.new(Minitest.seed)
      over = false
      murderer = machine.spin { murder(machine, random) { over } }
      turns = Seeds.part(20)
      strands = Array.new(50) do |number|
        machine.spin { Array.new(turns) { |turn| answer_or_lost(pool, (number * turns) + turn) } }
      end
      answers = machine.await(strands).flatten
      over = true
      murderer.await
      assert_empty(answers.each_with_index.reject { |answer, number| answer == number || answer.is_a?(Ringspun::Error) })
      assert_equal 1, pool.query_value("select 1", idempotent: true)
      assert_operator pool.metrics[:connections], :<=, 3
    end
  end

  def test_statements_for_one_session_are_refused_where_others_share_it
    [{}, { pipelining: false }].each do |options|
      with_pool(**options) do |pool|
        [-> { Ringspun.run { assert_refused(pool) } }, -> { Thread.new { assert_refused(pool) }.join }].each(&:call)
        assert_equal({ connections: 0, idle: 0, waiting: 0 }, pool.metrics.first(3).to_h)
        assert_equal 1, pool.query_value("select 1")
        assert_refused(pool)
      end
    end
  end

  FOR_ONE = ["begin", "  -- x\n SET a.b = 1", "-- x\rset a.b = 1", "/* /* x */ */ listen x", "prepare x as select 1",
             "Commit"].freeze
  private_constant :FOR_ONE

  def assert_refused(pool)
    asking = [->(sql) { pool.query(sql) }, ->(sql) { pool.batch { |batch| batch.query("select 1").query(sql) } },
              ->(sql) { pool.prepare(sql).query }]
    asking.product(FOR_ONE).each do |ask, sql|
      error = assert_raises(Postgres::UnsafeSessionState) { ask.call(sql) }
      assert_match(/use transaction .* or session/, error.message)
    end
  end

  def test_a_block_that_commits_leaves_nothing_where_others_share_it
    on_pool(lanes: 1) do |pool, machine|
      pool.query("select 1")
      committing = machine.spin { pool.query("do $$ begin perform 1; commit and chain; perform 2; commit; end $$").tag }
      asking = machine.spin { pool.query_value("select 1") }
      assert_equal ["DO", 1], machine.await(committing, asking)
    end
  end

  def test_a_slow_statement_gets_a_connection_of_its_own
    [{}, { statement_cache: 0 }].each do |options|
      on_pool(lanes: 1, **options) do |pool, machine|
        await(machine) { pool.query("select pg_sleep(0.1)") && pool.metrics[:connections].positive? }
        assert_equal 1, pool.query_value("select 1")
      end
    end
  end

  def test_more_strands_than_may_be_under_way_at_once
    on_pool(lanes: 2) do |pool, machine|
      strands = Array.new(2000) { |number| machine.spin { pool.query_value("select $1::int", number) } }
      assert_equal (0...2000).to_a, machine.await(strands)
    end
  end

  # What has come meanwhile is read before anybody is told that nothing has, and what is given back some looks later counts. The
  # server is not asked for that, for it might take its time.
  def test_a_process_that_has_stood_still_for_longer_than_checkout_timeout
    first = lambda do |pool, sql|
      pool.connections.use(nil) { |lane| lane.query(sql, [], nil, false, true).value.tap { 3.times { sleep(1e-6) } } }
    end
    [[:query_value.to_proc] * 2, [first, ->(pool, sql) { pool.session { |session| session.query_value(sql) } }]].each do |asking|
      on_pool(max: 1, checkout_timeout: 1, pipelining: false) do |pool, machine|
        pool.execute("create sequence stood_still")
        while_locked(20_612) do |server|
          sql = "select nextval('stood_still') from pg_advisory_xact_lock(20612)"
          strands = [machine.spin { asking.first.call(pool, sql) }]
          await(machine) { server.exec("select from pg_locks where objid = 20612 and not granted").any? }
          strands << machine.spin { asking.last.call(pool, sql) }
          await(machine) { pool.metrics[:waiting] == 1 }
          Fiber.blocking { stand_still_until_called(server, "stood_still", 1.1) }
          assert_equal [1, 2], machine.await(strands)
        end
      ensure
        pool.execute("drop sequence stood_still")
      end
    end
  end

  def test_more_statements_than_a_connection_knows
    on_pool(lanes: 1, statement_cache: 4) do |pool|
      3.times { assert_equal((0...20).to_a, (0...20).map { |number| pool.query_value("select #{number}") }) }
      assert_operator pool.query_value("select count(*) from pg_prepared_statements"), :<=, 5
    end
  end

  def test_a_forked_child_begins_anew
    pool = pool(lanes: 1)
    ask = -> { [pool.query_value("select 1"), pool.session { |session| session.query_value("select 2") }] }
    assert_equal [1, 2], ask.call
    before = sockets
    child = in_child do
      assert_equal [1, 2], ask.call
      assert_equal before + 2, sockets
    end
    assert_predicate child, :success?
    assert_equal [[1, 2], before], [ask.call, sockets]
  ensure
    pool.close
  end

  def test_what_is_done_in_tasks_of_async
    require "async"
    pool = pool()
    answers = Sync do |task|
      Array.new(5) { |number| task.async { pool.transaction { |t| t.query_value("select $1::int", number) } } }.map(&:wait)
    end
    assert_equal [0, 1, 2, 3, 4], answers
  ensure
    pool.close
  end

  def test_a_pool_keeps_no_run_alive
    pool = pool()
    assert_equal(1, Ringspun.run { pool.query_value("select 1") })
    assert_equal(2, Ringspun.run { pool.query_value("select 2") })
  ensure
    pool.close
  end

  private

  def sockets = Leaks.descriptors.fetch("socket", 0)

  # @yieldparam server [PG::Connection] which has the lock
  def while_locked(lock)
    PG.connect(host: Servers.postgres.folder, user: "ringspun", dbname: "postgres") do |server|
      server.exec("select pg_advisory_lock(#{lock})")
      yield server
    end
  end

  # Blocks the thread from when the locks are given back until the sequence was called, and for some seconds more.
  def stand_still_until_called(server, sequence, seconds)
    server.exec("select pg_advisory_unlock_all()")
    Thread.pass until server.exec("select is_called from #{sequence}").getvalue(0, 0) == "t"
    sleep seconds
  end

  def answer_or_lost(pool, number)
    pool.query_value("select $1::int", number)
  rescue Postgres::ConnectionLost, Postgres::ConnectError => error
    error
  end

  # By one connection, which must not be among them.
  def murder(machine, random)
    look do |other|
      other.session do |session|
        until yield
          pids = session.query("select pid from pg_stat_activity " \
                               "where backend_type = 'client backend' and pid <> pg_backend_pid()").rows.flatten
          session.query("select pg_terminate_backend($1)", pids.sample(random:)) if pids.any?
          machine.sleep(random.rand * 0.01)
        end
      end
    end
  end
end
