# frozen_string_literal: true

require "postgres_helper"
require "support/on_scripted_pool"
require "support/notifying_server"
require_relative "../../runtime/test/support/spans"

# Every method and option that takes a span of time reads it in the same way, see runtime/test/machine/spans_test.rb. The
# signatures name them, so a new one cannot be forgotten here.
class PostgresSpansTest < Minitest::Test
  include AnyBackend
  include OnScriptedPool

  def server_class = NotifyingServer

  # A limit that has passed ends each of them as 0 does.
  LIMITS = {
    "Client#query timeout" => ->(pool, span) { pool.query("select 1", timeout: span) },
    "Client#query_one timeout" => ->(pool, span) { pool.query_one("select 1", timeout: span) },
    "Client#query_value timeout" => ->(pool, span) { pool.query_value("select 1", timeout: span) },
    "Client#execute timeout" => ->(pool, span) { pool.execute("select 1", timeout: span) },
    "Client#batch timeout" => ->(pool, span) { pool.batch(timeout: span) { |batch| batch.query("select 1") } },
    "Client#stream timeout" => ->(pool, span) { pool.stream("select 1", timeout: span) { flunk } },
    "Client#notify timeout" => ->(pool, span) { pool.notify("a", timeout: span) },
    "Copying#copy_in timeout" => ->(pool, span) { pool.copy_in("copy a from stdin", ["1\n"], timeout: span) },
    "Copying#copy_out timeout" => ->(pool, span) { pool.copy_out("copy a to stdout", timeout: span) { flunk } },
    "Inserting#insert_many timeout" => ->(pool, span) { pool.insert_many("a", [[1]], columns: [:b], timeout: span) },
    "Pool#listen timeout" => ->(pool, span) { pool.listen("a", timeout: span) { flunk } },
    "Subscription#pop timeout" => lambda do |pool, span|
      pool.listen("a") { |one| one.pop(timeout: span) || raise(Ringspun::TimeoutError) }
    end,
    "Client#script timeout" => ->(pool, span) { pool.script("select 1", timeout: span) },
    "Prepared#query timeout" => ->(pool, span) { pool.prepare("select 1").query(timeout: span) },
    "Prepared#stream timeout" => ->(pool, span) { pool.prepare("select 1").stream(timeout: span) { flunk } },
    "Pool#session timeout" => ->(pool, span) { pool.session(timeout: span) { flunk } },
    "Pool#transaction timeout" => ->(pool, span) { pool.transaction(timeout: span) { flunk } },
    "Session#transaction timeout" => ->(pool, span) { pool.session { |one| one.transaction(timeout: span) { flunk } } },
    "Transaction#transaction timeout" => lambda do |pool, span|
      pool.transaction { |one| one.transaction(timeout: span) { |inner| inner.query("select 1") } }
    end
  }.freeze
  SETTINGS = %i[checkout_timeout max_lifetime timeout].to_h do |name|
    ["Pool#initialize #{name}", ->(_, span) { made(name => span).config.public_send(name) }]
  end.freeze

  # With 0 all statements are slow.
  SLOW = "Pool#initialize log_slower_than"

  def test_every_span_of_the_signatures_has_a_row
    said = Spans.said_in("postgres").map { |name| name.delete_prefix("Ringspun::Postgres::") }
    assert_equal said, [*LIMITS.keys, *SETTINGS.keys, SLOW].sort
  end

  LIMITS.each do |name, row|
    define_method("test_limit_#{name}") do
      expected = outcome(row, 0)
      assert_kind_of Class, expected, "a limit of 0 was none"
      Spans::PASSED.each { |span| assert_equal expected, outcome(row, span), span.inspect }
      refuse(row, Spans::WRONG)
    end
  end

  SETTINGS.each do |name, row|
    define_method("test_setting_#{name}") do
      Spans.spellings(5).each { |span| assert_equal [5], outcome(row, span), span.inspect }
      refuse(row, [*Spans::WRONG, 0, -1, -Float::INFINITY, Spans::Duration.new(-1)])
    end
  end

  def test_from_when_on_a_statement_is_slow
    lines = []
    log = Object.new
    log.define_singleton_method(:warn) { |line| lines << line }
    row = ->(_, span) { made(log:, log_slower_than: span).config.observers.class }
    refuse(row, Spans::WRONG)
    [*Spans.spellings(5), 0, *Spans::PASSED].each { |span| assert_kind_of Array, outcome(row, span), span.inspect }
  end

  private

  # The value in an Array, or the class of the error.
  def outcome(row, span)
    on_pool { |pool, _, _| [instance_exec(pool, span, &row)] }.value
  rescue Ringspun::Error => error
    error.class
  end

  def refuse(row, wrong) = wrong.each { |span| assert_equal Ringspun::UsageError, outcome(row, span), span.inspect }

  def made(**options)
    pool = Ringspun::Postgres::Pool.new(ScriptedServer::URL, **options)
    pool.tap(&:close)
  end
end
