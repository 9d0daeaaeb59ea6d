# frozen_string_literal: true

require "postgres_helper"
require "timeout"

# What meets a thread from outside while it asks: Thread#kill, Thread#raise, Timeout, a signal. The server is told to stop,
# nothing is lost, and the pool goes on.
# servers: all
class PostgresInterruptTest < Minitest::Test
  include OnPool
  include NoNames

  SLEEP = "select pg_sleep(60)"
  CALLS = {
    query: ->(pool) { pool.query(SLEEP) },
    batch: ->(pool) { pool.batch { |batch| batch.query("select 1").query(SLEEP) } },
    session: ->(pool) { pool.session { |session| session.query(SLEEP) } },
    transaction: ->(pool) { pool.transaction { |t| t.transaction { |inner| inner.query(SLEEP) } } },
    stream: ->(pool) { pool.stream("select pg_sleep(60) from generate_series(1, 2)") { |_| nil } }
  }.freeze

  Mine = Class.new(RuntimeError)

  CALLS.each do |name, call|
    define_method("test_a_timeout_of_a_#{name}_in_a_strand") do
      on_pool { |pool| assert_interrupted(pool, Timeout::Error) { Timeout.timeout(0.05) { call.call(pool) } } }
    end

    define_method("test_a_timeout_of_a_#{name}_in_the_main_program") do
      with_pool { |pool| assert_interrupted(pool, Timeout::Error) { Timeout.timeout(0.05) { call.call(pool) } } }
    end

    define_method("test_a_timeout_of_a_#{name}_in_a_thread") do
      with_pool do |pool|
        assert_interrupted(pool, Timeout::Error) { quiet_thread { Timeout.timeout(0.05) { call.call(pool) } }.value }
      end
    end

    define_method("test_a_thread_in_a_#{name}_that_something_is_raised_in") do
      with_pool do |pool|
        thread = quiet_thread { call.call(pool) }
        wait_until { look { |other| running(other) }.any?(/pg_sleep/) }
        thread.raise(Mine)
        assert_interrupted(pool, Mine) { thread.value }
      end
    end

    define_method("test_a_thread_in_a_#{name}_that_is_killed") do
      with_pool do |pool|
        thread = quiet_thread { call.call(pool) }
        wait_until { look { |other| running(other) }.any?(/pg_sleep/) }
        assert_interrupted(pool, nil) { thread.kill.value }
      end
    end
  end

  def test_threads_that_wait_for_a_connection
    with_pool(max: 1) do |pool|
      pool.session do |session|
        session.query("select 1")
        [->(thread) { thread.kill }, ->(thread) { thread.raise(Mine) }].each do |interrupt|
          thread = quiet_thread { pool.session { flunk "there is but one" } }
          wait_until { pool.metrics[:waiting] == 1 }
          interrupt.call(thread)
          wait_until { !thread.alive? && pool.metrics[:waiting].zero? }
        end
      end
      assert_equal({ connections: 1, idle: 1, waiting: 0 }, pool.metrics.first(3).to_h)
    end
  end

  LIBRARY = File.expand_path("../lib", __dir__)
  STEPS = {
    session: ->(pool) { pool.session { |session| session.query("select 1") } },
    transaction: ->(pool) { pool.transaction { |t| t.transaction { |inner| inner.query("select 1") } } },
    stream: ->(pool) { pool.stream("select 1") { |_| nil } }
  }.freeze

  # CRuby looks for what is raised where a method or a block returns, and where a thread waits.
  STEPS.each do |name, call|
    define_method("test_a_thread_in_a_#{name}_that_something_is_raised_in_at_each_step") do
      with_pool(max: 1) do |pool|
        (1..).each do |step|
          reached = quiet_thread { raise_at(step) { call.call(pool) } }.value
          quiet_thread { call.call(pool) }.value
          break unless reached
        end
      end
    end

    define_method("test_the_main_program_in_a_#{name}_that_something_is_raised_in_at_each_step") do
      with_pool(max: 1) do |pool|
        (1..).each do |step|
          reached = raise_at(step) { call.call(pool) }
          call.call(pool)
          break unless reached
        end
      end
    end
  end

  # At whatever point it meets them.
  def test_threads_that_are_interrupted_by_chance
    with_pool(max: 3) do |pool|
      with_table(pool) do |table|
        random = Random.new(Minitest.seed)
        rows = Array.new(4) do |number|
          quiet_thread { interrupt_often(pool, table, number, Random.new(random.seed + number)) }
        end.flat_map(&:value)
        wait_until { pool.metrics.values_at(:waiting, :idle) == [0, pool.metrics[:connections]] }
        assert_empty rows - ids(pool, table)
        last = Array.new(3) { |number| quiet_thread { pool.session { |s| s.query_value("select $1::int", number) } } }
        assert_equal [0, 1, 2], last.map(&:value)
      end
    end
  end

  # As by a program that ends all threads. Those who wait hear of it, and the next call finds another.
  def test_a_courier_that_is_killed
    with_pool(max: 3) do |pool|
      over = Thread::Queue.new
      idle = Array.new(3) { quiet_thread { pool.session { |_| over.pop } } }
      wait_until { over.num_waiting == 3 }
      3.times { over << true }
      idle.each(&:join)
      threads = [quiet_thread { pool.query(SLEEP) }, quiet_thread { pool.session { |session| session.query(SLEEP) } },
                 quiet_thread { pool.session { |_| over.pop } }]
      wait_until { look { |other| running(other) }.grep(/pg_sleep/).size == 2 && over.num_waiting == 1 }
      Thread.list.find { |thread| thread.name == "ringspun-postgres" }.kill.join
      over.close
      threads.first(2).each { |thread| assert_raises(Postgres::ConnectionLost) { thread.value } }
      threads.last.value
      assert_equal({ connections: 0, idle: 0, waiting: 0 }, pool.metrics.first(3).to_h)
      assert_equal [1, 2], quiet_thread { [pool.query_value("select 1"), pool.session { |s| s.query_value("select 2") }] }.value
    ensure
      look { |other| end_others(other) } # nobody was there any more to cancel them
    end
  end

  # Ctrl-C in a script or irb, without a run: in whatever it waits for. The server may still be at a statement of another test.
  def test_a_signal_in_the_main_program
    own = "select pg_sleep(60), '#{SecureRandom.hex(6)}'"
    answer = ruby_child(<<~'RUBY', File.expand_path("../lib", __dir__), url, own)
      $LOAD_PATH.unshift(ARGV.shift)
      require "ringspun/postgres"
      url, own = ARGV
      pool, other = Array.new(2) { Ringspun::Postgres::Pool.new(url, max: 1, statement_cache: 0) }
      busy = ["select count(*) from pg_stat_activity where query = $1 and state = 'active'", own]
      interrupting = lambda do |&call|
        Thread.new { sleep(0.001) until other.query_value(*busy) == 1; Process.kill(:INT, Process.pid) }
        call.call
      rescue Interrupt
        sleep 0.001 until Thread.new { other.query_value(*busy) }.value.zero?
        puts [pool.query_value("select 1"), pool.session { |session| session.query_value("select 2") }].sum
      end
      interrupting.call { pool.query(own) }
      interrupting.call { pool.batch { |batch| batch.query(own) } }
      interrupting.call { pool.transaction { |t| t.query(own) } }
      interrupting.call { pool.stream(own) { |_| nil } }
      p pool.metrics.values_at(:connections, :idle, :waiting)
      pool.close
      other.close
    RUBY
    assert_equal ["3\n3\n3\n3\n[1, 1, 0]\n", "", true], [answer.out, answer.err, answer.status.success?]
  end

  # The second of them, while the server does not hear the first.
  def test_a_signal_while_a_statement_is_cancelled
    answer = ruby_child(<<~'RUBY', File.expand_path("../lib", __dir__))
      $LOAD_PATH.unshift(ARGV.shift)
      require "ringspun/postgres"
      message = ->(type, body) { [type, body.bytesize + 4, body].pack("aNa*") }
      interrupt = -> { Process.kill(:INT, Process.pid) }
      listener = TCPServer.new("127.0.0.1", 0)
      server = Thread.new do
        client = listener.accept
        client.read(client.read(4).unpack1("N") - 4)
        client.write(message.call("R", [0].pack("N")), message.call("K", [1, 2].pack("NN")), message.call("Z", "I"))
        client.readpartial(1000) # a statement by which a client learns how far away we are
        column = ["lock_timeout", 0, 0, 25, -1, -1, 0].pack("Z*NnNs>l>n")
        client.write(message.call("1", ""), message.call("t", "\0\0"), message.call("T", [1].pack("n") + column),
                     message.call("2", ""), message.call("D", [1, 3, "5ms"].pack("nNa*")), message.call("C", "SHOW\0"),
                     message.call("Z", "I"))
        client.readpartial(1000)
        interrupt.call
        listener.accept.read(16)
        interrupt.call
        client.read
        puts "closed"
      end
      pool = Ringspun::Postgres.connect("postgres://me@127.0.0.1:#{listener.addr[1]}/x?sslmode=disable")
      begin
        pool.query("select 1")
      rescue Interrupt
        server.join
      end
    RUBY
    assert_equal ["closed\n", "", true], [answer.out, answer.err, answer.status.success?]
  end

  # Such as the return of a connection, when the task of another scheduler is stopped before the courier has come to it.
  def test_a_call_that_runs_to_its_end_is_not_given_up_by_who_waits_for_it
    errand = Postgres.const_get(:Courier).const_get(:Errand).new(nil) { nil }
    waiting = quiet_thread { errand.wait { nil } }
    Thread.pass until waiting.stop?
    waiting.kill.join
    refute_predicate errand, :given_up?
  end

  private

  # @return [Boolean] false: there are not so many
  def raise_at(step)
    trace = TracePoint.new(:return, :b_return) do |at|
      Thread.current.raise(Mine) if at.path.start_with?(LIBRARY) && (step -= 1).zero?
    end
    begin
      trace.enable(target_thread: Thread.current) { yield }
    rescue Mine
      nil
    end
    step <= 0
  end

  def assert_interrupted(pool, error, &)
    error ? assert_raises(error, &) : yield
    wait_until { look { |other| running(other) }.none?(/pg_sleep/) }
    wait_until { pool.metrics[:idle] == pool.metrics[:connections] }
    assert_equal [1, 2], [pool.query_value("select 1"), pool.session { |session| session.query_value("select 2") }]
  end

  # @return [Array<Integer>] what was reported as committed
  def interrupt_often(pool, table, writer, random)
    (1..80).filter_map do |turn|
      row = (turn * 4) + writer
      thread = quiet_thread { pool.transaction { |t| t.execute("insert into #{table} values ($1)", row) && row } }
      thread.join(random.rand * 0.003)
      random.rand(2).zero? ? thread.kill : thread.raise(Mine)
      thread.value
    rescue Mine
      nil
    end
  end
end
