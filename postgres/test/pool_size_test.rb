# frozen_string_literal: true

require "test_helper"
require "ringspun/postgres"
require "support/on_scripted_pool"

# How many connections a pool has while they are used, and while they are not. Time is virtual.
class PostgresPoolSizeTest < Minitest::Test
  include AnyBackend
  include OnScriptedPool

  Postgres = Ringspun::Postgres

  def test_the_first_use_opens_as_many_as_there_are_to_be_at_least
    [->(pool) { pool.query("echo $1", "a") }, ->(pool) { pool.session { |s| s.query("echo $1", "a") } }].each do |use|
      on_pool(min: 3) do |pool, machine|
        machine.sleep(1)
        assert_equal 0, pool.metrics[:connections]
        use.call(pool)
        machine.sleep(1)
        assert_equal({ connections: 3, idle: 3, waiting: 0 }, pool.metrics.first(3).to_h)
      end
    end
  end

  def test_what_nobody_has_used_for_five_minutes_is_closed_but_for_the_least
    on_pool(min: 2) do |pool, machine, server|
      use_at_once(pool, machine, 6)
      assert_equal 6, pool.metrics[:idle]
      10.times { pool.session { |_| nil } }
      assert_equal 6, pool.metrics[:idle]
      machine.sleep(301)
      pool.session { |_| nil }
      assert_equal({ connections: 2, idle: 2, waiting: 0 }, pool.metrics.first(3).to_h)
      assert_equal 2, server.backends.size
    end
  end

  def test_those_that_are_lost_are_opened_again_when_one_is_used
    on_pool(min: 3) do |pool, machine|
      die = ->(session) { assert_raises(Postgres::ConnectionLost) { session.query("die $1", "now") } }
      machine.await(Array.new(3) { machine.spin { pool.session(&die) } })
      pool.session { |_| nil }
      machine.sleep(1)
      assert_equal({ connections: 3, idle: 3, waiting: 0 }, pool.metrics.first(3).to_h)
    end
  end

  def test_shared_connections_that_have_lived_long_enough_are_replaced_while_they_are_used
    on_pool(lanes: 2, max_lifetime: 60) do |pool, machine, server|
      40.times { pool.config.sharing.histories.note("echo $1", 0) } # so that it goes to shared ones only
      over = machine.now + 300
      used = []
      strands = Array.new(20) do |number|
        machine.spin do
          while machine.now < over
            assert_equal number.to_s, pool.query_value("echo $1", number.to_s)
            used |= server.backends.map(&:process)
            machine.sleep(0.5)
          end
        end
      end
      machine.await(strands)
      assert_includes 5..12, used.size
      assert_operator server.backends.size, :<=, 2
    end
  end

  # Room is made for it meanwhile, which may switch strands.
  def test_a_shared_connection_that_two_strands_lend_at_once_counts_once
    on_pool(max: 2) do |pool, machine|
      pool.session { |session| session.query("echo $1", "idle") }
      lane = Object.new
      assert_equal [true, false], machine.await(Array.new(2) { machine.spin { pool.connections.lend(lane) } })
      pool.connections.end_loan(lane)
      assert_equal({ connections: 1, idle: 1, waiting: 0 }, pool.metrics.first(3).to_h)
    end
  end

  def test_one_that_has_lived_long_enough_stays_where_there_is_no_other
    on_pool(lanes: 1, max_lifetime: 60) do |pool, machine, server|
      pool.query("echo $1", "a")
      machine.sleep(100)
      server.fail_after(0)
      5.times { assert_equal "a", pool.query_value("echo $1", "a") }
      server.fail_after(1)
      machine.sleep(10)
      pool.query("echo $1", "a")
      machine.sleep(1)
      assert_equal [2], server.backends.map(&:process)
    end
  end

  # It is nobody's call that fails.
  def test_a_server_that_has_gone_meanwhile
    on_pool(min: 3, connect_timeout: "1") do |pool, machine, server|
      server.fail_after(1)
      assert_equal "a", pool.query_value("echo $1", "a")
      machine.sleep(10)
      assert_equal({ connections: 0, idle: 0, waiting: 0 }, pool.metrics.first(3).to_h)
    end
  end

  # Lets so many connections begin.
  class Server < ScriptedServer
    def fail_after(count) = @left = count

    private

    def talk(stream)
      return if @left&.zero?

      @left -= 1 if @left
      super
    end
  end

  private

  def server_class = Server

  def use_at_once(pool, machine, count)
    machine.await(Array.new(count) { machine.spin { pool.session { |_| machine.sleep(0.5) } } })
  end
end
