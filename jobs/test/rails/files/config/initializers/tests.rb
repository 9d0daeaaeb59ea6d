# frozen_string_literal: true

require "redis-client"

# What a test is to see, in a list that it waits at.
module Seen
  def self.<<(text)
    RedisClient.new(path: ENV.fetch("SEEN"), driver: :ruby).tap { |redis| redis.call("RPUSH", "seen", text.to_s) }.close
  end
end

# What Rails.error is told.
class Subscriber
  def report(error, source: nil, **)
    Seen << "reported #{error.class} #{source}"
  end
end
Rails.error.subscribe(Subscriber.new)
