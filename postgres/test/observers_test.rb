# frozen_string_literal: true

require "postgres_helper"
require "logger"
require "pp"
require "stringio"

# Who hears of statements and notices, wherever they are asked: in a strand, a thread (by the courier), a session, a transaction;
# one by one, in a batch, a stream, a script.
# servers: all
class PostgresObserversTest < Minitest::Test
  include OnPool
  include NoNames

  RAISE = "do $$ begin raise notice 'one'; raise warning 'two'; end $$"

  def in_a_strand(**) = on_pool(**) { |pool| yield pool }
  def without_pipelining(**) = on_pool(pipelining: false, **) { |pool| yield pool }
  def in_a_session(**) = on_pool(**) { |pool| pool.session { |session| yield session } }
  def in_a_transaction(**) = on_pool(**) { |pool| rolled_back { pool.transaction { |transaction| yield transaction } } }
  def in_the_main_program(**) = with_pool(**) { |pool| yield pool }

  def in_a_thread(**)
    with_pool(**) { |pool| Thread.new { yield pool }.tap { |thread| thread.report_on_exception = false }.value }
  end

  def in_a_threads_transaction(**)
    in_a_thread(**) { |pool| rolled_back { pool.transaction { |transaction| yield transaction } } }
  end

  # What a test has failed on purpose cannot be committed.
  def rolled_back
    yield
  rescue Postgres::TransactionRolledBack
    nil
  end

  PLACES = %i[in_a_strand without_pipelining in_a_session in_a_transaction in_the_main_program in_a_thread
              in_a_threads_transaction].freeze

  # How a statement can be asked.
  WAYS = {
    query: ->(client, sql) { client.query(sql).size },
    query_one: ->(client, sql) { client.query_one(sql) && 1 },
    prepared: ->(client, sql) { client.prepare(sql).query.size },
    batch: ->(client, sql) { client.batch { |batch| batch.query(sql) }.sum(&:size) },
    stream: ->(client, sql) { client.stream(sql).sum { 1 } },
    script: ->(client, sql) { client.script(sql).sum(&:size) }
  }.freeze
  KINDS = { query: :query, query_one: :query, prepared: :query, batch: :batch, stream: :stream, script: :script }.freeze

  def self.everywhere(name, &test)
    PLACES.product(WAYS.keys) do |place, way|
      define_method("test_#{name}_#{place}_#{way}") { instance_exec(method(place), KINDS[way], WAYS[way], &test) }
    end
  end

  # Each COPY once, and nothing that is asked for it beside.
  PLACES.each do |place|
    define_method("test_copies_#{place}") do
      told = []
      __send__(place, on_statement: ->(execution) { told << execution }) do |client|
        table = "seen_#{SecureRandom.hex(6)}"
        client.execute("create table #{table} (id int)")
        told.clear
        client.copy_in("copy #{table} from stdin", [[1], [2]])
        client.copy_out("copy #{table} to stdout") { nil }
        client.copy_out("copy #{table} to stdout", StringIO.new)
        client.insert_many(table, [[3]], columns: :id, by: :copy)
        seen = told.map { |one| [one.kind, one.rows, one.affected] }
        assert_equal [[:copy, 0, 2], [:copy, 2, 2], [:copy, 2, 2], [:copy, 0, 1]], seen
        assert(told.all? { |one| [one.queue, one.wire, one.connection].all? && one.sql.start_with?("copy") }, told.inspect)
        begin
          assert_raises(Postgres::InvalidTextRepresentation) { client.copy_in("copy #{table} from stdin", [["x"]]) }
          assert_equal [:copy, nil, Postgres::InvalidTextRepresentation], [told.last.kind, told.last.rows, told.last.error.class]
        ensure
          client.execute("drop table #{table}") unless client.is_a?(Postgres::Transaction)
        end
      end
    end
  end

  # Without what begins and ends transactions.
  def asked(all) = all.reject { |execution| execution.sql.match?(/\A(BEGIN|COMMIT|ROLLBACK)/) }

  everywhere :a_statement_is_told do |place, kind, way|
    told = []
    place.call(on_statement: told.method(:<<)) { |client| 2.times { way.call(client, "select 1 as a") } }
    assert_equal 2, asked(told).size
    asked(told).each do |execution|
      assert_equal [kind, "select 1 as a", 1, 1, nil], execution.to_h.values_at(:kind, :sql, :rows, :affected, :error)
      assert_kind_of Integer, execution.connection
      times = [execution.queue, execution.wire, execution.decoding]
      times.each { |time| assert_operator time, :>=, 0 }
      assert_operator execution.duration, :>=, 0
    end
  end

  everywhere :a_statement_that_fails_is_told do |place, kind, way|
    told = []
    place.call(on_statement: told.method(:<<)) { |client| assert_raises(Postgres::DivisionByZero) { way.call(client, "select 1 / 0") } }
    execution, *more = asked(told)
    assert_empty more
    assert_equal [kind, "select 1 / 0", nil, nil], execution.to_h.values_at(:kind, :sql, :rows, :affected)
    assert_kind_of Postgres::DivisionByZero, execution.error
    assert_match(/DivisionByZero 22012: select 1 \/ 0\z/, execution.to_s)
  end

  everywhere :notices_are_told_before_the_answer do |place, kind, way|
    next if kind == :stream && ENV["RINGSPUN_POSTGRES"].to_s.start_with?("pgbouncer")

    told = []
    place.call(on_notice: told.method(:<<)) do |client|
      way.call(client, RAISE)
      assert_equal [%w[NOTICE one], %w[WARNING two]], told.map { |notice| [notice.severity, notice.message] }
      assert_equal [RAISE], told.map(&:sql).uniq
    end
  end

  everywhere :notices_of_a_statement_that_fails do |place, _, way|
    told = []
    place.call(on_notice: told.method(:<<)) do |client|
      sql = "do $$ begin raise notice 'before'; raise exception 'failed'; end $$"
      assert_raises(Postgres::ServerError) { way.call(client, sql) }
      assert_equal %w[before], told.map(&:message)
    end
  end

  everywhere :a_hook_that_raises_breaks_nothing do |place, _, way|
    hook = ->(_) { raise KeyError, "broken hook" }
    _, said = capture_io do
      place.call(on_statement: hook, on_notice: hook) do |client|
        assert_equal [1, 1], Array.new(2) { way.call(client, "select 1") }
        way.call(client, RAISE)
        assert_raises(Postgres::DivisionByZero) { way.call(client, "select 1 / 0") }
      end
    end
    assert_match(/on_statement of a pool of Postgres has raised KeyError, which is told once: broken hook/, said)
    assert_equal 1, said.scan("on_statement of a pool").size
  end

  everywhere :a_hook_that_waits_and_asks_the_pool do |place, _, way|
    found = []
    pools = []
    hook = lambda do |execution|
      next if pools.empty? # of a BEGIN

      sleep(0.001) # switches strands
      found << [execution.sql, pools.first.query_value("select 7"), pools.first.transaction { |t| t.query_value("select 8") }]
    end
    place.call(on_statement: hook) do |client|
      pools << (client.is_a?(Postgres::Pool) ? client : pool(on_statement: hook))
      assert_equal [1, 1], Array.new(2) { way.call(client, "select 1") }
    end
    pools.first.close
    statements = found.reject { |sql, *| sql.match?(/\A(BEGIN|COMMIT)/) }
    assert_equal [["select 1", 7, 8]] * 2, statements
  end

  # --- one at a time ---

  def test_nothing_is_noted_where_nobody_observes
    on_pool do |pool|
      assert_nil pool.config.observers
      assert_nil Postgres.const_get(:Lane).take_seen(pool.query("select 1"))
      assert_nil Postgres.const_get(:Lane).take_seen(assert_raises(Postgres::DivisionByZero) { pool.query("select 1/0") })
    end
  end

  def test_what_a_strand_begins_in_a_hook_is_told_to_nobody
    told = []
    on_pool(on_statement: ->(execution) { told << execution.sql && hook }) do |pool, machine|
      define_singleton_method(:hook) { machine.spin { pool.query("select 2") }.await }
      pool.query("select 1")
      pool.query("select 3")
    end
    assert_equal ["select 1", "select 3"], told
  end

  def test_a_strand_that_is_cancelled_in_a_hook
    entered = gate = nil
    on_pool(on_statement: ->(_) { entered.push(true) && gate.pop }) do |pool, machine|
      entered, gate = Array.new(2) { Ringspun::Channel.new(1) }
      strand = machine.spin { pool.query("select 1") }
      entered.pop
      strand.terminate
      assert_raises(Ringspun::TerminatedError) { strand.await }
      gate.push(true)
      assert_equal 2, pool.query_value("select 2")
    end
  end

  def test_each_of_a_batch_is_told_and_the_one_that_fails
    told = []
    on_pool(on_statement: told.method(:<<)) do |pool|
      pool.batch { |batch| batch.query("select 1").query("select generate_series(1, 3)") }
      assert_equal [["select 1", 1], ["select generate_series(1, 3)", 3]], told.map { |one| [one.sql, one.rows] }
      told.clear
      assert_raises(Postgres::DivisionByZero) { pool.batch { |batch| batch.query("select 1").query("select 1/0").query("select 2") } }
      assert_equal ["select 1/0"], told.map(&:sql)
    end
  end

  def test_all_notices_of_a_batch_that_fails
    told = []
    on_pool(on_notice: told.method(:<<)) do |pool|
      assert_raises(Postgres::DivisionByZero) { pool.batch { |batch| batch.query(RAISE).query("select 1/0") } }
      assert_equal %w[one two], told.map(&:message).sort
    end
  end

  def test_transactions_tell_how_they_begin_and_end
    told = []
    on_pool(on_statement: told.method(:<<)) do |pool|
      pool.transaction { |t| t.transaction { |inner| inner.query("select 1") } }
      assert_equal ["BEGIN", "SAVEPOINT ringspun_1", "select 1", "RELEASE ringspun_1", "COMMIT"], told.map(&:sql)
      told.clear
      assert_raises(KeyError) { pool.transaction { raise KeyError } }
      assert_equal %w[BEGIN ROLLBACK], told.map(&:sql)
    end
  end

  def test_a_statement_that_is_late_is_told
    told = []
    on_pool(on_statement: told.method(:<<)) do |pool|
      assert_raises(Ringspun::TimeoutError) { pool.query("select pg_sleep(60)", timeout: 0.05) } # must pass
      assert_equal [Postgres::StatementTimeoutError, nil, nil], told.first.then { |one| [one.error.class, one.wire, one.rows] }
      assert_operator told.first.duration, :>=, 0.05
    end
  end

  def test_the_connection_is_that_of_the_server
    told = []
    on_pool(on_statement: told.method(:<<)) do |pool|
      pid = pool.query_value("select pg_backend_pid()")
      assert_equal pid, told.first.connection unless ENV["RINGSPUN_POSTGRES"].to_s.start_with?("pgbouncer")
      assert_equal pool.config.options.database, told.first.database
      assert_equal pool.config.options.hosts.first.to_s, told.first.host
    end
  end

  def test_what_is_sent_again_or_refused
    told = []
    on_pool(on_statement: told.method(:<<)) do |pool|
      assert_raises(Postgres::UnsafeSessionState) { pool.query("set statement_timeout = 1") }
      assert_raises(Ringspun::UsageError) { pool.query("select $1", Object.new) }
      assert_equal [Postgres::UnsafeSessionState, Ringspun::UsageError], told.map { |one| one.error.class }
    end
  end

  def test_notices_of_one_session_or_transaction
    told, all = [], []
    on_pool(on_notice: all.method(:<<)) do |pool|
      pool.session(on_notice: told.method(:<<)) { |session| session.query(RAISE) }
      pool.transaction(on_notice: told.method(:<<)) { |t| t.transaction { |inner| inner.query(RAISE) } }
      assert_equal [4, 0], [told.size, all.size]
      pool.session { |session| session.query(RAISE) }
      assert_equal [4, 2], [told.size, all.size]
    end
  end

  def test_notices_of_one_session_of_a_pool_that_nobody_observes
    [:in_a_strand, :in_a_thread].each do |place|
      told = []
      __send__(place) do |pool|
        pool.session(on_notice: told.method(:<<)) { |session| session.query(RAISE) }
        assert_equal 2, told.size
        pool.session { |session| session.query(RAISE) }
        assert_equal 2, told.size
        error = assert_raises(Ringspun::UsageError) { pool.session(on_notice: 1) {} }
        assert_match(/on_notice: expected what answers to call/, error.message)
      end
    end
  end

  # The notices of others who share the connection are theirs.
  def test_notices_of_many_strands_on_one_connection
    told = Hash.new { |all, key| all[key] = [] }
    key = :ringspun_test_strand
    on_pool(lanes: 1, on_notice: ->(notice) { told[Thread.current[key]] << notice.message }) do |pool, machine|
      strands = Array.new(50) do |number|
        machine.spin do
          Thread.current[key] = number
          3.times { pool.query("do $$ begin raise notice '#{number}'; end $$") }
          told[number].dup
        end
      end
      strands.each_with_index { |strand, number| assert_equal [number.to_s] * 3, strand.await }
    end
  end

  def test_the_fields_of_a_notice
    told = []
    on_pool(on_notice: told.method(:<<)) do |pool|
      pool.execute("do $$ begin raise notice using message = 'm', detail = 'd', hint = 'h', errcode = '01234'; end $$")
      notice = told.first
      assert_equal %w[NOTICE 01234 m d h], [notice.severity, notice.sqlstate, notice.message, notice.detail, notice.hint]
      assert_equal "NOTICE: m", notice.to_s
      assert_equal %i[severity sqlstate message detail hint context], notice.fields.keys
    end
  end

  def test_a_log_of_what_takes_long
    out = StringIO.new
    on_pool(log: Logger.new(out), log_slower_than: 0) { |pool| pool.query("select $1::text,\n  2", "secret") }
    times = /\d+\.\d{3} s \(queue .*, wire .*, decoding .*\)/
    assert_match(/WARN -- : ringspun: #{times}, 1 rows, connection \d+: select \$1::text, 2\n/, out.string)
    refute_match(/secret/, out.string)
    out = StringIO.new
    on_pool(log: Logger.new(out), log_slower_than: 3600) { |pool| pool.query("select 1") }
    assert_empty out.string
  end

  def test_no_password_and_no_parameter_is_shown
    out = StringIO.new
    told = []
    on_pool(log: Logger.new(out), log_slower_than: 0, on_statement: told.method(:<<)) do |pool|
      assert_raises(Postgres::ServerError) { pool.query("alter role no_such_role password 'sec''ret' valid until 'infinity'") }
      assert_raises(Postgres::ServerError) { pool.query("select $1::int", "parameter") }
      shown = out.string + told.map(&:inspect).join + told.map(&:to_s).join + told.map { |one| one.pretty_inspect }.join
      refute_match(/sec|ret'|parameter/, shown)
      assert_match(/password '\.\.\.' valid until/, shown)
    end
  end

  def test_options_that_are_wrong
    { { on_statement: 1 } => /on_statement: expected what answers to call, got 1/, { on_notice: "x" } => /on_notice: expected/,
      { log: 1 } => /log: expected a Logger/,
      { log: Logger.new(nil), log_slower_than: "x" } => /log_slower_than/ }.each do |options, message|
      assert_match message, assert_raises(Ringspun::UsageError) { pool(**options) }.message
    end
  end

  def test_how_a_statement_is_shown
    shown = Postgres.const_get(:Shown)
    assert_equal "select 1 from t", shown.sql("\n select 1\n\tfrom t ")
    assert_equal "#{"x" * 500}...", shown.sql("x" * 501)
    ["create role r password 'secret'", "ALTER USER u WITH ENCRYPTED PASSWORD E'sec\\nret'", "alter role r password $$secret$$",
     "alter role r password 'secret", "alter role r password $a$secret"].each { |sql| refute_match(/sec/, shown.sql(sql)) }
    assert_equal "select password from users where name = 'x'", shown.sql("select password from users where name = 'x'")
  end
end
