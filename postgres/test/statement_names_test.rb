# frozen_string_literal: true

require "test_helper"
require "ringspun/postgres"
require "support/scripted_server"

# When a connection gives no more names to statements, because a server does not know one that it was told.
class PostgresStatementNamesTest < Minitest::Test
  include AnyBackend

  Postgres = Ringspun::Postgres

  # As EXECUTE of what nobody has prepared: also when the statement has been given a name meanwhile.
  def test_a_statement_without_a_name_that_fails_like_one
    on_lane do |pool, machine, backend|
      40.times { pool.config.sharing.histories.note("fail $1, $2", 0) } # so that both are sent together
      asked = [%w[first 26000], %w[second 22012]].map { |params| machine.spin { pool.query("fail $1, $2", *params) } }
      assert_equal %w[26000 22012], asked.map { |strand| assert_raises(Postgres::ServerError) { strand.await }.sqlstate }
      assert_equal 1, names(pool, backend)
    end
  end

  def test_a_name_that_the_server_has_forgotten
    on_lane do |pool, _, backend|
      pool.query_value("echo $1", "nonce")
      backend.instance_variable_get(:@statements).clear
      assert_equal "nonce", pool.query_value("echo $1", "nonce")
      assert_equal 0, names(pool, backend)
    end
  end

  def test_a_name_that_the_server_has_already
    on_lane do |pool, _, backend|
      known = backend.instance_variable_get(:@statements)
      known.define_singleton_method(:key?) { |_| true }
      assert_equal "nonce", pool.query_value("echo $1", "nonce")
      known.singleton_class.remove_method(:key?)
      assert_equal 0, names(pool, backend)
    end
  end

  private

  def on_lane
    Ringspun::Simulation.run(seed: 1, faults: false) do |machine|
      server = ScriptedServer.new(machine, Random.new(1))
      pool = Postgres::Pool.new(ScriptedServer::URL, lanes: 1)
      pool.query_value("echo $1", "nonce")
      yield pool, machine, server.backends.last
    ensure
      pool&.close
      server&.await_end
      server&.close
    end
  end

  # @return [Integer] how many statements it knows by name, of one that is used often
  def names(pool, backend)
    known = backend.instance_variable_get(:@statements)
    known.clear
    3.times { pool.query_value("work $1", "nonce") }
    known.keys.count { |name| !name.empty? }
  end
end
