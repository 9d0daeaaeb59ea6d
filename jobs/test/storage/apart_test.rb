# frozen_string_literal: true

require "jobs_helper"

# Only a storage speaks to its database, or of it; and what stands in for Sidekiq, whose names do.
class StorageApartTest < Minitest::Test
  include AnyBackend

  FOLDER = File.expand_path("../../lib", __dir__)

  # Of Redis, and no word that code would have for itself.
  COMMANDS = %w[
    BLMOVE BLPOP BRPOP BRPOPLPUSH EVALSHA FLUSHALL FLUSHDB GETSET HDEL HGET HGETALL HINCRBY HMGET HMSET HSET INCRBY LINDEX
    LLEN LMOVE LPOP LPOS LPUSH LRANGE LREM LTRIM MGET MSET PEXPIRE PSETEX RPOP RPOPLPUSH RPUSH SADD SCARD SETEX SETNX SISMEMBER
    SMEMBERS SREM SSCAN XADD ZADD ZCARD ZCOUNT ZPOPMIN ZRANGE ZRANGEBYSCORE ZREM ZREMRANGEBYRANK ZREMRANGEBYSCORE ZSCAN ZSCORE
  ].freeze

  # These could be, and are looked for in calls only.
  WORDS = %w[AUTH CLIENT CONFIG DEL EXISTS EXPIRE GET INCR KEYS MULTI PING SCAN SELECT SET SORT TIME TTL TYPE UNLINK].freeze

  FORBIDDEN = {
    "a command of Redis" => /\b(?:#{COMMANDS.join("|")})\b/,
    "a call of a client" => /call(?:_\w+)?\(?\s*\*?\[?(?:["']|%w.)(?:#{(COMMANDS + WORDS).join("|")})\b/i,
    "a pipeline" => /\.pipelined\b/
  }.freeze

  # No comment may have these either.
  NAMES = /redis|valkey|\blua\b|sql/i

  # By these the storages are there, and register themselves.
  LOADED = %w[redis sqlite/offer sqlite/opening].map { |file| %(require_relative "storage/#{file}"\n) }.freeze

  def rooms
    all = Dir["#{FOLDER}/**/*.rb"].reject { |file| file.match?(%r{ringspun/jobs/(storage/(redis|sqlite)|sidekiq)}) }
    refute_empty all
    all
  end

  def offences(text)
    (text.lines - LOADED).flat_map do |line|
      found = line.match?(/\A\s*#/) ? [] : FORBIDDEN.filter_map { |what, pattern| what if line.match?(pattern) }
      found << "a name" if line.match?(NAMES)
      found.map { |what| "#{what}: #{line.strip}" }
    end
  end

  def test_only_the_storage_names_itself_and_its_commands
    found = rooms.flat_map { |file| offences(File.read(file)).map { |offence| "#{file.delete_prefix(FOLDER)}: #{offence}" } }
    assert_empty found
  end

  def test_finds_what_it_looks_for
    ['client.call("GET", key)', "LPUSH = 1", 'one.pipelined("x")', "connection.call(*%w[lpush a b])",
     "RedisClient.new", "# as in Redis", 'system("SELECT 1").to_sql', %(require_relative "storage/redis/pool")].each do |line|
      refute_empty offences("  #{line}\n"), line
    end
    assert_empty offences("#{LOADED.join}# LPUSH\nblock.call(1)\nhandler.call(\"got it\")\n")
  end
end
