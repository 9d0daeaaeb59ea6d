# frozen_string_literal: true

require "test_helper"
require "ringspun/postgres"
require "support/on_scripted_pool"

# A server that restarts ends all connections at once. Whoever learns it from one does not send on the others. Time is virtual.
class PostgresAfterLossTest < Minitest::Test
  include AnyBackend
  include OnScriptedPool

  Postgres = Ringspun::Postgres

  def test_a_statement_that_is_idempotent_is_answered_however_many_connections_have_ended
    [{ lanes: 4 }, { lanes: 2 }, { pipelining: false }].each do |options|
      on_pool(**options) do |pool, machine, server|
        open_all(pool, machine)
        assert_operator server.backends.size, :>, 1
        end_all(server)
        assert_equal "x", pool.query_value("select echo $1", "x", idempotent: true)
      end
    end
  end

  def test_one_statement_is_in_doubt_and_not_the_next_ones
    on_pool(lanes: 4) do |pool, machine, server|
      open_all(pool, machine)
      end_all(server)
      assert_predicate assert_raises(Postgres::ConnectionLost) { pool.query("insert $1", "a") }, :in_doubt?
      8.times { |number| pool.query("insert $1", number.to_s) }
      pool.transaction { |transaction| transaction.query("insert $1", "last") }
      assert_equal [*"0".."7", "last"], server.committed - ["a"]
    end
  end

  def test_transactions_and_sessions_too
    on_pool do |pool, machine, server|
      machine.await(Array.new(3) { machine.spin { pool.session { |session| session.query("work $1, $2", "x", "0.01") } } })
      pool.query("select echo $1", "x")
      end_all(server)
      assert_raises(Postgres::ConnectionLost) { pool.query("select echo $1", "x") }
      machine.await(Array.new(3) { machine.spin { pool.session { |session| session.query("select echo $1", "x") } } })
    end
  end

  private

  def open_all(pool, machine)
    40.times { pool.query("select echo $1", "x") } # known as quick
    machine.await(Array.new(200) { machine.spin { pool.query("select echo $1", "x") } })
  end

  # Each of them learns it from what it sends next, as through a network.
  def end_all(server)
    server.backends.each { |backend| backend.define_singleton_method(:take) { |*| raise Ringspun::ClosedError, "ended" } }
  end
end
