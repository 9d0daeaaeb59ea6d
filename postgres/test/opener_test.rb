# frozen_string_literal: true

require "test_helper"
require "ringspun/postgres"
require "socket"
require "support/scripted_server"

# How connections are opened, and tried again: by all callers of a pool together. Time is virtual.
class PostgresOpenerTest < Minitest::Test
  include AnyBackend

  Postgres = Ringspun::Postgres

  # Ends connections that begin, as long as it is down.
  class Server < ScriptedServer
    attr_accessor :down, :tries

    def initialize(...)
      @tries = 0
      @begun = @begun_most = 0
      super
    end

    attr_reader :begun_most

    private

    def talk(stream)
      @tries += 1
      @begun_most = [@begun_most, @begun += 1].max
      dawdle
      @begun -= 1
      super unless @down
    end
  end

  def test_when_the_server_is_down_all_callers_hear_of_the_same_tries
    on_server do |pool, server, machine|
      server.down = true
      strands = CALLS.flat_map { |call| Array.new(5) { machine.spin { assert_raises(Postgres::ConnectError) { call.call(pool) } } } }
      machine.await(strands).each { |error| assert_match(/the server has closed the connection while it began/, error.message) }
      assert_equal 3, server.tries
      assert_equal({ connections: 0, idle: 0, waiting: 0 }, pool.metrics.first(3).to_h)
    end
  end

  CALLS = [->(pool) { pool.query("echo $1", "a") }, ->(pool) { pool.session { |s| s.query("echo $1", "a") } },
           ->(pool) { pool.transaction { |t| t.query("echo $1", "a") } },
           ->(pool) { pool.stream("echo $1", "a") { |_| nil } }].freeze
  private_constant :CALLS

  def test_callers_that_come_again_and_again_do_not_hammer_a_server_that_is_down
    on_server do |pool, server, machine|
      server.down = true
      over = machine.now + 60
      strands = CALLS.flat_map { |call| Array.new(5) { machine.spin { try_until(machine, over) { call.call(pool) } } } }
      assert_operator machine.await(strands).min, :>, 15 # all have heard of most of them
      assert_includes 20..40, server.tries # 2 to 3 s apart, but for the first ones
    end
  end

  def test_callers_that_wait_meanwhile_go_on_when_the_server_is_back
    on_server do |pool, server, machine|
      server.down = true
      assert_raises(Postgres::ConnectError) { pool.session { |_| nil } }
      server.down = false
      strands = CALLS.flat_map { |call| Array.new(5) { machine.spin { call.call(pool) } } }
      machine.await(strands)
      assert_equal 3, server.begun_most # one, and when that has gone well, three
      server.down = true
      assert_raises(Postgres::ConnectError) { Postgres.connect(ScriptedServer::URL).session { |_| nil } }
    end
  end

  def test_a_caller_whose_time_is_over_lets_the_next_one_try
    on_server do |pool, server, machine|
      server.down = true
      4.times { assert_raises(Postgres::ConnectError) { pool.session { |_| nil } } }
      server.down = false
      first = machine.spin { assert_raises(Ringspun::TimeoutError) { pool.session(timeout: 0.05) { |_| nil } } }
      second = machine.spin { pool.session { |session| session.query_value("echo $1", "well") } }
      assert_match(/\Ano connection to .* before the deadline; the last try: .*: the server has closed/, first.await.message)
      assert_equal "well", second.await
    end
  end

  def test_close_ends_the_wait_for_the_tries_of_others
    on_server do |pool, server, machine|
      server.down = true
      4.times { assert_raises(Postgres::ConnectError) { pool.session { |_| nil } } }
      strands = CALLS.map { |call| machine.spin { assert_raises(Ringspun::ClosedError) { call.call(pool) } } }
      machine.sleep(0.01)
      pool.close
      machine.await(strands)
      assert_equal 4, server.tries
    end
  end

  def test_no_more_than_three_are_opened_at_once
    on_server(max: 20) do |pool, server, machine|
      held = Array.new(20) { machine.spin { pool.session { |_| machine.sleep(1) } } }
      machine.await(held)
      assert_equal [20, 3], [server.tries, server.begun_most]
    end
  end

  def test_threads_share_the_tries_with_strands
    server = TCPServer.new("127.0.0.1", 0)
    tries = 0
    accepting = Thread.new { loop { server.accept.close.then { tries += 1 } } }
    pool = Postgres::Pool.new("postgres://127.0.0.1:#{server.local_address.ip_port}/nowhere?sslmode=disable")
    threads = Array.new(5) { Thread.new { CALLS.each { |call| assert_raises(Postgres::ConnectError) { call.call(pool) } } } }
    Ringspun.run { |machine| Array.new(5) { machine.spin { assert_raises(Postgres::ConnectError) { pool.session { |_| nil } } } } }
    threads.each(&:join)
    assert_operator tries, :<=, 3 + (4 * 5) # each thread asks four times, and may be alone
  ensure
    pool.close
    accepting.kill.join
    server.close
  end

  private

  # @return [Integer] how often it has failed
  def try_until(machine, over)
    failures = 0
    while machine.now < over
      assert_raises(Postgres::ConnectError) { yield }
      failures += 1
    end
    failures
  end

  def on_server(**)
    Ringspun::Simulation.run(faults: false) do |machine|
      server = Server.new(machine, Random.new(1))
      pool = Postgres::Pool.new(ScriptedServer::URL, **)
      yield pool, server, machine
    ensure
      pool.close
      server.close
    end
  end
end
