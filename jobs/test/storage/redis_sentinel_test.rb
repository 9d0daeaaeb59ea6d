# frozen_string_literal: true

require "jobs_helper"
require_relative "../support/listener"
require_relative "../support/redis_case"

# servers: valkey

# A master that changes.
class RedisSentinelTest < RedisCase
  include AnyBackend

  # Says who the master is.
  class Sentinel
    include Listener

    attr_reader :asked
    attr_accessor :master

    def initialize(master)
      @master = master
      @asked = 0
      listen
    end

    private

    def serve(client)
      while (command = read(client))
        client.write(answer(*command))
      end
    rescue SystemCallError
      nil
    ensure
      client.close
    end

    def read(client)
      count = client.gets or return
      Array.new(count[1..].to_i) { client.read(client.gets[1..].to_i + 2).chomp }
    end

    def answer(*command)
      case command.map(&:downcase)
      in ["hello", *] then "%1\r\n$4\r\nrole\r\n$8\r\nsentinel\r\n"
      in ["sentinel", "get-master-addr-by-name", "jobs"]
        @asked += 1
        "*2\r\n$9\r\n127.0.0.1\r\n$#{@master.to_s.size}\r\n#{@master}\r\n"
      in ["sentinel", "sentinels", "jobs"] then "*0\r\n"
      end
    end
  end

  def before_setup
    second # before descriptors are counted
    super
  end

  def second
    Servers.start(:second_redis) do |server|
      server.run(Servers.program("redis-server"), "--port", "0", "--unixsocket", File.join(server.folder, "redis.sock"),
                 "--save", "", "--appendonly", "no", "--dir", server.folder, signal: "TERM")
    end
  end

  def setup
    super
    @second_path = File.join(second.folder, "redis.sock")
    @other = opened(RedisClient.new(path: @second_path, driver: :ruby, timeout: 60))
    @other.call("FLUSHALL")
    @other_proxy = opened(Proxy.new { UNIXSocket.new(@second_path) })
    @sentinel = opened(Sentinel.new(proxy.port))
    @jobs = open_storage({ name: "jobs", sentinels: [{ host: "127.0.0.1", port: @sentinel.port }] })
  end

  def teardown
    call("REPLICAOF", "NO", "ONE")
    super
  end

  def fail_over = @sentinel.master = @other_proxy.port

  def queued = [call("LRANGE", "queue:default", 0, -1), @other.call("LRANGE", "queue:default", 0, -1)]

  def test_asks_who_the_master_is
    assert_nil @jobs.push([push_of])
    assert_nil @jobs.push([push_of])
    assert_equal [[[JOB, JOB], []], 1], [queued, @sentinel.asked]
  end

  def test_a_master_that_has_become_a_replica_refuses
    @jobs.push([push_of])
    call("REPLICAOF", "127.0.0.1", 1)
    fail_over
    answers = @jobs.push([push_of("{}")])
    assert_equal [Jobs::StorageError], answers.map(&:class)
    assert_match(/READONLY/, answers.first.message)
    assert_nil @jobs.push([push_of("[]")])
    assert_equal [[JOB], ["[]"]], queued
  end

  def test_a_master_that_is_gone
    @jobs.push([push_of])
    proxy.refusing = true
    proxy.cut
    fail_over
    assert_raises(Jobs::UnknownOutcomeError) { @jobs.push([push_of("{}")]) }
    assert_nil @jobs.push([push_of("[]")])
    assert_equal [[JOB], ["[]"]], queued
  end

  def test_nobody_to_ask
    @sentinel.close
    @opened.delete(@sentinel)
    error = assert_raises(Jobs::UnavailableError) { @jobs.push([push_of]) }
    assert_match(/nothing was sent: No sentinels available/, error.message)
  end

  def test_without_a_name
    assert_raises(Jobs::ConfigError) { Storage::Redis.new({ sentinels: [{ host: "a" }] }) }
  end
end
