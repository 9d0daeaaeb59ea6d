# frozen_string_literal: true

require_relative "maintenance"

module Ringspun
  module Jobs
    class Worker
      # Calls the blocks for the beats of a worker.
      #
      # @api private
      class Beats < Maintenance
        # @return [Boolean] whether the program has any
        def self.wanted?(config) = config.hooks.key?(:heartbeat) || config.hooks.key?(:beat)

        private

        def round
          @events ||= Events.new(@config, @log).tap { |events| events.call(:heartbeat) }
          @events.call(:beat)
          Announcement::EVERY_SECONDS
        end
      end
      private_constant :Beats
    end
  end
end
