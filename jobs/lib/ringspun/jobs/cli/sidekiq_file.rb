# frozen_string_literal: true

module Ringspun
  module Jobs
    class CLI
      # The configuration file of Sidekiq, `config/sidekiq.yml`, as one of ours:
      # https://github.com/sidekiq/sidekiq/wiki/Advanced-Options
      #
      # @api private
      module SidekiqFile
        # Keys of Sidekiq's that are settings of ours, and of ours those that Sidekiq passes over.
        SAME = %w[require concurrency queues timeout tag labels cron cron_zone].freeze
        OTHER = { "max_retries" => "retries", "dead_max_jobs" => "dead_max",
                  "dead_timeout_in_seconds" => "dead_seconds" }.freeze

        # Keys that change nothing there either, or nothing that matters here: due jobs are looked for when the next is due.
        WITHOUT_EFFECT = %w[strict environment pidfile logfile daemon index average_scheduled_poll_interval
                            poll_interval_average].freeze

        # The threads of a process, unless the file or RAILS_MAX_THREADS says how many.
        CONCURRENCY = 5

        module_function

        # @param path [String]
        # @return [Boolean] whether a file of that name is Sidekiq's
        def named?(path) = ::File.basename(path).match?(/\Asidekiq\b.*\.(yml|yaml)(\.erb)?\z/)

        # A program that was written for a number of threads has connections for as many.
        #
        # @param content [Hash{String => Object}]
        # @return [Hash{String => Object}] with settings of ours, and sections as they are there
        # @raise [ConfigError] with the line to write
        def translated(content, path)
          { "concurrency" => threads, **settings(content, path) }
        end

        def threads
          text = ENV.fetch("RAILS_MAX_THREADS", CONCURRENCY)
          Integer(text, exception: false) || raise(ConfigError, "RAILS_MAX_THREADS must be a number, got #{text.inspect}")
        end

        def settings(content, path)
          content.except(*WITHOUT_EFFECT).each_with_object({}) do |(name, value), settings|
            if SAME.include?(name) then settings[name] = value
            elsif OTHER.key?(name) then settings[OTHER[name]] = value
            elsif name == "verbose" then settings["log_level"] = "debug" if value
            elsif name == "capsules" then refuse_capsules(value, path)
            elsif value.is_a?(Hash) || value.nil? then settings[name] = section(name, value, path)
            else refuse(path, "has #{name}, which is no setting of ringspun-jobs")
            end
          end
        end

        # What is under a name that is no setting is for an environment.
        def section(name, value, path)
          settings(value || {}, path)
        rescue ConfigError => error
          raise if error.message.include?("capsules")

          refuse(path, "has #{name}, which is neither a setting of ringspun-jobs nor the section of an environment")
        end

        def refuse_capsules(capsules, path)
          lines = (capsules.is_a?(Hash) ? capsules : {}).map do |name, capsule|
            words = Array(capsule.is_a?(Hash) ? capsule["queues"] : nil).map { |word| "-q #{[*word].join(",")}" }
            concurrency = capsule["concurrency"] if capsule.is_a?(Hash)
            "for #{name}: ringspun-jobs #{[*words, *("-c #{concurrency}" if concurrency)].join(" ")}"
          end
          refuse(path, "has capsules, for which there are processes here: remove them, and start " \
                       "one more process for each (#{lines.join("; ")})")
        end

        def refuse(path, why)
          raise ConfigError, "#{path} #{why}; write config/ringspun-jobs.yml, which is read instead, or remove it"
        end
        private_class_method :threads, :settings, :section, :refuse_capsules, :refuse
      end
      private_constant :SidekiqFile
    end
  end
end
