# frozen_string_literal: true

require "test_helper"
require "ringspun/postgres"
require "random/postgres_listeners"
require "support/notifying_server"
require "support/seeds"

# Random programs of subscriptions, on a simulated machine: what is notified after a `listen` comes once and in order, or a gap
# says that something may be missing. The message of a failure names the seed.
class PostgresListenersTest < Minitest::Test
  include AnyBackend

  FAULTS = { short_transfer: 0.15, interrupted: 0.05, delay: 0.3, late_cancel: 0.5, submission_full: 0.05, no_buffers: 0.05,
             late_wake: 0.05, scribble: 0.2 }.freeze

  { "a_machine_without_faults" => {}, "a_machine_with_faults" => FAULTS }.each do |name, faults|
    define_method("test_subscriptions_on_#{name}") do
      capture_io { Seeds.of_the_day(60).each { |seed| run_one(seed, faults) } }
    end
  end

  # Who waits for the beginning would wait for ever, where the queue was full before.
  def test_what_comes_before_a_subscription_has_begun_is_not_for_it
    pool = Ringspun::Postgres::Pool.new(ScriptedServer::URL)
    audience = Ringspun::Postgres.const_get(:Hub).const_get(:Audience).new
    subscription = Ringspun::Postgres::Subscription.new(pool, ["a"], 1, :close)
    audience.add(subscription, gate = Ringspun::Channel.new(1))
    audience.spread([["a", "1", 0], ["a", "2", 0]])
    audience.announce_gap
    assert_empty subscription
    audience.admit(["a"])
    assert_equal :live, gate.try_pop
    audience.spread([["a", "3", 0], ["a", "4", 0]])
    assert_equal "3", subscription.try_pop.payload
    assert_raises(Ringspun::Postgres::SubscriptionOverflow) { subscription.try_pop }
  end

  private

  def run_one(seed, faults)
    Supervised.tick
    Ringspun::Simulation.explore(1, from: seed, faults:) do |machine|
      before = machine.strands.size
      srand(seed) # of the back-off of the pool
      server = NotifyingServer.new(machine, Random.new(seed), patience: 0.001)
      pool = Ringspun::Postgres::Pool.new(ScriptedServer::URL)
      assert_empty PostgresListeners.new(machine, Random.new(seed), server, pool).call
      machine.sleep(20)
      assert_empty server.backends, "nobody listens any more"
    ensure
      pool.close
      server.await_end
      server.close
      assert_equal before, machine.strands.size, Ringspun.inspect_tree
    end
  end
end
