# frozen_string_literal: true

module Ringspun
  module Jobs
    # The settings of a program, which it makes once, before its first job.
    #
    #   Ringspun::Jobs.configure do |config|
    #     config.concurrency = 100
    #     config.queues = { "critical" => 5, "default" => 1 }
    #   end
    class Config
      # In seconds.
      DAY = 86_400
      # What a check returns for a value that takes a setting back.
      Unset = Object.new
      STRATEGIES = %i[group_commit single named_pool pool].freeze
      ANSWERS = %i[raise return].freeze
      private_constant :DAY, :Unset, :STRATEGIES, :ANSWERS

      # The events in the life of a worker, see {#on}.
      LIFECYCLE = %i[startup heartbeat beat quiet shutdown exit].freeze
      # All events, see {#on}.
      EVENTS = [*LIFECYCLE, :failure, :death].freeze

      class << self
        # @return [Hash{Symbol => Proc}] every setting's name, and the check of its values
        # @api private
        def settings = @settings ||= {}

        # @return [Array<Array<String>>] options of the command line that rooms beside the worker have for settings of theirs, in
        #   the words that OptionParser takes. An option has the name of its setting
        # @api private
        def options = @options ||= []

        private

        # The check gets the value and the one before. It returns the value in the form that is kept, or nil when it is wrong.
        def setting(name, default, expected, option: nil, &check)
          settings[name] = check
          options << option if option
          variable = :"@#{name}"
          define_method(name) do
            instance_variable_defined?(variable) ? instance_variable_get(variable) : default_of(name, default)
          end
          define_method(:"#{name}=") do |value|
            kept = check.call(value, public_send(name))
            raise ConfigError, "#{name} must be #{expected}, got #{value.inspect}" if kept.nil?
            next (remove_instance_variable(variable) if given?(name)) if kept.equal?(Unset)

            instance_variable_set(variable, kept)
          end
        end

        def seconds(name, default, zero: false)
          setting(name, default, zero ? "a number of seconds, 0 or more" : "a positive number of seconds") do |value|
            Seconds.of(value).then { |span| span if span && (span.positive? || (zero && span.zero?)) }
          end
        end

        def count(name, default, least: 1)
          setting(name, default, "an integer, #{least} or more") { |value| value if value.is_a?(Integer) && value >= least }
        end

        def flag(name, default)
          setting(name, default, "true or false") { |value| value if [true, false].include?(value) }
        end
      end

      # @!attribute [rw] milliseconds
      #   @return [Boolean] write times as Sidekiq 8 does, which Exq cannot read:
      #     https://github.com/sidekiq/sidekiq/blob/main/Changes.md (8.0.0)
      #   @since 0.1.0
      flag(:milliseconds, false)

      # @!attribute [rw] strategy
      #   @return [Symbol] how jobs are enqueued: :group_commit, :single, :named_pool or :pool
      #   @since 0.1.0
      setting(:strategy, :group_commit, "one of #{STRATEGIES}") do |value|
        value if STRATEGIES.include?(value)
      end
      # @!attribute [rw] pool_size
      #   @return [Integer] connections of :named_pool and :pool
      #   @since 0.1.0
      count(:pool_size, 5)
      # @!attribute [rw] pool_timeout
      #   @return [Numeric] seconds that :pool waits for a connection
      #   @since 0.1.0
      seconds(:pool_timeout, 5)

      # @!attribute [rw] after_commit
      #   @return [Boolean] jobs that do not say so themselves wait for the commit of the transactions that are open when they are
      #     enqueued; those of Active Job do as its own option says, unless their adapter is `:sidekiq`
      #   @since 0.1.0
      flag(:after_commit, false)

      # @!attribute [rw] active_job_errors
      #   @return [Symbol] what `perform_later` and its like do when a job is not stored: `:raise` our error, or `:return` false,
      #     as Rails' own adapters do; then the error is logged and reported to `Rails.error`
      #   @since 0.1.0
      setting(:active_job_errors, :raise, "one of #{ANSWERS}") do |value|
        value.to_sym.then { |answer| answer if ANSWERS.include?(answer) } if value.respond_to?(:to_sym)
      end

      # @!attribute [rw] queues
      #   @return [Hash{String => Integer}] the queues that a worker serves, and their weights; an Array is strict: the first that
      #     has jobs is served. `*` stands for all queues that are not named, `mail_*` for those whose names begin so
      #   @since 0.1.0
      setting(:queues, { "default" => 1 }.freeze, "an Array of names, or a Hash of names and weights") { |all| queues_of(all) }
      # @!attribute [rw] limits
      #   @return [Hash{String => Integer}] how many jobs of a queue may run at once, in all processes together
      #   @since 0.1.0
      setting(:limits, {}.freeze, "a Hash of queues and how many of their jobs may run at once") do |value|
        pattern = value.keys.grep(String).grep(QueuePattern).first if value.is_a?(Hash)
        raise ConfigError, "limits has #{pattern.inspect}: a limit is for one queue, by its name" if pattern

        numbers_of(:limits, value) if value.is_a?(Hash)
      end
      # @!attribute [rw] concurrency
      #   @return [Integer] jobs that one process runs at once
      #   @since 0.1.0
      count(:concurrency, 1000)
      # @!attribute [rw] tag
      #   @return [String] what `ps` and dashboards call the processes, beside their names
      #   @since 0.1.0
      setting(:tag, "ringspun", "a String") { |value| value.dup.freeze if value.is_a?(String) }
      # @!attribute [rw] labels
      #   @return [Array<String>] what dashboards show beside each process
      #   @since 0.1.0
      setting(:labels, [].freeze, "an Array of Strings") { |value| value.map(&:to_s).freeze if value.is_a?(Array) }
      # @!attribute [rw] processes
      #   @return [Integer] worker processes
      #   @since 0.1.0
      count(:processes, 1)
      # @!attribute [rw] timeout
      #   @return [Numeric] seconds for running jobs to end when the worker is stopped
      #   @since 0.1.0
      seconds(:timeout, 25)

      # @!attribute [rw] retries
      #   @return [Integer] how often a job that fails is tried again, unless it says otherwise
      #   @since 0.1.0
      count(:retries, 25, least: 0)
      # @!attribute [rw] dead_max
      #   @return [Integer] dead jobs that are kept
      #   @since 0.1.0
      count(:dead_max, 10_000)
      # @!attribute [rw] dead_seconds
      #   @return [Numeric] how long they are kept
      #   @since 0.1.0
      seconds(:dead_seconds, 180 * DAY)
      # @!attribute [rw] deaths
      #   @return [Integer] how often a job may end its process while it is isolated in it, until it is dead
      #   @since 0.1.0
      count(:deaths, 3)
      # @!attribute [rw] worker_deaths
      #   @return [Integer] how often a worker may die, for whatever reason, while it runs a job isolated, until that is dead
      #   @since 0.1.0
      count(:worker_deaths, 25)
      # @!attribute [rw] history
      #   @return [Numeric] seconds for which there is a history of what has happened to a job, see {Storage#history}; 0: there
      #     is none
      #   @since 0.1.0
      seconds(:history, DAY, zero: true)
      # @!attribute [rw] keep_done
      #   @return [Numeric] seconds for which a storage with tables keeps jobs that are done, so that pages show them, see
      #     {Storage#done}; 0: not at all
      #   @since 0.1.0
      seconds(:keep_done, 0, zero: true)
      # @!attribute [rw] lease
      #   @return [Numeric] seconds without a heartbeat after which others take over what a process had in flight
      #   @since 0.1.0
      seconds(:lease, 12)
      # @!attribute [rw] beat
      #   @return [Numeric] seconds between heartbeats
      #   @since 0.1.0
      seconds(:beat, 3)
      # @!attribute [rw] metrics
      #   @return [Boolean] measure how long the jobs of each class take, for Sidekiq's page of metrics
      #   @since 0.1.0
      flag(:metrics, true)
      # @!attribute [rw] recover_exq
      #   @return [Boolean] take over what nodes of Exq that are gone had in flight
      #   @since 0.1.0
      flag(:recover_exq, false)
      # @!attribute [rw] log
      #   @return [String] the log file of a worker; "-" is the standard output
      #   @since 0.1.0
      setting(:log, "-", "the name of a file, or -") { |value| value if value.is_a?(String) && !value.empty? }
      # @!attribute [rw] log_format
      #   @return [String] the format of its lines: "text" or "json"
      #   @since 0.1.0
      setting(:log_format, "text", "text or json") { |value| value.to_s if %w[text json].include?(value.to_s) }
      # @!attribute [rw] log_level
      #   @return [String] the lowest level that is logged: "debug", "info", "warn" or "error"
      #   @since 0.1.0
      setting(:log_level, "info", "debug, info, warn or error") do |value|
        value.to_s if %w[debug info warn error].include?(value.to_s)
      end
      # @!attribute [rw] logger
      #   @return [Logger, nil] which logs what workers do; nil: one that writes to {#log}
      #   @since 0.1.0
      setting(:logger, nil, "a Logger") { |value| value if value.respond_to?(:info) }

      # @!attribute [rw] reloader
      #   @return [#call, nil] which is called around each run of a job, the lookup of its class included, with a block that it
      #     calls: a framework begins and ends there what it keeps for a job. What the job raises passes through it
      #   @since 0.1.0
      setting(:reloader, nil, "something with a method call") { |value| value if value.respond_to?(:call) }

      # @param name [Symbol] of a setting
      # @return [Boolean] whether it was set; false: it has its default
      # @since 0.1.0
      def given?(name) = instance_variable_defined?(:"@#{name}")

      # For a framework that knows a better default of a setting than we do.
      #
      # @param name [Symbol] of the setting
      # @yieldreturn [Object, nil] asked when it is needed; nil: our own default
      # @return [nil]
      # @api private
      def preset(name, &block)
        (@presets ||= {})[name] = block
        nil
      end

      # How the process of a job has ended.
      #
      # - `kind`: :taken_over (its node is gone, and it runs again) or :died (with the child in which it ran in quarantine)
      # - `fate`: how the child has ended, such as "SIGKILL"; nil for one that was taken over
      # - `queue`, `node`: the queue that the job was fetched from, and the node that had it in flight
      ProcessDeath = Struct.new(:kind, :fate, :queue, :node)

      # Sets a block that is called for each job that was taken over from a dead process, or died with its child, in the worker
      # that has seen it. What the block raises is logged. While it waits, that worker takes over nothing else; jobs go on.
      #
      # The block misses a job that was taken over if the storage's answer was lost, or if the worker that has taken it over dies
      # at once.
      #
      # @yieldparam job [Hash{String => Object}] empty if the entry is malformed
      # @yieldparam death [ProcessDeath]
      # @return [nil]
      # @since 0.1.0
      def on_process_death(&block)
        @process_death = block
        nil
      end

      # @return [Proc, nil]
      # @api private
      attr_reader :process_death

      # Registers a block for an event of each worker. What it raises is logged; at :startup it ends the worker.
      #
      # - :startup, before the first job is fetched; :heartbeat, when that has begun; :beat, then and every five seconds
      # - :quiet, when no more jobs are fetched; :shutdown, when the worker is told to end; :exit, when all jobs have ended. Of
      #   these the block that was registered last is called first
      # - :failure, when a job has failed, and :death, when it is not tried again: with the job and the error, in its strand
      #
      # @param event [Symbol] one of {EVENTS}
      # @yieldparam job [Hash{String => Object}] of :failure and :death
      # @yieldparam error [Exception] of :failure and :death
      # @return [nil]
      # @raise [ConfigError] if there is no such event, or no block
      # @since 0.1.0
      def on(event, &block)
        raise ConfigError, "there is no event #{event.inspect}#{Suggestion.for(event.to_s, EVENTS)}" unless EVENTS.include?(event)
        raise ConfigError, "the event #{event} needs a block" unless block

        hooks[event] = [*hooks[event], block].freeze
        nil
      end

      # Handlers hear of each run that fails, also where the job is tried again: such as a service that collects errors. They are
      # called in the job's strand with the error, the job and a context, and may wait. What they raise is logged.
      #
      #   config.error_handlers << ->(error, job, context) { Reporter.report(error, job["class"], context[:outcome]) }
      #
      # The context has `:outcome`, which is :retry, :dead or :dropped; `:queue`, from which the job was fetched; and `:delay`,
      # the seconds until it is tried again, or nil.
      #
      # @return [Array<#call>] to which a program adds
      # @since 0.1.0
      def error_handlers = @error_handlers ||= []

      # @return [Hash{Symbol => Array<Proc>}] by events
      # @api private
      def hooks = @hooks ||= {}

      # @return [Chain] what is called around each job that is enqueued
      # @since 0.1.0
      def client_middleware = @client_middleware ||= Chain.new

      # @return [Chain] what is called around each job that a worker runs
      # @since 0.1.0
      def server_middleware = @server_middleware ||= Chain.new

      # For a framework that has a log of its own: where {#tell} says it unless a {#logger} is set.
      #
      # @return [#call] which returns a Logger, or nil
      # @api private
      attr_writer :listener

      # Says something to a program that may be no worker: in its log, or on the standard error.
      #
      # @param level [Symbol] :info, :warn or :error
      # @param text [String]
      # @param aloud [Boolean] whether it is said also where there is no log
      # @api private
      def tell(level, text, aloud: true)
        log = logger || @listener&.call
        if log then log.public_send(level, text)
        elsif aloud then Kernel.warn(text)
        end
      end

      def default_of(name, default)
        block = @presets && @presets[name]
        block ? block.call || default : default
      end
      private :default_of

      def self.queues_of(value)
        case value
        when Array then names_of(:queues, value) if value.any?
        when Hash then numbers_of(:queues, value) if value.any?
        end.tap { |queues| check_patterns(queues) if queues }
      end

      def self.check_patterns(queues)
        wrong = queues.each_entry.map { |name, _weight| name }.find { |name| name.chomp("*").include?("*") }
        raise ConfigError, "queues has #{wrong.inspect}, where * is not the last character" if wrong
      end

      def self.numbers_of(setting, hash)
        names = names_of(setting, hash.keys)
        names.zip(hash.values).to_h.freeze if hash.values.all? { |number| number.is_a?(Integer) && number.positive? }
      end

      # Every worker serves the quarantine, and runs its jobs in other processes.
      def self.names_of(setting, names)
        names = names.map { |name| Wire.utf8(name) || name }
        wrong = names.reject { |name| Wire.queue?(name) }.map(&:inspect)
        raise ConfigError, "#{setting} has #{wrong.first}, which is no name of a queue that programs may have" if wrong.any?

        twice = names.find { |name| names.count(name) > 1 }
        raise ConfigError, "#{setting} has #{twice.inspect} twice" if twice

        names.map { |name| name.dup.freeze }.freeze
      end
      private_class_method :queues_of, :check_patterns, :numbers_of, :names_of

      # Checks settings against each other, and what was added to lists. A worker does so when it is made.
      #
      # @return [Config] self
      # @raise [ConfigError]
      # @since 0.1.0
      def check
        wrong = error_handlers.reject { |handler| handler.respond_to?(:call) }
        raise ConfigError, "error_handlers must have a method call, got #{wrong.first.inspect}" unless wrong.empty?
        return self if beat * 2 <= lease

        raise ConfigError, "beat must be at most half of lease, or one late heartbeat costs it: they are #{beat} s and #{lease} s"
      end

      # Sets all settings of a Hash, such as that of a YAML file.
      #
      # @param values [Hash{String, Symbol => Object}]
      # @return [Config] self
      # @raise [ConfigError] which names an unknown setting, or a wrong value
      # @since 0.1.0
      def update(values)
        raise ConfigError, "settings must be a Hash of names and values, got #{values.inspect[0, 100]}" unless values.is_a?(Hash)

        values.each do |name, value|
          unless Config.settings.key?(name.to_sym)
            raise ConfigError, "there is no setting #{name}#{Suggestion.for(name, Config.settings.keys)}"
          end

          public_send(:"#{name}=", value)
        end
        self
      end
    end
  end
end
