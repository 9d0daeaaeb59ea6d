# frozen_string_literal: true

require "postgres_helper"

# Several statements in one: Client#script.
# servers: all
class PostgresScriptTest < Minitest::Test
  include OnPool
  include NoNames

  def in_a_strand = on_pool { |pool| yield pool }
  def in_a_session = on_pool { |pool| pool.session { |session| yield session } }
  def in_a_transaction = on_pool { |pool| pool.transaction { |transaction| yield transaction } }
  def in_a_thread = with_pool { |pool| Thread.new { yield pool }.tap { |thread| thread.report_on_exception = false }.value }

  def in_a_threads_session
    with_pool do |pool|
      Thread.new { pool.session { |session| yield session } }.tap { |thread| thread.report_on_exception = false }.value
    end
  end

  def in_the_main_program = with_pool { |pool| yield pool }

  PLACES = %i[in_a_strand in_a_session in_a_transaction in_a_thread in_a_threads_session in_the_main_program].freeze

  def self.everywhere(name, &test)
    PLACES.each { |place| define_method("test_#{name}_#{place}") { __send__(place) { |client| instance_exec(client, &test) } } }
  end

  everywhere :results_of_each do |client|
    results = client.script(<<~SQL)
      create temp table script_t (id int, text text); -- not here; nor here
      insert into script_t values (1, 'a;b'), (2, $x$;$x$);
      /* nothing; */ ;
      select id, text, null as nothing from script_t order by id;
      select 'x' as y where false
    SQL
    assert_equal ["CREATE TABLE", "INSERT 0 2", "SELECT 2", "SELECT 0"], results.map(&:tag)
    assert_equal [[], [], [[1, "a;b", nil], [2, ";", nil]], []], results.map(&:rows)
    assert_equal [2, 2], [results[1].affected, results[2].length]
    assert_equal [%w[id text nothing], %w[y]], [results[2].columns, results[3].columns]
    assert_equal %w[int4 text text], results[2].column_types.map(&:type)
    assert_equal 7, client.query_value("select 7")
  end

  everywhere :nothing do |client|
    ["", " ; ;", "-- no\n/* no /* no */ ; */"].each { |sql| assert_empty client.script(sql) }
  end

  everywhere :many_rows do |client|
    first, second = client.script("select generate_series(1, 20000); select repeat('x', 100000) from generate_series(1, 20)")
    assert_equal [20_000, 20_000, 20], [first.size, first.last[0], second.count { |row| row[0].size == 100_000 }]
  end

  # Both answers come at once.
  def test_a_script_behind_a_statement_of_another_strand
    on_pool do |pool, machine|
      pool.session do |session|
        20.times do
          statement = machine.spin { session.query_value("select 1") }
          script = machine.spin { session.script("select 2; select 3") }
          assert_equal [1, [[[2]], [[3]]]], [statement.await, script.await.map(&:rows)]
        end
      end
    end
  end

  def test_a_script_is_one_transaction_outside_of_one
    on_pool do |pool|
      with_table(pool) do |table|
        error = assert_raises(Postgres::DivisionByZero) { pool.script("insert into #{table} values (1); select 1 / 0") }
        assert_equal [2, "select 1 / 0"], [error.place.number, error.place.sql]
        assert_empty ids(pool, table)
        pool.script("insert into #{table} values (1); commit; begin; insert into #{table} values (2); commit")
        assert_equal [1, 2], ids(pool, table)
      end
    end
  end

  def test_a_transaction_that_a_script_leaves_open_is_told
    on_pool do |pool|
      with_table(pool) do |table|
        error = assert_raises(Postgres::TransactionRolledBack) { pool.script("begin; insert into #{table} values (1)") }
        assert_match(/the script has left a transaction open/, error.message)
        assert_empty ids(pool, table)
      end
    end
  end

  def test_settings_of_a_script_are_its_own
    on_pool(max: 1) do |pool|
      pool.script("set statement_timeout = 1234; create temp table left_over (id int)")
      left = ["show statement_timeout", "select to_regclass('left_over')::text"]
      assert_equal ["0", nil], pool.session { |session| left.map { |sql| session.query_value(sql) } }
    end
  end

  SCRIPT = <<~SQL
    -- a comment; with a semicolon
    select 'é', E'it\\'s;';

    create function pg_temp.f() returns int language sql
      begin atomic; select case when true then 1 else 2 end; select 3; end;
    do $body$ begin perform 1; end $body$;
    select "no""body;"
      from (select 1) x
  SQL

  def test_the_place_of_the_statement_that_the_server_points_at
    on_pool do |pool|
      error = assert_raises(Postgres::UndefinedColumn) { pool.script(SCRIPT) }
      assert_equal [4, 7, "select \"no\"\"body;\"\n  from (select 1) x"], error.place.to_h.values
      assert_equal <<~TEXT.chomp, error.message
        column "no"body;" does not exist (42703)
        in statement 4 of the script, line 7: select "no""body;" from (select 1) x
        select "no""body;"
               ^
      TEXT
      assert_equal SCRIPT, error.sql
    end
  end

  def test_the_place_of_a_statement_that_fails_as_it_runs
    on_pool do |pool|
      sql = "select 1;\n;;\nselect 2;\n  select 1 / x from (select 0) y (x);\nselect 3"
      error = assert_raises(Postgres::DivisionByZero) { pool.script(sql) }
      assert_equal [3, 4, "select 1 / x from (select 0) y (x)"], error.place.to_h.values
      error = assert_raises(Postgres::DivisionByZero) { pool.script("select g, 1 / (3 - g) from generate_series(1, 3) g") }
      assert_equal 1, error.place.number
    end
  end

  def test_a_syntax_error_at_the_end
    on_pool do |pool|
      error = assert_raises(Postgres::SyntaxError) { pool.script("select 1;\nselect (") }
      assert_equal [2, 2], [error.place.number, error.place.line]
      assert_nil assert_raises(Postgres::SyntaxError) { pool.query("select (") }.place
    end
  end

  def test_a_place_shows_no_password
    on_pool do |pool|
      error = assert_raises(Postgres::ServerError) { pool.script("alter role no_such_role_at_all password 'secret'") }
      refute_match(/secret/, error.place.to_s + error.place.inspect)
    end
  end

  def test_statements_are_told_apart_as_the_server_does_it
    { "a; b" => %w[a b], "a ';' b" => ["a ';' b"], "a E'\\';' ; b" => ["a E'\\';'", "b"], "a '\\'; b" => ["a '\\'", "b"],
      "a $$;$$; b" => ["a $$;$$", "b"], "a $x$;$$;$x$; b" => ["a $x$;$$;$x$", "b"], "a$b$; c" => ["a$b$", "c"],
      "$1; $2" => %w[$1 $2],
      "(a; b); c" => ["(a; b)", "c"], "/* ; /* ; */ ; */ a; b" => %w[a b], "a -- ;\n; b" => ["a -- ;", "b"],
      "\"a;\"; b" => ["\"a;\"", "b"],
      "create procedure p() begin atomic a; case b end; end; c" => ["create procedure p() begin atomic a; case b end; end", "c"],
      "create function f() as 'x'; begin; c; end" => ["create function f() as 'x'", "begin", "c", "end"],
      "é'ü;'; b" => ["é'ü;'", "b"], "a '" => ["a '"], "a /* b" => ["a /* b"], "a $$ ;" => ["a $$ ;"],
      "1e'x';b" => ["1e'x'", "b"] }
      .each { |sql, parts| assert_equal parts, Postgres.const_get(:Script).new(sql).places.map(&:sql), sql }
  end

  def test_copy_and_other_bad_input
    on_pool do |pool|
      { -> { pool.script("select 1;\ncopy t from stdin;") } =>
          /no COPY .* in statement 2 of the script, line 2: copy t from stdin/,
        -> { pool.script("copy t to stdout") } => /COPY/, -> { pool.script(nil) } => /expected a statement, a String/,
        -> { pool.script("select 1\0") } => /no NUL/, -> { pool.script("select 1", timeout: "x") } => /timeout/ }
        .each { |call, message| assert_match message, assert_raises(Ringspun::UsageError, &call).message }
      assert_equal "select 'copy t from stdin'", pool.script("select $$select 'copy t from stdin'$$").first.value
    end
  end

  def test_a_script_that_is_late_is_cancelled_and_the_connection_goes_on
    on_pool(max: 1) do |pool, machine|
      sql = "select generate_series(1, 100); select pg_sleep(60)"
      assert_raises(Ringspun::TimeoutError) { pool.script(sql, timeout: 0.05) } # must pass
      pool.session { |session| assert_equal 1, session.query_value("select 1") }
      strand = machine.spin { pool.script("select 1; select generate_series(1, 1000) from pg_sleep(60)") }
      await(machine) { running(pool).any? { |sql| sql.include?("from pg_sleep(60)") } }
      strand.terminate
      await(machine) { running(pool).none? { |sql| sql.include?("from pg_sleep(60)") } }
      assert_equal [[1]], pool.script("select 1").map(&:value).then { |values| [values] }
    end
  end

  def test_a_script_of_async
    on_pool { |pool| assert_equal [1, 2], pool.async.script("select 1; select 2").await_result.map(&:value) }
  end

  def test_a_script_under_which_the_connection_ends
    on_pool do |pool|
      sql = "select 1; select pg_terminate_backend(pg_backend_pid()); select 2"
      error = assert_raises(Postgres::ConnectionLost) { pool.script(sql) }
      assert_predicate error, :in_doubt?
    end
  end
end
