# frozen_string_literal: true

require "test_helper"
require "redis-client"
require "support/servers"
require "support/stock"

# redis-client on a real server.
class StockRedisTest < Minitest::Test
  include Stock
  include Servers::Redis

  def setup
    super
    connected { |client| client.call("FLUSHALL") }
  end

  def connected(**options)
    client = RedisClient.new(path: redis_path, **options)
    yield client
  ensure
    client.close
  end

  # Lets others run until so many clients wait inside the server.
  def until_blocked(client, count)
    yield_until("#{count} are blocked") { client.call("INFO", "clients").include?("blocked_clients:#{count}\r") }
  end

  def test_calls_and_pipelines
    Ringspun.run do
      connected do |client|
        assert_equal "OK", client.call("SET", "key", "value")
        answers = client.pipelined do |pipeline|
          pipeline.call("GET", "key")
          pipeline.call("INCR", "number")
        end
        assert_equal ["value", 1], answers
        transaction = client.multi { |multi| multi.call("INCR", "number") }
        assert_equal [2], transaction
        assert_raises(RedisClient::CommandError) { client.call("NOSUCH") }
      end
    end
  end

  def test_a_client_that_waits_for_another
    Ringspun.run do
      connected do |client|
        waiting = machine.spin { connected { |other| other.blocking_call(false, "BLPOP", "list", 0) } }
        until_blocked(client, 1)
        assert_equal :parked, waiting.state
        client.call("RPUSH", "list", "item")
        assert_equal %w[list item], waiting.await
      end
    end
  end

  def test_many_clients_that_wait
    Ringspun.run do
      connected do |client|
        waiting = Array.new(50) { machine.spin { connected { |other| other.blocking_call(false, "BLPOP", "list", 0).last } } }
        until_blocked(client, 50)
        client.call("RPUSH", "list", *0...50)
        assert_equal Array.new(50, &:to_s).sort, machine.await(*waiting).sort
      end
    end
  end

  def test_a_pool_that_many_strands_share
    Ringspun.run do
      pool = RedisClient.config(path: redis_path, timeout: 60).new_pool(size: 3, timeout: 30)
      strands = Array.new(20) { machine.spin { 10.times { pool.call("INCR", "shared") } } }
      machine.await(*strands)
      assert_equal "200", pool.call("GET", "shared")
      pool.close
    end
  end

  def test_a_read_timeout
    Ringspun.run do
      connected do |client|
        waiting = parked do
          connected(read_timeout: 1, reconnect_attempts: 0) { |other| error_of { other.call("BLPOP", "nothing", 0) } }
        end
        client.call("PING") while waiting.alive?
        assert_kind_of RedisClient::ReadTimeoutError, waiting.await
      end
    end
  end

  def test_publish_and_subscribe
    Ringspun.run do
      connected do |subscriber|
        channel = subscriber.pubsub
        channel.call("SUBSCRIBE", "news")
        assert_equal ["subscribe", "news", 1], channel.next_event
        waiting = parked { channel.next_event }
        connected { |client| client.call("PUBLISH", "news", "heard") }
        assert_equal %w[message news heard], waiting.await
        assert_nil parked { channel.next_event(0.1) }.await
        channel.close
      end
    end
  end
end
