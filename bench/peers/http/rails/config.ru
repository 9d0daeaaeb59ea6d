# frozen_string_literal: true

# Rails in production with what it has by itself, but for a log.

require "logger"
require "rails"
require "action_controller/railtie"

class BenchRails < Rails::Application
  config.root = __dir__
  config.load_defaults 8.1
  config.eager_load = true
  config.enable_reloading = false
  config.secret_key_base = "0" * 64
  config.logger = Logger.new(nil)
  config.log_level = :info
  config.silence_healthcheck_path = "/up"
  config.active_support.isolation_level = ENV.fetch("BENCH_ISOLATION", "thread").to_sym
  routes.append { get "up" => "rails/health#show" }
end

BenchRails.initialize!

run BenchRails
