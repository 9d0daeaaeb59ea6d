# frozen_string_literal: true

require "test_helper"
require "ringspun/postgres"
require "socket"
require "support/scripted_server"

# Nothing of a pool keeps a run alive, or its own close: neither a connection that is never opened nor a server that does not
# answer a request to cancel. Time is virtual where it counts.
class PostgresEndOfRunTest < Minitest::Test
  include AnyBackend

  Postgres = Ringspun::Postgres

  # Takes connections, and says nothing.
  class SilentServer < ScriptedServer
    private

    def talk(stream) = stream.read
  end

  # Takes requests to cancel, and does not end their connections.
  class SlowServer < ScriptedServer
    attr_reader :requests

    private

    def cancel(...)
      (@requests ||= []) << :request
      @machine.sleep
    end
  end

  def test_a_connection_that_is_never_opened
    took = after_run(SilentServer) { |pool| ask_in_vain(pool) }
    assert_operator took, :<, 1
  end

  def test_one_that_others_wait_for
    took = after_run(SilentServer) do |pool, machine|
      2.times { machine.spin { ask_in_vain(pool) } }
      machine.spin { pool.query("echo $1", "never") }.tap { machine.sleep(0.01) }.terminate
    end
    assert_operator took, :<, 1
  end

  def test_a_request_to_cancel_that_is_not_answered
    took = after_run(SlowServer) { |pool| ask_in_vain(pool) }
    assert_operator took, :<, 1
    assert_equal [:request], @server.requests
  end

  def test_requests_to_cancel_leave_when_a_run_is_cancelled
    error = assert_raises(RuntimeError) do
      after_run(SlowServer) do |pool, machine|
        machine.spin { pool.query("work $1, $2", "nonce", "60") }
        machine.sleep(1)
        raise "over"
      end
    end
    assert_equal ["over", [:request]], [error.message, @server.requests]
  end

  def test_close_ends_requests_to_cancel_that_have_left
    took = after_run(SlowServer) do |pool, machine|
      before = machine.strands.size
      ask_in_vain(pool)
      machine.sleep(0.1)
      pool.close
      machine.sleep(0.1) while machine.strands.size > before + 2 # those of the server
    end
    assert_operator took, :<, 1
  end

  def test_close_ends_what_threads_and_the_main_program_have_begun
    asks = ->(pool) { assert_raises(Ringspun::TimeoutError) { pool.query("select 1", timeout: 0.01) } }
    [asks, ->(pool) { Thread.new { asks.call(pool) }.join }].each do |way|
      on_silent_socket do |pool|
        way.call(pool)
        pool.close
      end
    end
  end

  def test_close_ends_openings_that_threads_and_strands_wait_for
    calls = [->(pool) { pool.query("select 1") }, ->(pool) { pool.session { |_| flunk } },
             ->(pool) { pool.stream("select 1") { |_| flunk } }]
    calls.product([->(&call) { call.call }, ->(&call) { Ringspun.run { call.call } }]).each do |call, place|
      on_silent_socket do |pool, server|
        thread = Thread.new { assert_raises(Ringspun::ClosedError) { place.call { call.call(pool) } } }
        peer = server.accept
        pool.close
        assert_equal "the pool is closed", thread.value.message
      ensure
        peer&.close
      end
    end
  end

  private

  def on_silent_socket
    server = TCPServer.new("127.0.0.1", 0)
    yield Postgres.connect("postgres://127.0.0.1:#{server.local_address.ip_port}/x?sslmode=disable&connect_timeout=0"), server
  ensure
    server.close
  end

  def ask_in_vain(pool) = assert_raises(Ringspun::TimeoutError) { pool.query("work $1, $2", "nonce", "60", timeout: 0.1) }

  # @return [Float] virtual seconds of a run on a machine with that server
  def after_run(kind)
    Thread.new do
      machine = Ringspun::Machine.new(backend: :sim, faults: false)
      @server = kind.new(machine, Random.new(1))
      pool = Postgres.connect(ScriptedServer::URL, connect_timeout: "0")
      before = machine.now
      Ringspun.run { yield pool, machine }
      machine.now - before
    ensure
      pool.close
      @server.close
      machine.close
    end.tap { |thread| thread.report_on_exception = false }.value
  end
end
