# frozen_string_literal: true

require "jobs_helper"
require_relative "../support/aof_redis"
require_relative "../support/set_clock"
require_relative "../support/storage_suite/outages"

# servers: valkey

# A Redis that stands still for longer than a lease, or whose host has its clock set.
class RedisOutageTest < Minitest::Test
  include Strands
  include AnyBackend
  include StorageSuite::Outages

  Storage = Ringspun::Jobs::Storage
  NODE = StorageSuite::NODE
  OTHER = StorageSuite::OTHER
  HOUR = 3600

  def setup
    super
    @folder = Dir.mktmpdir("ringspun-clock-")
    @clock = SetClock.new(File.join(@folder, "clock"))
    @passed = 0
    @server = AofRedis.new("--appendonly", "no", env: @clock.env(stands: true)) # or it would go on while a test is held up
  end

  def teardown
    @storage&.close
    @server.close
    FileUtils.rm_rf(@folder)
    super
  end

  def storage = @storage ||= Storage::Redis.new({ path: @server.path })

  def pass(seconds) = @clock.set(@passed += seconds)

  def server_stopped? = File.read("/proc/#{@server.pid}/stat")[/\) (\w)/, 1] == "T"

  # By a signal, a long fork or script, or with its virtual machine. What comes first then was sent meanwhile.
  def test_a_server_that_stands_still
    both_run
    Ringspun.run do
      Process.kill(:STOP, @server.pid)
      yield_until("it stands still") { server_stopped? }
      recovering = parked { storage.recover(100) }
      pass(30)
      Process.kill(:CONT, @server.pid)
      assert_empty recovering.await
    end
    assert_equal [[true, true], %w[a b]], [beat(NODE, OTHER), in_flight]
  end

  # All leases are as long as they were.
  def test_a_clock_that_is_set_back_keeps_no_lease
    both_run
    pass(-HOUR)
    assert_equal [[], [true]], [storage.recover(100), beat(NODE)]
    5.times do
      pass(BEAT)
      beat(NODE)
    end
    assert_equal [%w[b], %w[a]], [jids(storage.recover(100)), in_flight]
  end

  def test_a_clock_that_is_set_on_ends_no_lease
    both_run
    pass(HOUR)
    assert_equal [[], [true, true]], [storage.recover(100), beat(NODE, OTHER)]
  end

  # Of the nodes that have gone nothing is left.
  def test_nothing_is_left_of_leases
    both_run
    storage.ack(NODE, storage.in_flight(NODE).map { |one| Storage::Ack.new(one.queue, one.token, "a") })
    storage.leave(NODE)
    5.times do
      pass(BEAT)
      storage.recover(100)
    end
    2.times { storage.recover(100, forget: 0) }
    keys = RedisClient.new(path: @server.path).then { |redis| redis.call("KEYS", "*").tap { redis.close } }
    assert_empty keys.grep(/lease|alive|nodes|gone/)
  end
end
