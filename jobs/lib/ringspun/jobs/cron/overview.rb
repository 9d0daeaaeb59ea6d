# frozen_string_literal: true

module Ringspun
  module Jobs
    module Cron
      # What people see of the entries that a storage has, in a program that may have none of them.
      #
      # @api private
      class Overview
        # An entry, when it comes next, seconds since the epoch, and what is to be said of it.
        Row = Struct.new(:cron, :entry, :next, :state)

        # @param storage [Storage]
        # @return [Array<Row>] in the order of their names
        # @raise [Error] of the storage
        def self.of(storage)
          crons = storage.crons
          return [] if crons.empty?

          now = storage.time
          crons.map { |cron| row(cron, now) }
        end

        # Another version may have written it.
        def self.row(cron, now)
          entry = Entry.load(cron.name, cron.text)
          Row.new(cron, entry, entry.times("UTC").after([cron.tick, now].max), state(cron, now))
        rescue ConfigError => error
          Row.new(cron, nil, nil, error.message)
        end

        def self.state(cron, now)
          return "paused" if cron.paused

          "no worker has it" if cron.seen < now - Storage::CRON_STALE_SECONDS
        end
        private_class_method :row, :state
      end
    end
  end
end
