# frozen_string_literal: true

# The Rails application of the tables of ActiveJob: the same for each library, whose name is in BENCH_LIBRARY. It logs nothing
# and writes no files.

ENV["RAILS_ENV"] = "production"

require "rails"
require "active_record/railtie"
require "active_job/railtie"
require "net/http"
require "bench/jobs/tally"
require_relative "../libraries/#{ENV.fetch("BENCH_LIBRARY")}"

class BenchApplication < Rails::Application
  config.root = File.expand_path("..", __dir__)
  config.cache_store = :null_store
  config.load_defaults 8.1
  config.eager_load = true
  config.enable_reloading = false
  config.secret_key_base = "bench" * 8
  config.logger = Logger.new(nil, level: Logger::UNKNOWN)
  Library.configure(config)
end

ActiveRecord::Migration.verbose = false
BenchApplication.initialize!
ActiveJob::Base.logger = nil # costs least: nobody makes a line that nobody reads

# Does nothing.
class EmptyJob < ActiveJob::Base
  def perform(*) = Bench::Jobs::Tally.done
end

# Asks a server that answers late.
class CallJob < ActiveJob::Base
  def perform(port)
    Bench::Jobs::Tally.begun
    raise "a wrong answer" unless Net::HTTP.get("127.0.0.1", "/", port) == "hello"

    Bench::Jobs::Tally.done
  end
end
