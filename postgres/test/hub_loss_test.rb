# frozen_string_literal: true

require "test_helper"
require "ringspun/postgres"
require "support/notifying_server"
require "support/on_scripted_pool"

# The connection that listens, on a simulated machine with a scripted server: it is lost at each byte, nobody wants it any more,
# or a pooler keeps back what is notified.
class PostgresHubLossTest < Minitest::Test
  include AnyBackend
  include OnScriptedPool

  Postgres = Ringspun::Postgres

  def server_class = NotifyingServer

  # What was notified while nobody listened is lost, and said to be; nothing else is.
  %i[there back].each do |direction|
    define_method("test_a_connection_that_is_cut_after_each_byte_on_the_way_#{direction}") do
      bytes = 0
      capture_io { bytes += 1 while cut_after?(direction, bytes) }
      assert_operator bytes, :>, 100
    end
  end

  def test_a_gap_comes_after_the_server_listens_again
    on_pool do |pool, machine, server|
      pool.listen("a", "b") do |subscription|
        server.notify("b", "before")
        assert_equal "before", subscription.pop.payload
        3.times do |turn|
          server.hang_up_on_listeners
          assert_predicate subscription.pop(timeout: 10), :gap?
          assert_equal [%w[a b]], server.listening.map(&:sort)
          server.notify("a", turn.to_s)
          assert_equal ["a", turn.to_s], subscription.pop(timeout: 10).deconstruct[1, 2]
        end
        assert_empty subscription
      end
      assert_gone(machine, server)
    end
  end

  # Also to those who have come meanwhile, none of whom gets a gap.
  def test_who_comes_while_the_server_is_away_waits_for_it_or_hears_why
    on_pool do |pool, machine, server|
      pool.listen("a") do |old|
        server.refusals = 1
        capture_io do
          server.hang_up_on_listeners
          error = assert_raises(Postgres::ConnectError) { pool.listen("b") }
          assert_match(/closed the connection/, error.message)
          server.refusals = 0
          pool.listen("b") do |new|
            assert_predicate old.pop(timeout: 10), :gap?
            server.notify("b", "x")
            assert_equal "x", new.pop(timeout: 10).payload
          end
        end
      end
      assert_gone(machine, server)
    end
  end

  def test_a_server_that_falls_silent_is_given_up
    on_pool do |pool, _, server|
      pool.listen("a") do |subscription|
        server.backends.first.instance_variable_set(:@stream, Silent.new(server.backends.first.instance_variable_get(:@stream)))
        assert_nil subscription.pop(timeout: 39)
        assert_predicate subscription.pop(timeout: 10), :gap?
      end
    end
  end

  # Swallows what is said.
  class Silent < SimpleDelegator
    def write(*) = nil
  end
  private_constant :Silent

  # Each is no message of its type, so whatever comes next may be anything.
  { "A" => ["", "abcd", "abcda", "abcda\0b", "abcda\0b\0c"], "S" => ["", "a", "a\0", "a\0b", "a\0b\0c"] }.each do |type, bodies|
    define_method("test_a_message_#{type}_that_is_not_as_it_must_be_ends_the_connection") do
      on_pool do |pool, _, server|
        pool.listen("a") do |subscription|
          bodies.each do |body|
            server.backends.first.instance_eval { say(type, body).then { flush } }
            assert_predicate subscription.pop(timeout: 20), :gap?
          end
        end
      end
    end
  end

  def test_the_server_listens_to_what_somebody_wants
    on_pool do |pool, machine, server|
      a = pool.listen("a")
      b = pool.listen("b", "c", "a")
      assert_equal [%w[a b c]], server.listening.map(&:sort)
      b.close
      machine.sleep(1)
      assert_equal [%w[a]], server.listening
      b = pool.listen("b")
      assert_equal [%w[a b]], server.listening.map(&:sort)
      [a, b].each(&:close)
      machine.sleep(1)
      assert_equal 1, server.backends.size
      pool.listen("d") { assert_equal [%w[d]], server.listening }
      assert_gone(machine, server)
    end
  end

  def test_a_subscription_that_nobody_has_any_more_is_no_subscription
    on_pool do |pool, machine, server|
      names = Array.new(50) { |number| "a#{number}" }
      machine.spin { names.each { |name| pool.listen(name) } && nil }.await
      assert_equal 50, server.listening.first.size
      GC.start
      names.each { |name| server.notify(name) }
      machine.sleep(1)
      assert_operator server.listening.flatten.size, :<, 25 # a stack may still have some
    end
  end

  def test_a_pooler_that_keeps_notifications_back_is_told_of
    on_pool do |pool, machine, server|
      server.pooler = true
      error = assert_raises(Postgres::ListenUnsupported) { pool.listen("a") { flunk "nothing would come" } }
      assert_match(/LISTEN has no effect here.*PgBouncer.*transaction mode/, error.message)
      assert_gone(machine, server)
    end
  end

  # Of its channel nothing is heard afterwards.
  def test_a_pooler_that_hands_notifications_on_does_no_harm
    on_pool do |pool, machine, server|
      server.singleton_class.define_method(:notify) do |channel, payload = ""|
        @backends.dup.each { |backend| backend.notify(channel, payload) }
      end
      server.pooler = true
      pool.listen("a") do |subscription|
        assert_equal [%w[a]], server.listening
        pool.notify("a", "x")
        assert_equal "x", subscription.pop(timeout: 10).payload
        assert_empty subscription
      end
      assert_gone(machine, server, shared: 1)
    end
  end

  def test_the_time_of_a_listen
    on_pool do |pool, machine, server|
      server.define_singleton_method(:talk) { |stream| nil while stream.read_partial(1) }
      before = machine.now
      error = assert_raises(Ringspun::TimeoutError) { pool.listen("a", timeout: 2) }
      assert_match(/the server does not listen to a before the deadline/, error.message)
      assert_in_delta 2, machine.now - before, 0.5
    end
  end

  def test_a_pool_that_is_closed_while_somebody_waits
    on_pool do |pool, machine, _|
      waiting = machine.spin { pool.listen("a", &:pop) }
      selecting = machine.spin { pool.listen("a") { |s| Ringspun.select(s) && s.pop } }
      machine.sleep(1)
      beginning = machine.spin { pool.listen("b") }
      pool.close
      [waiting, selecting, beginning].each do |strand|
        assert_equal "the pool is closed", assert_raises(Ringspun::ClosedError) { strand.await }.message
      end
      assert_raises(Ringspun::ClosedError) { pool.listen("a") }
    end
  end

  # At each point where it may be.
  def test_a_listen_that_is_cancelled_leaves_nothing
    on_pool do |pool, machine, server|
      20.times do |step|
        strand = machine.spin { pool.listen("a", "b#{step}") { |subscription| subscription.pop } }
        machine.sleep(step * 0.0005)
        strand.terminate
        assert_raises(Ringspun::TerminatedError) { strand.await }
        machine.sleep(1)
        assert_empty server.listening
      end
      assert_gone(machine, server)
    end
  end

  private

  # @return [Boolean] whether it was cut
  def cut_after?(direction, bytes)
    cuts = nil
    on_pool do |pool, machine, server|
      server.cut = [direction, bytes]
      subscription = listen(pool)
      PHASES.each do |numbers|
        numbers.each { |number| server.notify("a", number.to_s) }
        machine.sleep(20) # there is a new connection
      end
      assert_heard(subscription, "after #{bytes} bytes")
      subscription.close
      cuts = server.cuts
    end
    cuts.positive?
  end

  # The first connection may end before the server listens.
  def listen(pool)
    pool.listen("a")
  rescue Postgres::ConnectError, Postgres::ConnectionLost
    pool.listen("a")
  end

  # A connection that ends in one of them is there again before the next.
  PHASES = [0..2, 3..4, 5..6].freeze
  private_constant :PHASES

  # Without a loss, all; else those before it, a gap, and at least all of the next phases.
  def assert_heard(subscription, where)
    heard = []
    while (event = subscription.try_pop)
      heard << (event.gap? ? :gap : event.payload.to_i)
    end
    gap = heard.index(:gap) or return assert_equal([*0..6], heard, where)
    assert_equal [*0...gap], heard.first(gap), where
    assert_equal [*(7 - heard.drop(gap + 1).size)..6], heard.drop(gap + 1), where
    next_phase = PHASES.map(&:begin).find { |first| first > gap } || 7
    assert_operator heard.drop(gap + 1).first || 7, :<=, next_phase, where
  end

  # Some seconds after the last has gone.
  def assert_gone(machine, server, shared: 0)
    machine.sleep(10)
    assert_equal shared, server.backends.size
  end
end
