# frozen_string_literal: true

require "jobs_helper"
require_relative "../support/redis_case"
require_relative "../support/storage_suite"

# servers: valkey

class RedisStorageTest < RedisCase
  include StorageSuite

  def new_storage(**) = Storage::Redis.new({ path: redis_path }, **)

  def test_a_wait_ends_when_the_storage_is_closed
    storage.pause("none")
    Ringspun.run do
      waiting = parked { storage.wait_any(NODE, ["none"], 600) }
      storage.close
      assert_empty waiting.await
    end
  end
end

class NamespacedRedisStorageTest < RedisCase
  include StorageSuite

  def new_storage(**) = Storage::Redis.new({ path: redis_path }, namespace: "a:b", **)
end
