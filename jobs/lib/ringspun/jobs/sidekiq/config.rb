# frozen_string_literal: true

require_relative "logger"
require_relative "middleware"
require_relative "redis_pool"

module Ringspun
  module Jobs
    module Sidekiq
      # The settings of {Jobs.config} by Sidekiq's names. What has no setting of ours is kept here, for whoever asks for it.
      class Config
        # Options of Sidekiq, and the settings that they are.
        SETTINGS = { concurrency: :concurrency, queues: :queues, timeout: :timeout, max_retries: :retries,
                     dead_max_jobs: :dead_max, dead_timeout_in_seconds: :dead_seconds, labels: :labels, tag: :tag }.freeze

        # What cannot be done here, and what to write.
        REFUSED = {
          fetch_class: "jobs are fetched by Ringspun alone; remove the line",
          job_logger: "set Ringspun::Jobs.config.logger or log_format instead",
          logged_job_attributes: "the log has jid, class and queue; remove the line",
          reloader: "the executor of a Rails app is around each job anyhow; remove the line",
          backtrace_cleaner: "sidekiq_options backtrace: 20 keeps the first lines; remove the line",
          redis_idle_timeout: "connections stay; remove the line"
        }.freeze
        private_constant :SETTINGS, :REFUSED

        # What holds unless it is set, for whoever asks for it. Set it in the configuration.
        DEFAULTS = {
          labels: Set.new.freeze, require: ".", environment: nil, concurrency: Jobs::Config.new.concurrency, timeout: 25,
          poll_interval_average: nil, average_scheduled_poll_interval: 5, on_complex_arguments: :raise,
          max_iteration_runtime: nil, error_handlers: [].freeze, death_handlers: [].freeze,
          lifecycle_events: Jobs::Config::LIFECYCLE.to_h { |event| [event, [].freeze] }.freeze,
          dead_max_jobs: 10_000, dead_timeout_in_seconds: 180 * 86_400, reloader: proc { |&block| block.call },
          backtrace_cleaner: ->(backtrace) { backtrace }, logged_job_attributes: %w[bid tags].freeze, redis_idle_timeout: nil
        }.freeze

        # @api private
        def initialize
          @options = { environment: ENV["APP_ENV"] || ENV["RAILS_ENV"] || ENV["RACK_ENV"] || "development",
                       average_scheduled_poll_interval: 5, error_handlers: [], death_handlers: [] }
          @redis = {}
          listen
        end

        # @since 0.1.0
        def [](name) = SETTINGS.key?(name) ? Jobs.config.public_send(SETTINGS[name]) : @options[name]

        # @raise [ConfigError] for what cannot be done here
        # @since 0.1.0
        def []=(name, value)
          raise ConfigError, "Sidekiq's option #{name} is not understood: #{REFUSED[name]}" if REFUSED.key?(name) && value

          if %i[concurrency queues].include?(name) then public_send(:"#{name}=", value)
          elsif SETTINGS.key?(name) then Jobs.config.public_send(:"#{SETTINGS[name]}=", value)
          else @options[name] = value
          end
        end

        # @since 0.1.0
        def key?(name) = SETTINGS.key?(name) || @options.key?(name)

        alias has_key? key?

        # @since 0.1.0
        def fetch(name, *default, &) = key?(name) ? self[name] : @options.fetch(name, *default, &)

        # @since 0.1.0
        def dig(name, *more) = more.empty? ? self[name] : self[name]&.dig(*more)

        # @since 0.1.0
        def merge!(options)
          options.each { |name, value| self[name] = value }
          self
        end

        # @since 0.1.0
        def concurrency = Jobs.config.concurrency

        # @since 0.1.0
        def concurrency=(value)
          Jobs.config.concurrency = Integer(value)
        end

        alias total_concurrency concurrency

        # @return [Array<String>]
        # @since 0.1.0
        def queues = Jobs.config.queues.to_a.map { |name, _weight| name }

        # @param words [Array<String, Array>] "critical,3", "default", ["low", 1]
        # @since 0.1.0
        def queues=(words)
          require_relative "../cli/values"
          Jobs.config.queues = CLI.queues_of([*words].map { |word| word.is_a?(Symbol) ? word.to_s : word })
        end

        # Sidekiq's pools of threads. There is one for all queues here.
        #
        # @yieldparam config [Config] for the name "default", which is this
        # @raise [ConfigError] for any other name
        # @since 0.1.0
        def capsule(name)
          unless name.to_s == "default"
            raise ConfigError, "there are no capsules: let the queues of the capsule #{name} have a worker of their own, as by " \
                               "ringspun-jobs -q QUEUE -c CONCURRENCY; or limit how many of their jobs run in all processes " \
                               "together, by Ringspun::Jobs.config.limits = { \"QUEUE\" => CONCURRENCY }"
          end

          yield self if block_given?
          self
        end

        # @since 0.1.0
        def default_capsule(&) = capsule("default", &)

        # @yieldparam chain [Middleware::Chain]
        # @return [Middleware::Chain]
        # @since 0.1.0
        def client_middleware
          @client_middleware ||= Middleware::Chain.new(Jobs.config.client_middleware) { redis_pool }
          yield @client_middleware if block_given?
          @client_middleware
        end

        # @yieldparam chain [Middleware::Chain]
        # @return [Middleware::Chain]
        # @since 0.1.0
        def server_middleware
          @server_middleware ||= Middleware::Chain.new(Jobs.config.server_middleware)
          yield @server_middleware if block_given?
          @server_middleware
        end

        # @param options [Hash] what RedisClient.config takes; and :size, of {#redis_pool}, :network_timeout, :master_name
        # @raise [ConfigError]
        # @since 0.1.0
        def redis=(options)
          @redis = @redis.merge(options.transform_keys(&:to_sym))
          Jobs.config.redis = RedisPool.plain(@redis)
          @redis_pool = nil
        end

        # @return [RedisPool]
        # @since 0.1.0
        def redis_pool
          RedisPool.current || (@redis_pool ||= RedisPool.new(@redis.empty? ? Jobs.config.redis : @redis,
                                                              namespace: Jobs.config.namespace))
        end

        # @yieldparam connection [RedisPool::Connection]
        # @return [Object] the block's value
        # @raise [ArgumentError] without a block
        # @since 0.1.0
        def redis(&block)
          raise ArgumentError, "requires a block" unless block

          redis_pool.with(&block)
        end

        # @return [Hash{String => String}] what INFO says
        # @since 0.1.0
        def redis_info = redis(&:info)

        # @param seconds [Numeric, nil] kept, and of no effect: due jobs are looked for when the next is due
        # @since 0.1.0
        def average_scheduled_poll_interval=(seconds)
          @options[:average_scheduled_poll_interval] = seconds
        end

        # @return [Array<#call>] called with the error, a Hash with :context and :job, and this
        # @since 0.1.0
        def error_handlers = @options[:error_handlers]

        # @return [Array<#call>] called with the job and the error
        # @since 0.1.0
        def death_handlers = @options[:death_handlers]

        # Registers a block for an event of each worker.
        #
        # @param event [Symbol] :startup, :quiet, :shutdown, :exit, :heartbeat (the first beat) or :beat
        # @raise [ArgumentError] if there is no such event
        # @since 0.1.0
        def on(event, &block)
          raise ArgumentError, "Symbols only please: #{event}" unless event.is_a?(Symbol)
          raise ArgumentError, "Invalid event name: #{event}" unless Jobs::Config::LIFECYCLE.include?(event)

          Jobs.config.on(event, &block)
        end

        # @return [Logger] the worker's; made when it is first asked for
        # @since 0.1.0
        def logger
          config = Jobs.config
          config.logger ||= Log.open(path: config.log, format: config.log_format, level: config.log_level)
        end

        # @param logger [Logger, nil] nil: log nothing below FATAL
        # @since 0.1.0
        def logger=(logger)
          logger.nil? ? self.logger.level = ::Logger::FATAL : Jobs.config.logger = logger
        end

        # @api private
        attr_accessor :thread_priority

        # Tells the error handlers.
        #
        # @since 0.1.0
        def handle_exception(error, context = {})
          error_handlers.each do |handler|
            handler.call(error, context, self)
          rescue StandardError => another
            logger.error("an error handler raises #{another.class}: #{another.message}")
          end
        end

        # @since 0.1.0
        def inspect = "#<#{self.class.name} #{@options.except(:error_handlers, :death_handlers).inspect}>"

        private

        def check_handlers
          %i[error_handlers death_handlers].each do |name|
            wrong = self[name].reject { |handler| handler.respond_to?(:call) }
            raise ConfigError, "#{name} must have a method call, got #{wrong.first.inspect}" unless wrong.empty?
          end
        end

        def listen
          Jobs.config.on(:startup) { check_handlers }
          Jobs.config.on(:failure) do |job, error|
            handle_exception(error, { context: "Job raised exception", job: job })
          end
          Jobs.config.on(:death) do |job, error|
            death_handlers.each do |handler|
              handler.call(job, error)
            rescue StandardError => another
              handle_exception(another, { context: "Error calling death handler", job: job })
            end
          end
        end
      end
    end
  end
end
