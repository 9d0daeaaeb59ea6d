# frozen_string_literal: true

require "postgres_helper"

# LISTEN and NOTIFY on a real server: who may subscribe, from where, and how a subscription ends.
# servers: 15, 17
class PostgresListenTest < Minitest::Test
  include OnPool

  THOSE_THAT_LISTEN = "from pg_stat_activity where query like '%ISTEN %' and pid <> pg_backend_pid()"
  private_constant :THOSE_THAT_LISTEN

  def test_what_is_notified_after_listen_is_not_missed
    on_pool do |pool, machine|
      strands = Array.new(20) do |number|
        machine.spin do
          10.times do |turn|
            name = "x#{number % 5}_#{turn % 2}"
            pool.listen(name) do |subscription|
              pool.notify(name, "#{number}.#{turn}")
              assert_includes Enumerator.produce { subscription.pop.payload }.lazy, "#{number}.#{turn}"
            end
          end
        end
      end
      machine.await(strands)
    end
  end

  # Strands, threads, other machines: all of them have the one.
  def test_one_connection_for_all
    on_pool do |pool, machine|
      strands = Array.new(5) { machine.spin { pool.listen("one", &:pop) } }
      threads = Array.new(5) { Thread.new { pool.listen("one", &:pop) } }
      machines = Array.new(2) { Thread.new { Ringspun.run { pool.listen("one", &:pop) } } }
      await(machine) { audience_of(pool) == 12 }
      look { |other| await(machine) { other.query_value("select count(*) #{THOSE_THAT_LISTEN}") == 1 } }
      await(machine) { pool.listen("one").close } # by now all are admitted
      pool.notify(:one, "ö")
      got = machine.await(strands) + (threads + machines).map(&:value)
      assert_equal [["one", "ö"]], got.map { |each| each.deconstruct[1, 2] }.uniq
      await(machine) { audience_of(pool).zero? }
    end
  end

  def test_the_process_that_has_notified
    on_pool do |pool|
      pool.listen("who") do |subscription|
        pid = pool.transaction { |t| t.notify("who") || t.query_value("select pg_backend_pid()") }
        assert_equal Postgres::Notification.new(:notification, "who", "", pid), subscription.pop
      end
    end
  end

  def test_a_branch_of_select
    on_pool do |pool, machine|
      pool.listen("a", "b", queue: 2) do |subscription|
        assert_nil Ringspun.select(subscription, timeout: 0)
        pool.notify("b", "1")
        assert_equal [subscription, "1"], Ringspun.select(subscription).then { |from, event| [from, event.payload] }
        closing = machine.spin { subscription.close }
        assert_equal [subscription, nil], Ringspun.select(subscription)
        closing.await
      end
    end
  end

  def test_names_are_taken_as_they_are
    names = ["Some Name", "some name", "\"", "a\"\";b", "ö" * 31, "x" * 63, "select"]
    on_pool do |pool|
      pool.listen(*names) do |subscription|
        names.each { |name| pool.notify(name, name.hash.to_s) }
        assert_equal(names.map { |name| [name, name.hash.to_s] }, names.map { subscription.pop.deconstruct[1, 2] })
      end
    end
  end

  # The last that the server takes, and what it would refuse or cut.
  def test_limits_of_notify
    on_pool do |pool|
      pool.listen("limit") do |subscription|
        pool.notify("limit", "x" * 7999)
        pool.notify("limit", "\u00f6".b)
        assert_equal ["x" * 7999, "ö"], Array.new(2) { subscription.pop.payload }
      end
      error = assert_raises(Postgres::DataException) { pool.query("select pg_notify('limit', $1)", "x" * 8000) }
      assert_equal "payload string too long", error.primary
      { ["limit", "x" * 8000] => /payload has 7999 bytes at most, this one has 8000/,
        ["limit", "\xff"] => /a payload: expected text in UTF-8/,
        ["limit", "a\0"] => /a payload has no NUL/, ["limit", 1] => /a payload: expected a String, got 1/,
        ["x" * 64] => /the name of a channel has 63 bytes at most, this one has 64/, [""] => /at least one character/,
        [nil] => /the name of a channel: expected a String, got nil/ }.each do |arguments, message|
        assert_match message, assert_raises(Ringspun::UsageError) { pool.notify(*arguments) }.message
        assert_match message, assert_raises(Ringspun::UsageError) { pool.listen(*arguments) }.message if arguments.one?
      end
    end
  end

  def test_wrong_ways_to_listen
    on_pool do |pool|
      assert_match(/the name of a channel/, assert_raises(Ringspun::UsageError) { pool.listen }.message)
      assert_match(/policy: expected one of :wait/, assert_raises(Ringspun::UsageError) { pool.listen("a", policy: :no) }.message)
      assert_match(/capacity/, assert_raises(Ringspun::UsageError) { pool.listen("a", queue: 0) }.message)
      assert_raises(NoMethodError) { pool.listen("a") { |subscription| subscription.push(1) } }
      assert_raises(Ringspun::UsageError) { pool.listen("a", &:dup) }
    end
  end

  def test_a_transaction_notifies_when_it_is_committed
    on_pool do |pool|
      pool.listen("t") do |subscription|
        pool.transaction do |t|
          t.notify("t", "kept")
          assert_nil subscription.pop(timeout: 0.05)
        end
        catch(:left) { pool.transaction { |t| t.notify("t", "left") && nil || throw(:left) } }
        pool.session { |s| s.notify("t", "last") }
        assert_equal %w[kept last], Array.new(2) { subscription.pop.payload }
      end
    end
  end

  # --- queues that are full ---

  def test_a_full_queue_ends_its_own_subscription_alone
    on_pool do |pool|
      pool.listen("full") do |other|
        full = pool.listen("full", queue: 2)
        4.times { |number| pool.notify("full", number.to_s) }
        assert_equal(%w[0 1 2 3], Array.new(4) { other.pop.payload })
        assert_equal(%w[0 1], Array.new(2) { full.pop.payload })
        error = assert_raises(Postgres::SubscriptionOverflow) { full.pop }
        assert_match(/subscription of full is closed, because 2 notifications waited.*queue: 2, policy: :close/, error.message)
        assert_raises(Postgres::SubscriptionOverflow) { full.each { flunk "it is empty" } }
        assert_same full.error.class, error.class
      end
    end
  end

  def test_a_full_queue_drops_the_oldest
    on_pool do |pool|
      pool.listen("drop", queue: 2, policy: :drop_oldest) do |dropping|
        pool.listen("drop") do |other|
          5.times { |number| pool.notify("drop", number.to_s) }
          5.times { other.pop }
        end
        assert_equal [%w[3 4], 3], [Array.new(2) { dropping.pop.payload }, dropping.dropped]
      end
    end
  end

  def test_a_full_queue_lets_all_wait_if_it_is_to
    on_pool do |pool, machine|
      waiting = pool.listen("wait", queue: 1, policy: :wait)
      pool.listen("wait") do |other|
        4.times { |number| pool.notify("wait", number.to_s) }
        assert_equal "0", other.pop.payload
        await(machine) { waiting.num_waiting == 1 }
        assert_equal(%w[0 1], Array.new(2) { waiting.pop.payload })
        pool.listen("another") { |another| assert_empty another } # is listened to all the same
        waiting.close
        assert_equal(%w[1 2 3], Array.new(3) { other.pop.payload })
      end
    end
  end

  # --- ends ---

  def test_a_connection_that_is_ended
    on_pool(lanes: 1) do |pool, machine|
      pool.listen("lost") do |subscription|
        2.times do
          look { |other| other.query("select pg_terminate_backend(pid) #{THOSE_THAT_LISTEN}") }
          assert_predicate subscription.pop(timeout: 60), :gap?
          pool.notify("lost", "x")
          assert_equal "x", subscription.pop(timeout: 60).payload
        end
      end
      pool.close
      assert_nobody_left(machine)
    end
  end

  def test_a_pool_that_is_closed_ends_its_subscriptions
    with_pool do |pool|
      waiting = quiet_thread { pool.listen("closed", &:pop) }
      wait_until { audience_of(pool) == 1 }
      kept = pool.listen("closed") # by now both are admitted
      pool.notify("closed")
      assert_equal "closed", waiting.value.channel
      waiting = quiet_thread { pool.listen("closed", &:pop) }
      wait_until { audience_of(pool) == 2 }
      pool.close
      assert_raises(Ringspun::ClosedError) { waiting.value }
      assert_equal "closed", kept.pop.channel, "what has come can still be taken"
      assert_raises(Ringspun::ClosedError) { kept.pop }
    end
  end

  Mine = Class.new(RuntimeError)
  private_constant :Mine

  def test_a_thread_that_is_interrupted_leaves_nothing
    with_pool do |pool|
      100.times do |step|
        thread = quiet_thread { pool.listen("gone") { |subscription| subscription.pop } }
        step.times { Thread.pass }
        step.even? ? thread.kill : thread.raise(Mine)
        assert_nil ended(thread)
        assert_equal 0, audience_of(pool)
      end
      assert_equal 1, pool.query_value("select 1")
    end
  end

  def test_a_courier_that_is_killed_ends_subscriptions
    with_pool do |pool|
      subscription = pool.listen("killed")
      pool.instance_variable_get(:@courier).instance_variable_get(:@thread).kill.join
      assert_raises(Postgres::ConnectionLost) { subscription.pop }
      pool.listen("killed") do |another|
        pool.notify("killed", "x")
        assert_equal "x", another.pop.payload
      end
    end
  end

  # It has a connection of its own, and leaves the parent's alone.
  def test_a_forked_child
    with_pool do |pool|
      pool.listen("fork") do |subscription|
        child = fork do
          raise "it must be refused" unless begin subscription.pop(timeout: 0); rescue Ringspun::UsageError; true end

          pool.listen("fork") do |own|
            pool.notify("fork", "child")
            exit!(own.pop(timeout: 60)&.payload == "child")
          end
        end
        assert_predicate Process.wait2(child).last, :success?
        pool.notify("fork", "parent")
        assert_equal(%w[child parent], Array.new(2) { subscription.pop(timeout: 60).payload })
      end
    end
  end

  # Its other fibers go on meanwhile.
  def test_another_fiber_scheduler
    require "async"
    with_pool do |pool|
      Sync do |task|
        order = []
        listening = task.async { pool.listen("async") { |subscription| order << subscription.pop.payload } }
        Thread.pass until audience_of(pool) == 1
        task.async { (order << "meanwhile") && pool.listen("async").close && pool.notify("async", "x") }
        listening.wait
        assert_equal %w[meanwhile x], order
      end
    end
  end

  private

  def audience_of(pool)
    hub = pool.instance_variable_get(:@hub) or return 0
    hub.instance_variable_get(:@audience).__send__(:everybody).size
  end

  def ended(thread)
    thread.value
  rescue Mine
    nil
  end
end
