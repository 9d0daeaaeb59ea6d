# frozen_string_literal: true

require "postgres_helper"

# What a statement leaves in its session: on a connection that others share nobody else meets it, and in a session it does not
# change what values are read.
# servers: 15, 17
class PostgresSessionStateTest < Minitest::Test
  include OnPool
  include AnyBackend

  # By their text, before they are sent.
  TELLING = ["create temp table a (b int)", "create table pg_temp.a (b int)", "select 1 as a into temporary b",
             "select pg_advisory_lock(1)", "select pg_catalog.pg_try_advisory_lock(1)", "select pg_advisory_unlock_all()",
             "select set_config('TimeZone', 'Asia/Tokyo', false)", "select set_config('a.b', 'c', $1::bool)"].freeze

  TELLING.each_with_index do |sql, number|
    define_method("test_a_shared_connection_refuses_what_leaves_something_#{number}") do
      on_pool(lanes: 1) do |pool|
        pid = "select pg_backend_pid()"
        before = pool.query_value(pid)
        error = assert_raises(Postgres::UnsafeSessionState) { pool.query(sql, *(true if sql.include?("$1"))) }
        assert_match(/use transaction .* or session/, error.message)
        know_as_quick(pool, pid)
        assert_equal before, pool.query_value(pid), "nothing was sent"
      end
    end
  end

  def test_what_ends_with_the_statement_is_no_harm
    on_pool(lanes: 1) do |pool|
      assert_equal "c", pool.query_value("select set_config('a.b', 'c', true)")
      assert_nil pool.query_value("select nullif(current_setting('a.b', true), '')")
      assert pool.query_value("select pg_try_advisory_xact_lock(7)")
      assert_equal "pg_advisory_lock(1)", pool.query_value("select 'pg_advisory_lock(1)'")
      assert_equal "UTF8", pool.query_value("select set_config('client_encoding', 'UTF8', true)")
    end
  end

  REPORTED = { "client_encoding" => "LATIN1", "DateStyle" => "German", "IntervalStyle" => "postgres", "TimeZone" => "Asia/Tokyo",
               "standard_conforming_strings" => "off", "application_name" => "somebody" }.freeze
  HIDDEN = "do $do$ begin perform set_config('%s', '%s', false); end $do$"

  # By what the server reports: no text tells what a DO does.
  REPORTED.each do |name, value|
    define_method("test_who_sets_#{name}_on_a_shared_connection_hears_so_and_nobody_meets_it") do
      on_pool(lanes: 1) do |pool|
        before = pool.query_value("select current_setting($1)", name)
        error = assert_raises(Postgres::UnsafeSessionState) { pool.query(format(HIDDEN, name, value)) }
        assert_match(/this statement has set #{name} for others to meet.*use transaction .* or session/, error.message)
        assert_equal before, pool.query_value("select current_setting($1)", name)
        batch = -> { pool.batch { |both| both.query("select 1").query(format(HIDDEN, name, value)) } }
        assert_match(/has set #{name}/, assert_raises(Postgres::UnsafeSessionState, &batch).message)
        assert_equal before, pool.query_value("select current_setting($1)", name)
      end
    end

    define_method("test_who_sets_#{name}_in_another_thread_hears_so") do
      with_pool do |pool|
        quiet_thread do
          assert_raises(Postgres::UnsafeSessionState) { pool.query(format(HIDDEN, name, value)) }
          refute_equal value, pool.query_value("select current_setting($1)", name)
        end.value
      end
    end

    define_method("test_who_sets_#{name}_without_pipelining_hears_so") do
      on_pool(pipelining: false, max: 1) do |pool|
        before = pool.query_value("select current_setting($1)", name)
        assert_raises(Postgres::UnsafeSessionState) { pool.query(format(HIDDEN, name, value)) }
        assert_equal before, pool.query_value("select current_setting($1)", name)
      end
    end
  end

  # A DO has a connection of its own, which the next one of which nothing is known gets as well.
  def test_what_is_set_and_set_back_is_no_harm
    on_pool(lanes: 1, max: 1) do |pool|
      pid, before = pool.session { |s| s.query("select pg_backend_pid(), current_setting('TimeZone')").rows.first }
      pool.query(format(HIDDEN, "TimeZone", before))
      assert_equal pid, pool.session { |s| s.query_value("select pg_backend_pid()") }
    end
  end

  UNREADABLE = REPORTED.slice("client_encoding", "DateStyle", "IntervalStyle").freeze
  SETTING = ["set %s to '%s'", "set local %s to '%s'", "select set_config('%s', '%s', false)", HIDDEN].freeze
  ASKING = {
    session: ->(pool, &block) { pool.session(&block) }, transaction: ->(pool, &block) { pool.transaction(&block) }
  }.freeze

  # Also in threads, whose connection is the courier's.
  UNREADABLE.to_a.product(ASKING.keys).each do |(name, value), kind|
    define_method("test_a_#{kind}_refuses_#{name}_with_which_values_would_be_read_wrongly") do
      on_pool(max: 1) { |pool| assert_refuses(pool, kind, name, value) }
      with_pool(max: 1) { |pool| quiet_thread { assert_refuses(pool, kind, name, value) }.value }
    end
  end

  def test_a_session_follows_the_order_of_day_and_month
    on_pool do |pool|
      pool.session do |s|
        s.query("set DateStyle to 'ISO, DMY'")
        assert_equal [Date.new(2026, 2, 1)] * 3, Array.new(3) { s.query_value("select '1/2/2026'::date") }
      end
    end
  end

  # Also strings: parameters are no literals.
  def test_a_session_follows_other_settings
    on_pool do |pool|
      pool.session do |s|
        ["set timezone to 'Asia/Tokyo'", "set standard_conforming_strings to off"].each { |sql| s.query(sql) }
        3.times do
          assert_equal ['a\\b', Time.utc(2026)], s.query("select $1::text, '2026-01-01 09:00'::timestamptz", 'a\\b').rows.first
        end
      end
      refute_equal "Asia/Tokyo", pool.transaction { |t| t.query_value("show timezone") }
    end
  end

  # What is kept by a connection for one user: [its statements' names, whether the session was made anew].
  def kept(pool)
    pool.transaction do |t|
      yield t
      2.times { t.query("select 'kept'") }
    end
    pool.transaction { |t| t.query_value("select count(*) from pg_prepared_statements where statement = $1", "select 'kept'") }
  end

  ["set local timezone to 'Asia/Tokyo'", "set transaction isolation level serializable", "set constraints all deferred",
   "select set_config('TimeZone', 'Asia/Tokyo', true)",
   "create temp table gone (a int) on commit drop"].each_with_index do |sql, number|
    define_method("test_what_ends_with_its_transaction_costs_no_names_#{number}") do
      on_pool(max: 1) { |pool| assert_equal 1, kept(pool) { |t| t.query(sql) } }
    end
  end

  ["set timezone to 'Asia/Tokyo'", "select set_config('TimeZone', 'Asia/Tokyo', false)", "select set_config('a.b', 'c', false)",
   "create temp table gone (a int)", "select 1 as a into temp gone", "select pg_advisory_lock(20611)",
   format(HIDDEN, "TimeZone", "Asia/Tokyo")].each_with_index do |sql, number|
    define_method("test_what_outlives_its_transaction_is_gone_before_the_next_has_the_connection_#{number}") do
      on_pool(max: 1) do |pool|
        assert_equal 0, kept(pool) { |t| t.query(sql) }
        left = "select current_setting('TimeZone'), nullif(current_setting('a.b', true), ''), to_regclass('pg_temp.gone'), " \
               "(select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid())"
        zone, *others = pool.transaction { |t| t.query(left).rows.first }
        refute_equal "Asia/Tokyo", zone
        assert_equal [nil, nil, 0], others
      end
    end
  end

  private

  def assert_refuses(pool, kind, name, value)
    SETTING.each do |how|
      next if kind == :session && how.start_with?("set local")

      error = assert_raises(Postgres::UnsafeSessionState) do
        ASKING.fetch(kind).call(pool) { |asked| asked.query(format(how, name, value)) && flunk("it was let") }
      end
      assert_match(/has set #{name}, with which values would be read wrongly; the connection is closed/, error.message)
      assert_equal ["ä", Date.new(2026, 2, 1)], pool.transaction { |t| t.query("select 'ä', '2026-02-01'::date").rows.first }
    end
  end
end
