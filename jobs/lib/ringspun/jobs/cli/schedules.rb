# frozen_string_literal: true

module Ringspun
  module Jobs
    class CLI
      # Reads the section `cron` of the configuration file again while workers run.
      #
      # @api private
      class Schedules
        # Where others have theirs, which are read only if the setting says so.
        OTHERS = %w[config/recurring.yml config/schedule.yml].freeze

        # @param config [Config]
        # @param log [Log]
        def self.tell_of_unread(config, log)
          return if config.given?(:cron)

          OTHERS.select { |path| ::File.exist?(path) }.each do |path|
            log.event(:warn, "#{path} is not read: if it has a schedule for jobs, write \"cron: #{path}\" in the " \
                             "configuration file; if not, \"cron: {}\"")
          end
        end

        # @param config [Config]
        # @param schedule [Hash] what the file has said at first
        # @param file [#call] returns the file, read anew
        def initialize(config, schedule, file)
          @config = config
          @schedule = schedule
          @file = file
        end

        # A file that is wrong changes nothing, and is told.
        #
        # @param log [Log]
        def call(log)
          raise ConfigError, "the program has set it, and not the file" unless @config.cron.equal?(@schedule)

          @config.reload_cron(@file.call.settings["cron"] || {})
          @schedule = @config.cron
          log.event(:info, "the file was read again: the schedule has #{Words.count(@schedule.size, "entry", "entries")}")
        rescue ConfigError => error
          log.event(:error, "the schedule stays as it is: #{error.message}")
        rescue StandardError, SystemStackError => error
          log.event(:error, "the schedule stays as it is: #{error.class}: #{error.message}", at: error.backtrace&.first)
        end
      end
      private_constant :Schedules
    end
  end
end
