# frozen_string_literal: true

require "postgres_helper"
require "stringio"

# What has a connection of its own belongs to the thread in which it began: another one that asks it is refused, at once, and the
# connection is none the worse.
# servers: all
class PostgresForeignThreadTest < Minitest::Test
  include OnPool
  include NoNames

  ASKED = {
    query: ->(s) { s.query("select 1") },
    query_value: ->(s) { s.query_value("select $1::int", 1) },
    prepare: ->(s) { s.prepare("select 1").query },
    batch: ->(s) { s.batch { |batch| batch.query("select 1") } },
    stream: ->(s) { s.stream("select 1") { nil } },
    script: ->(s) { s.script("select 1") },
    transaction: ->(s) { s.transaction { nil } },
    notify: ->(s) { s.notify("nobody") },
    copy_out: ->(s) { s.copy_out("copy (select 1) to stdout") { nil } },
    copy_out_bytes: ->(s) { s.copy_out("copy (select 1) to stdout", StringIO.new) },
    copy_in: ->(s) { s.copy_in("copy nowhere from stdin", [[1]]) },
    copy_in_bytes: ->(s) { s.copy_in("copy nowhere from stdin", "1\n") },
    insert_many: ->(s) { s.insert_many("nowhere", [{ id: 1 }]) }
  }.freeze

  def elsewhere(session, ask)
    Thread.new do
      ask.call(session)
      :answered
    rescue Exception => error
      error
    end.value
  end

  def assert_refused(session)
    ASKED.each do |name, ask|
      error = elsewhere(session, ask)
      assert_kind_of Ringspun::UsageError, error, name
      assert_match(/this (session|transaction) belongs to the thread in which it began/, error.message)
    end
    assert_equal 2, session.query_value("select 2")
  end

  def test_a_session_of_a_strand
    on_pool { |pool| pool.session { |s| assert_refused(s) } }
  end

  def test_a_transaction_of_a_strand
    on_pool { |pool| pool.transaction { |t| assert_refused(t) } }
  end

  def test_a_savepoint_of_a_strand
    on_pool { |pool| pool.transaction { |t| t.transaction { |inner| assert_refused(inner) } } }
  end

  def test_a_session_of_the_main_thread
    with_pool { |pool| pool.session { |s| assert_refused(s) } }
  end

  def test_a_transaction_of_the_main_thread
    with_pool { |pool| pool.transaction { |t| assert_refused(t) } }
  end

  def test_another_machine
    on_pool do |pool|
      pool.session do |s|
        error = elsewhere(s, ->(session) { Ringspun.run { session.query("select 1") } })
        assert_match(/belongs to the thread in which it began/, error.message)
        assert_equal 2, s.query_value("select 2")
      end
    end
  end

  # Which the courier asks for: any thread may.
  def test_a_session_of_a_plain_thread
    with_pool do |pool|
      session = ->(s) { [elsewhere(s, ASKED[:query]), Ringspun.run { s.query_value("select 2") }, s.query_value("select 3")] }
      assert_equal [:answered, 2, 3], Thread.new { pool.session(&session) }.value
    end
  end
end
