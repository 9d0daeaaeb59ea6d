# frozen_string_literal: true

require "jobs_helper"
require_relative "../support/redis_case"
require_relative "../support/sqlite_case"

# Several processes that all tick, as fast as they can, on one storage.
module CronProcesses
  TICKS = 150
  PROCESSES = 3

  def cron = Ringspun::Jobs::Storage::Cron.new(name: "a", schedule: "s", text: "{}")

  # Ticks after the last one, until there are enough.
  def tick_on(storage, first)
    loop do
      _, (last,) = storage.cron_define("shop", [cron], fresh: false)
      tick = [first, last.round].max + 1
      return if tick > first + TICKS

      jid = "#{Process.pid} #{tick}"
      entry = JSON.generate("class" => "Work", "args" => [], "jid" => jid, "queue" => "default")
      answer = storage.cron_push("a", tick, Ringspun::Jobs::Storage::Push.new(queue: "default", entry:, jid:))
      raise answer.inspect unless %i[pushed passed].include?(answer)
    end
  end

  def assert_each_once(storage, &new_storage)
    now, = storage.cron_define("shop", [cron])
    first = now.round + 60
    pids = Array.new(PROCESSES) do
      fork do
        tick_on(new_storage.call, first)
        exit!(0)
      rescue Exception => error
        warn error.full_message
        exit!(1)
      end
    end
    assert_equal [0], pids.map { |pid| Process.wait2(pid).last.exitstatus }.uniq
    ticks = storage.list("default", 0, 1000).map { |job| Integer(JSON.parse(job.entry)["jid"].split.last) }
    assert_equal (1..TICKS).to_a, (ticks.map { |tick| tick - first })
  end
end

class RedisCronProcessesTest < RedisCase
  include CronProcesses

  def test_each_tick_comes_once
    path = redis_path # a child would start a server of its own
    assert_each_once(storage) { Storage::Redis.new({ path: }) }
  end
end

class SqliteCronProcessesTest < SqliteCase
  include CronProcesses

  def test_each_tick_comes_once = assert_each_once(storage) { Sqlite.new(path, durable: :normal) }
end
