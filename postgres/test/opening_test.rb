# frozen_string_literal: true

require "postgres_helper"
require "support/on_scripted_pool"

# The BEGIN of a transaction leaves with the first statement, and nothing is executed where the server refuses it.
class PostgresOpeningTest < Minitest::Test
  include OnScriptedPool

  Postgres = Ringspun::Postgres

  # Notes what comes between two Syncs, and refuses a BEGIN.
  class Server < ScriptedServer
    attr_reader :groups
    attr_accessor :refusal

    def initialize(...)
      @groups = []
      super
    end

    private

    def new_backend(stream, number) = Noting.new(self, stream, number, @settings[stream])
  end

  # One connection.
  class Noting < ScriptedServer::Backend
    private

    def sync
      @server.groups << @group if @group
      @group = nil
      super
    end

    def perform(portal)
      (@group ||= []) << portal.sql
      raise Failure.new(@server.refusal, "no") if @server.refusal && portal.sql.start_with?("BEGIN")

      super
    end
  end

  INSERT = "insert $1"

  def server_class = Server

  def test_it_has_the_sync_of_the_first_statement
    on_transaction do |pool, _, groups|
      pool.transaction { |t| 2.times { |i| t.execute(INSERT, i.to_s) } }
      assert_equal [["BEGIN", INSERT], [INSERT], ["COMMIT"]], groups
    end
  end

  def test_of_one_that_asks_nothing
    on_transaction do |pool, _, groups|
      assert_equal 1, pool.transaction { 1 }
      assert_equal [%w[BEGIN COMMIT]], groups
      groups.clear
      assert_raises(ZeroDivisionError) { pool.transaction { raise ZeroDivisionError } }
      assert_equal [%w[BEGIN ROLLBACK]], groups
    end
  end

  def test_it_leaves_when_the_block_waits
    on_transaction do |pool, server, groups|
      pool.transaction do |t|
        pool.query_value("select echo $1", "other")
        server.machine.sleep(1)
        t.execute(INSERT, "1")
      end
      assert_equal [["BEGIN"], [INSERT], ["COMMIT"]], groups - [["select echo $1"], ["show lock_timeout"]]
    end
  end

  def test_where_it_is_refused_nothing_is_executed
    on_transaction do |pool, server, groups|
      server.refusal = "25001"
      error = assert_raises(Postgres::ServerError) do
        pool.transaction do |t|
          error = assert_raises(Postgres::ServerError) { t.execute(INSERT, "1") }
          assert_equal %w[25001 BEGIN], [error.sqlstate, error.sql]
          refused = assert_raises(Postgres::TransactionRolledBack) { t.execute(INSERT, "2") }
          assert_match(/has not begun/, refused.message)
          raise error
        end
      end
      assert_equal "25001", error.sqlstate
      assert_equal [[["BEGIN"]], []], [groups, server.committed]
      assert_raises(Postgres::TransactionRolledBack) do
        pool.transaction { |t| assert_raises(Postgres::ServerError) { t.execute(INSERT, "3") } }
      end
      assert_goes_on(pool, server)
    end
  end

  def test_where_it_is_refused_before_the_first_statement
    on_transaction do |pool, server, groups|
      server.refusal = "25001"
      pool.transaction do |t|
        server.machine.sleep(1)
        error = assert_raises(Postgres::ServerError) { t.batch { |batch| 2.times { batch.execute(INSERT, "1") } } }
        assert_equal "BEGIN", error.sql
        raise ZeroDivisionError
      end
    rescue ZeroDivisionError
      assert_equal [[["BEGIN"]], []], [groups, server.committed]
      assert_goes_on(pool, server)
    end
  end

  def test_where_it_is_refused_and_nobody_asks
    on_transaction do |pool, server, _|
      server.refusal = "25001"
      assert_raises(Postgres::ServerError) { pool.transaction { nil } }
      assert_raises(ZeroDivisionError) { pool.transaction { server.machine.sleep(1) && raise(ZeroDivisionError) } }
      assert_goes_on(pool, server)
    end
  end

  def test_a_pooler_that_has_forgotten_it
    on_transaction do |pool, server, groups|
      pool.transaction { nil }
      groups.clear
      server.backends.each { |backend| backend.instance_variable_get(:@statements).delete_if { |_, sql| sql == "BEGIN" } }
      pool.transaction { |t| t.execute(INSERT, "1") }
      assert_equal [["BEGIN", INSERT], ["COMMIT"]], groups
      assert_includes server.committed, "1"
    end
  end

  # What another strand asks in the same tick would be executed on its own, if the BEGIN were refused.
  def test_other_strands_wait_until_it_has_begun
    on_transaction do |pool, server, groups|
      machine = server.machine
      server.refusal = "25001"
      assert_raises(Postgres::TransactionRolledBack) do
        pool.transaction do |t|
          errors = Array.new(3) do |i|
            machine.spin { assert_raises(Postgres::Error) { t.execute(INSERT, i.to_s) }.class }
          end.map(&:await)
          assert_equal 2, errors.count(Postgres::TransactionRolledBack)
        end
      end
      assert_equal [[["BEGIN"]], []], [groups, server.committed]
      server.refusal = nil
      pool.transaction { |t| Array.new(3) { |i| machine.spin { t.execute(INSERT, i.to_s) } }.each(&:await) }
      assert_equal %w[0 1 2], server.committed.sort
    end
  end

  # It stays in the outbox, or is known to have left.
  def test_a_first_statement_that_is_given_up
    on_transaction do |pool, server, groups|
      machine = server.machine
      [0, 1].each do |ticks|
        pool.transaction do |t|
          first = machine.spin { t.query_value("select work $1, $2", "1", "5") }
          ticks.succ.times { machine.yield }
          first.terminate
          assert_raises(Ringspun::TerminatedError) { first.await }
          t.transaction { |inner| inner.execute(INSERT, "inner") }
        rescue Postgres::InFailedTransaction
          raise ZeroDivisionError
        end
      rescue ZeroDivisionError
        nil
      ensure
        assert_equal %w[I], server.backends.map(&:status).uniq
      end
      assert_equal "BEGIN", groups.first.first
      assert_goes_on(pool, server)
    end
  end

  private

  # One connection is open, and knows the statements.
  def on_transaction
    on_pool do |pool, _, server|
      pool.transaction { |t| t.execute(INSERT, "0") }
      [server.groups, server.committed].each(&:clear)
      yield pool, server, server.groups
    end
  end

  def assert_goes_on(pool, server)
    server.refusal = nil
    server.committed.clear
    pool.transaction { |t| t.execute(INSERT, "on") }
    pool.session { |session| session.execute(INSERT, "session") }
    assert_equal %w[on session], server.committed
    assert_equal 1, pool.metrics[:connections]
  end
end
