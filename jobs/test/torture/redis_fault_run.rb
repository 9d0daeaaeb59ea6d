# frozen_string_literal: true

require "redis-client"
require "support/aof_redis"
require "support/proxy"
require "torture/fault_run"

# The fault run on one Redis behind one proxy.
class RedisFaultRun < FaultRun
  # How often each fault comes, of a hundred.
  FAULTS = {
    kill_worker: 14, end_worker: 6, freeze_worker: 8, restart_redis: 8, stop_redis: 4, cut_some: 14, cut_all: 6,
    swallow_some: 16, delay_a_little: 8, delay_long: 2, refuse: 4, spoil: 10
  }.freeze

  LISTS = %w[queue:a queue:b queue:narrow queue:ringspun-quarantine].freeze
  SETS = %w[schedule retry].freeze
  # What is counted stays.
  COUNTS = /\A(?:stat:(?:processed|failed)|ringspun:twice|ringspun:measured(?::\w+)?)\z/

  private

  def faults = FAULTS

  def open_storage
    @server = AofRedis.new
    @proxy = Proxy.new { @server.connect }
  end

  def close_storage
    @redis&.close
    @storage&.close
    @proxy&.close
    @server&.close
  end

  # By a connection that connects again: the server may have ended a moment ago.
  def plant(entry, _)
    redis.call("LPUSH", "queue:a", entry)
    redis.call("SADD", "queues", "a")
  end

  # The clock of one producer and of one worker is wrong by an hour.
  def settings(number, hours)
    env = { "REDIS_URL" => @proxy.url }
    env.update(SetClock.wrong_by(hours * 3600)) if number.zero?
    env
  end

  def redis
    @redis ||= RedisClient.new(path: @server.path, timeout: 20, reconnect_attempts: 3)
  end

  # Past the proxy.
  def storage
    @storage ||= Ringspun::Jobs::Storage::Redis.new({ path: @server.path })
  end

  # --- what goes wrong ---

  # With no end or kill after it that would give back what nobody knows of.
  def end_faults
    8.times do
      everywhere("lost answers") { @counts["answers lost"] += @proxy.swallow { @random.rand < 0.5 } }
      sleep 0.15
    end
  end

  def restart_redis
    everywhere("restarts") do
      @server.kill
      sleep @random.rand * 0.5
      @server.start
    end
  end

  # At times for longer than a lease, which costs nobody a job, so it is no reason to run one twice.
  def stop_redis
    Process.kill(:STOP, @server.pid)
    sleep LEASE_SECONDS * (0.5 + @random.rand)
    Process.kill(:CONT, @server.pid)
    @counts["stops"] += 1
  end

  def cut_some = everywhere("cuts") { @proxy.cut { @random.rand < 0.3 } }
  def cut_all = everywhere("cuts of all") { @proxy.cut }
  def swallow_some = everywhere("lost answers") { @counts["answers lost"] += @proxy.swallow { @random.rand < 0.5 } }

  def delay_a_little = delay(0.02 + @random.rand * 0.1, 0.5)
  def delay_long = delay(LEASE_SECONDS * 1.2, LEASE_SECONDS * 1.3)

  def delay(seconds, duration)
    everywhere("delays") do
      @proxy.delay = seconds
      sleep duration
      @proxy.delay = 0
    end
  end

  def refuse
    everywhere("refusals") do
      @proxy.refusing = true
      @proxy.cut
      sleep @random.rand * 0.5
      @proxy.refusing = false
    end
  end

  # --- what is put in by hand ---

  def put_malformed
    LISTS.each { |list| redis.call(@random.rand < 0.5 ? "LPUSH" : "RPUSH", list, malformed) }
    redis.call("SADD", "queues", *LISTS.map { |list| list.delete_prefix("queue:") })
    [*SETS, "dead"].each { |set| redis.call("ZADD", set, Time.now.to_f + (@random.rand < 0.5 ? -60 : @random.rand), malformed) }
  end

  # --- the end ---

  # At one moment: what goes from one to another meanwhile would be in none.
  LEFT = <<~LUA
    local sizes = {}
    for _, key in ipairs(redis.call("KEYS", "queue:*")) do
      sizes[#sizes + 1] = key
      sizes[#sizes + 1] = redis.call("LLEN", key)
    end
    for _, key in ipairs(ARGV) do
      sizes[#sizes + 1] = key
      sizes[#sizes + 1] = redis.call("ZCARD", key)
    end
    return sizes
  LUA

  def left = redis.call("EVAL", LEFT, 0, *SETS).each_slice(2).to_h

  def dead_entries = redis.call("ZRANGE", "dead", 0, -1)

  # Dead nodes are forgotten when nothing of theirs can be on its way any more, which we know. What else is left may only be there
  # for a time.
  def judge_leftovers
    2.times { storage.recover(100, forget: 0) }
    keys = redis.call("KEYS", "*").select { |key| redis.call("PTTL", key) == -1 }
    problem("keys left over", keys.grep_v(COUNTS) - %w[queues dead ringspun:limits ringspun:hold])
    tokens = redis.call("KEYS", "unique:*").map { |key| key.delete_prefix("unique:") }
    # Those of jobs that keep theirs have a name that we know, and the workers' own end by themselves.
    problem("locks left over", tokens.reject { |token| @ledger.kinds.key?(token) || token.start_with?("ringspun:") })
  end
end
