# frozen_string_literal: true

require "redis-client"

# What a test is to see, in a list that it waits at.
module Seen
  class << self
    def <<(text) = with_redis { |redis| redis.call("RPUSH", "seen", text.to_s) }

    # Until the test says "go".
    def wait = with_redis { |redis| redis.blocking_call(0, "BLPOP", "go", 0) }

    private

    def with_redis
      redis = RedisClient.new(path: ENV.fetch("SEEN"), driver: :ruby, timeout: 60)
      yield redis
    ensure
      redis.close
    end
  end
end

# What Rails.error is told.
class Subscriber
  def report(error, source: nil, **)
    Seen << "reported #{error.class} #{source}"
  end
end
Rails.error.subscribe(Subscriber.new)
