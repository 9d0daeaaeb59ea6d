# frozen_string_literal: true

require "jobs_helper"
require "redis-client"
require "support/aof_redis"
require "support/proxy"
require "support/servers"

# That what breaks things in the tests does break them, and nothing else.
class SupportTest < Minitest::Test
  include AnyBackend
  include Servers::Redis

  def setup
    super
    direct.call("FLUSHALL")
    @proxy = Proxy.new { UNIXSocket.new(redis_path) }
    @through = RedisClient.new(url: @proxy.url, timeout: 20, reconnect_attempts: 0)
  end

  def teardown
    [@through, @direct].each(&:close)
    @proxy.close
    super
  end

  def direct = @direct ||= RedisClient.new(path: redis_path, timeout: 60)

  def assert_broken(&) = assert_raises(RedisClient::ConnectionError, &)

  def test_the_proxy_passes_everything
    value = "x" * 1_000_000
    @through.call("SET", "a", value)
    assert_equal value, @through.call("GET", "a")
  end

  def test_the_proxy_cuts
    @through.call("PING")
    assert_equal 1, @proxy.cut
    assert_broken { @through.call("PING") }
    assert_equal "PONG", @through.call("PING")
  end

  def test_the_proxy_loses_an_answer_and_not_the_command
    @through.call("PING")
    assert_equal 1, @proxy.swallow
    assert_broken { @through.call("SET", "a", "1") }
    assert_equal "1", direct.call("GET", "a")
    assert_equal "1", @through.call("GET", "a")
  end

  def test_what_the_proxy_delays_arrives_after_its_sender_is_gone
    @proxy.delay = 0.05
    TCPSocket.open("127.0.0.1", @proxy.port) { |socket| socket.write("LPUSH a 1\r\n") }
    assert_equal %w[a 1], direct.blocking_call(20, "BRPOP", "a", 0)
  end

  def test_the_proxy_refuses
    @proxy.refusing = true
    assert_broken { @through.call("PING") }
    @proxy.refusing = false
    assert_equal "PONG", @through.call("PING")
  end

  def test_redis_keeps_through_a_kill_what_it_has_answered
    redis = AofRedis.new
    client = RedisClient.new(path: redis.path, reconnect_attempts: 0, timeout: 60)
    client.call("SET", "a", "1")
    redis.restart
    assert_broken { client.call("PING") }
    assert_equal "1", client.call("GET", "a")
  ensure
    client&.close
    redis&.close
  end
end
