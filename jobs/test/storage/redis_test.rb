# frozen_string_literal: true

require "jobs_helper"
require_relative "../support/storage_suite"

class RedisStorageTest < Minitest::Test
  include Servers::Redis
  include StorageSuite

  def setup
    super
    redis { |one| one.call("FLUSHALL") }
  end

  def new_storage(**) = Storage::Redis.new({ path: redis_path }, **)

  def redis
    client = RedisClient.new(path: redis_path)
    yield client
  ensure
    client.close
  end
end
