# frozen_string_literal: true

module Ringspun
  module Jobs
    class Config
      # @!attribute [rw] cron
      #   @return [Hash{String => Object}] jobs that are enqueued by a schedule, as the section `cron` of a file has them: entries
      #     by their names; or, to set it, the name of a file of Solid Queue's or sidekiq-cron's. See {Jobs.cron} as well
      #   @since 0.1.0
      setting(:cron, {}.freeze, "a Hash of names and entries, or the name of a file that has them") do |value|
        Cron::Definitions.entries(value)
      end

      # @!attribute [rw] cron_zone
      #   @return [String] the time zone of schedules that say none; in Rails the default is the application's
      #   @since 0.1.0
      setting(:cron_zone, "UTC", "the name of a time zone, such as Europe/Berlin") do |value|
        Cron::Times.new("* * * * *", value).zone
      end

      # @return [Hash{String => Cron::Entry}] those of the setting, and those that the program has added
      # @raise [ConfigError] a name is in both
      # @api private
      def cron_entries
        coded = @coded_crons || {}.freeze
        both = cron.keys & coded.keys
        raise ConfigError, "the cron entry #{both.first} is in the setting cron, and the program adds it as well" if both.any?

        coded.empty? ? cron : cron.merge(coded)
      end

      # Takes over the entries of a file that has been read again.
      #
      # @param value [Object] as the setting takes it
      # @return [nil]
      # @raise [ConfigError] nothing has changed
      # @api private
      def reload_cron(value)
        before = cron
        self.cron = value
        cron_entries
        nil
      rescue StandardError, SystemStackError
        @cron = before if before
        raise
      end

      # @param entry [Cron::Entry]
      # @return [nil]
      # @raise [ConfigError] another one has its name
      # @api private
      def add_cron(entry)
        known = (@coded_crons || {})[entry.name] || cron[entry.name]
        if known && (cron.key?(entry.name) || known != entry)
          raise ConfigError, "the cron entry #{entry.name} is there already, and says something else; give this one another name"
        end

        @coded_crons = { **(@coded_crons || {}), entry.name => entry }.freeze
        nil
      end
    end
  end
end
