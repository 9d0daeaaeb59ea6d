# frozen_string_literal: true

require "sidekiq"
require "sidekiq/api"
require "support/fork_server"

# The real Sidekiq, on the Redis of the tests: its client and its API in this process, its server in one of its own.
module RealSidekiq
  # Jobs tell what became of them in lists on the same Redis. Both sides define these classes by this text, each on its own mixin.
  JOBS = <<~'RUBY'
    require "json"
    require "redis-client"

    # The first argument says what happens.
    module Told
      def perform(what, *rest)
        redis = RedisClient.new(url: ENV.fetch("REDIS_URL"), timeout: 60)
        redis.call("LPUSH", "told", JSON.generate([BY, self.class.name, jid, what, *rest]))
        case what
        when "fail" then raise ArgumentError, "as told"
        when "hold" then redis.blocking_call(60, "BRPOP", "go", 0)
        end
      ensure
        redis&.close
      end
    end

    class FromSidekiq
      include MIXIN
      include Told
    end

    class FromRingspun
      include MIXIN
      include Told
    end
  RUBY

  # Sidekiq first looks for what is due after up to five seconds; its own code, called at once and often, needs none.
  APP = <<~RUBY + JOBS
    BY = "sidekiq"
    MIXIN = Sidekiq::Job

    Sidekiq.configure_server do |config|
      config.on(:startup) do
        Thread.new do
          due = Sidekiq::Scheduled::Enq.new(config)
          loop do
            due.enqueue_jobs
            sleep 0.02
          end
        end
      end
    end
  RUBY

  # @param url [String] of its Redis
  # @return [Program]
  def self.start(url, *options)
    ForkedProgram.new("sidekiq", { "REDIS_URL" => url }) do |folder|
      app = File.join(folder, "app.rb")
      File.write(app, APP)
      [Gem.bin_path("sidekiq", "sidekiq"), "-r", app, "-c", "3", "-e", "production", *options]
    end
  end

  # Runs the block with Sidekiq's client and API on this Redis.
  def self.on(url)
    pool = Sidekiq::RedisConnection.create(url:, size: 2)
    Sidekiq::Client.via(pool) { yield pool }
  ensure
    pool&.shutdown(&:close)
  end
end
