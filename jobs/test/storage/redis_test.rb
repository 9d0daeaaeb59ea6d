# frozen_string_literal: true

require "jobs_helper"
require_relative "../support/redis_case"
require_relative "../support/storage_suite"

# servers: valkey

class RedisStorageTest < RedisCase
  include StorageSuite

  def new_storage(**) = Storage::Redis.new({ path: redis_path }, **)
end

class NamespacedRedisStorageTest < RedisCase
  include StorageSuite

  def new_storage(**) = Storage::Redis.new({ path: redis_path }, namespace: "a:b", **)
end
