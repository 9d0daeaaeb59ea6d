# frozen_string_literal: true

require "rails/railtie"
require "ringspun/railtie"
require "ringspun/jobs/cli"

module Ringspun
  module Jobs
    # Makes jobs at home in a Rails application. `require "ringspun-jobs"` loads this if Rails is loaded, as Bundler does.
    #
    # In every process:
    # - The settings of `config/ringspun-jobs.yml` and of `config.ringspun_jobs` hold; the latter win over the file, and
    #   `Ringspun::Jobs.configure` in an initializer over both.
    # - Active Job finds the adapter `:ringspun`.
    # - Schedules of jobs that say no time zone have the application's.
    # - State that Rails keeps for a request or a job, such as a database connection, is kept by fiber. A thread of puma has a
    #   fiber of its own, so nothing changes there, see {Ringspun::Railtie}.
    #
    # In a worker, which is the executable `ringspun-jobs`, also:
    # - Each job is a unit of work of the application: it runs in the executor and the reloader, which give back its connections,
    #   reset its CurrentAttributes, and report what it raises to `Rails.error`.
    # - The whole application is loaded at once, for two strands must not load the same constant at the same time.
    # - The concurrency is that of the smallest connection pool, unless it is set. If it is set and larger, a warning says so.
    # - What the application logs goes to the worker's log, in its form. Of a job of Active Job this has one line.
    #
    # @since 0.1.0
    class Railtie < ::Rails::Railtie
      config.ringspun_jobs = ::ActiveSupport::OrderedOptions.new

      initializer "ringspun_jobs.worker", before: "active_support.isolation_level" do |app|
        next unless CLI.running?

        app.config.active_support.isolation_level = :fiber # also if the application says otherwise, for its web processes
        app.config.eager_load = true
      end

      initializer "ringspun_jobs.settings", before: :load_config_initializers do |app|
        Home.settle(app.root.to_s, ::Rails.env.to_s)
        Jobs.config.listener = -> { ::Rails.logger } unless CLI.running?
        settings = app.config.ringspun_jobs.to_h
        # The executable has read the file before.
        settings = CLI.settings_in(app.root, ::Rails.env).merge(settings.transform_keys(&:to_s)) unless CLI.running?
        Jobs.configure { |config| config.update(settings) }
        Jobs.config.preset(:cron_zone) { ::ActiveSupport::TimeZone[app.config.time_zone || "UTC"]&.tzinfo&.name }
      end

      initializer "ringspun_jobs.active_job" do
        require "ringspun/jobs/active_job" if defined?(::ActiveJob)
        ::ActiveSupport.on_load(:active_record) { require "ringspun/jobs/active_record" }
      end

      config.after_initialize do |app|
        next unless CLI.running?

        Jobs.config.reloader = Reloader.new(app)
        app.reloader.to_prepare { ::Rails.autoloaders.main.eager_load } if app.config.reloading_enabled?
        ::ActiveSupport.on_load(:active_record) do
          Jobs.config.preset(:concurrency) { Pools.concurrency }
          # What was opened while the application was loaded; processes that are forked must not share it.
          ::ActiveRecord::Base.connection_handler.clear_all_connections!(:all)
        end
        Jobs.config.on(:startup) { Railtie.start }
      end

      # @api private
      def self.start
        Pools.warning(Jobs.config.concurrency)&.then { |text| Jobs.config.logger.warn(text) } if defined?(::ActiveRecord::Base)
        return if @logs

        @logs = true
        Logging.start(Jobs.config.logger, standard: Jobs.config.log == "-")
      end
    end
  end
end

require_relative "railtie/logging"
require_relative "railtie/pools"
require_relative "railtie/reloader"
