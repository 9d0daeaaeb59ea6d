# frozen_string_literal: true

require "support/both_sides"

# Connections of a program's own: how they are left, and how a pool is shut down.
class SidekiqRedisPoolTest < BothSides
  # The next borrower's transaction would fail when somebody changes what it has never watched.
  def test_a_connection_that_is_left_while_it_watches
    made = run_one(:ours, <<~RUBY)
      pool = Sidekiq::RedisConnection.create(url: ENV.fetch("REDIS_URL"), size: 1)
      cancelled = lambda do |&use|
        Ringspun.run do |machine|
          machine.scope do |scope|
            pool.with { |redis| use.call(redis, -> { scope.cancel.then { machine.sleep(60) } }) }
          end
        end
      end
      ways = [
        -> { pool.with { |redis| redis.multi(watch: ["k"]) { |all| all.get("k") } } },
        -> { pool.with { |redis| redis.multi(watch: ["k"]) { raise "left" } } rescue nil },
        -> { pool.with { |redis| redis.multi(watch: ["k"]) { break } } },
        -> { catch(:out) { pool.with { |redis| redis.multi(watch: ["k"]) { throw :out } } } },
        -> { Thread.new { pool.with { |redis| redis.multi(watch: ["k"]) { Thread.current.kill } } }.join },
        -> { cancelled.call { |redis, leave| redis.multi(watch: ["k"]) { leave.call } } },
        -> { cancelled.call { |redis, leave| redis.call("WATCH", "k").then { leave.call } } }
      ]
      ways.map do |way|
        way.call
        pool.with do |redis|
          RedisClient.new(url: ENV.fetch("REDIS_URL")).then { |other| other.call("INCR", "k") && other.close }
          redis.call("MULTI")
          redis.call("SET", "x", 1)
          redis.call("EXEC")
        end
      end
    RUBY
    assert_equal [["OK"]] * 7, made.answer
  end

  # It closes what is not lent, and never waits for the rest, which is closed when it comes back.
  def test_a_pool_that_is_shut_down_inside_of_with
    made = run_one(:ours, <<~RUBY)
      pool = Sidekiq::RedisConnection.create(url: ENV.fetch("REDIS_URL"), size: 3)
      sockets = -> { ObjectSpace.each_object(UNIXSocket).count { |socket| !socket.closed? } }
      both = Queue.new
      other = Thread.new { pool.with { |redis| redis.get("a") && nil; (both << true) && sleep } }
      both.pop
      Thread.new { pool.with { |redis| redis.get("b") } }.join
      counts = [sockets.call]
      shutting = Thread.new do
        Sidekiq::RedisConnection.create(url: ENV.fetch("REDIS_URL"), size: 1).then { |full| full.with { full.shutdown } }
        pool.with do |redis|
          redis.get("a")
          pool.shutdown
          counts << sockets.call << redis.get("b").inspect
        end
      end
      counts << (shutting.join(20) ? sockets.call : "it waits for ever")
      other.kill.join
      counts << sockets.call
      counts << pool.with { |redis| redis.get("a").inspect }
    RUBY
    assert_equal [2, 2, "nil", 1, 0, "nil"], made.answer
  end

  def test_a_pool_that_a_cancelled_strand_shuts_down
    made = run_one(:ours, <<~RUBY)
      class Mail
        include Sidekiq::Job
      end
      pool = Sidekiq::RedisConnection.create(url: ENV.fetch("REDIS_URL"), size: 3)
      Sidekiq::Client.via(pool) { Mail.perform_async }
      pool.with { |redis| redis.get("a") }
      sockets = -> { ObjectSpace.each_object(UNIXSocket).count { |socket| !socket.closed? } }
      threads = Thread.list.size
      before = sockets.call
      Ringspun.run do |machine|
        machine.scope do |scope|
          scope.cancel
        ensure
          pool.shutdown
        end
      end
      [before, sockets.call, Thread.list.size <= threads]
    RUBY
    assert_equal [2, 0, true], made.answer
  end

  # An Enumerator has a fiber of its own, for which the connection around it is another caller's.
  def test_none_is_free_in_time
    made = run_one(:ours, <<~RUBY)
      pool = Sidekiq::RedisConnection.create(url: ENV.fetch("REDIS_URL"), size: 1, pool_timeout: 0.01) # must pass
      inner = Thread.new { pool.with { Enumerator.new { |all| pool.with { |redis| all << redis.get("a") } }.next } rescue $!.message }
      inner.join(20) ? inner.value : "it waits for ever"
    RUBY
    assert_match(/none of the pool's connections \(1\) was free within 10 ms/, made.answer)
  end
end
