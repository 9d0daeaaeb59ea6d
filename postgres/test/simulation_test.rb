# frozen_string_literal: true

require "test_helper"
require "ringspun/postgres"
require "support/scripted_server"

# Strands that share a pool, on a simulated machine with a scripted server: whatever is cancelled, late, or lost, each gets the
# answer to what it has asked, and nothing is left behind. The message of a failure names the seed.
class PostgresSimulationTest < Minitest::Test
  Postgres = Ringspun::Postgres

  FAULTS = { short_transfer: 0.15, interrupted: 0.05, delay: 0.3, late_cancel: 0.5, submission_full: 0.05, no_buffers: 0.05,
             late_wake: 0.05, scribble: 0.2 }.freeze
  RESETS = { **FAULTS, reset: 0.004 }.freeze

  # One pool in one simulated world.
  class World
    attr_reader :machine, :random, :server, :pool, :unexpected

    def initialize(machine, random, **options)
      @machine = machine
      @random = random
      @server = ScriptedServer.new(machine, random)
      @pool = Postgres::Pool.new(ScriptedServer::URL, **options)
      @nonces = 0
      @strands = []
    end

    def nonce = "n#{@nonces += 1}"

    def chance(probability) = @random.rand < probability

    def pause(most = 0.01) = @machine.sleep(@random.rand * most)

    def timeout = chance(0.4) ? @random.rand * 0.02 : nil

    # Of these a strand must expect that they happen.
    def expecting(*errors)
      yield
    rescue Ringspun::TimeoutError, *errors => error
      error
    end

    # @yield in that many strands, which must all come to their end
    def strands(count)
      @strands.concat(Array.new(count) { @machine.spin { yield } })
    end

    def finish
      @strands.each do |strand|
        strand.await
      rescue Ringspun::TerminatedError
        nil
      end
      settle
      yield self
    ensure
      @pool.close
      @server.await_end
      @server.close
    end

    # The canceller and what the server still works on.
    def settle = @machine.sleep(200)
  end

  def test_statements_with_deadlines
    explore(faults: FAULTS) do |world|
      world.strands(8) { 4.times { ask(world) } }
    end
  end

  def test_a_wait_for_the_pool_that_takes_too_long
    explore(10, faults: FAULTS, max: 1) do |world|
      world.pool.session do
        waiter = world.machine.spin { world.pool.session { flunk "there is but one" } }
        error = assert_raises(Postgres::PoolTimeoutError) { waiter.await }
        assert_match(/no connection within 5 s: all 1 are in use/, error.message)
      end
    end
  end

  private

  def explore(count = Integer(ENV.fetch("RINGSPUN_SEEDS", "50")), faults:, **options)
    seed = ENV["RINGSPUN_SEED"]
    (seed ? [Integer(seed)] : count.times).each do |each|
      Ringspun::Simulation.explore(1, from: each, faults:) do |machine|
        before = machine.strands.size
        srand(each) # of the back-off of the pool
        world = World.new(machine, Random.new(each), **options)
        yield world
        world.finish { check(world) }
        assert_equal before, machine.strands.size, Ringspun.inspect_tree
      end
    end
  end

  def check(world)
    assert_equal world.pool.metrics[:connections], world.pool.metrics[:idle]
    assert_equal 0, world.pool.metrics[:waiting]
    assert_empty world.server.backends.map(&:status) - ["I"]
  end

  # One statement in one of many ways.
  def ask(world)
    world.pause
    nonce = world.nonce
    world.expecting do
      case world.random.rand(5)
      when 0 then assert_equal nonce, world.pool.query_value("echo $1", nonce, timeout: world.timeout)
      when 1 then within(world) { assert_equal nonce, world.pool.query_value("echo $1", nonce) }
      when 2 then assert_equal nonce, world.pool.query_value("work $1, $2", nonce, "0.02", timeout: world.timeout)
      when 3 then assert_rows(nonce, world.pool.query("rows $1, $2", nonce, "3", timeout: world.timeout).rows)
      when 4
        error = assert_raises(Postgres::UniqueViolation) { world.pool.query("fail $1, $2", nonce, "23505") }
        assert_equal nonce, error.primary
      end
    end
  end

  def within(world, &) = world.machine.timeout(world.timeout || 1000, &)

  def assert_rows(nonce, rows)
    assert_equal Array.new(3) { |number| [nonce, number.to_s] }, rows.map(&:to_a)
  end
end
