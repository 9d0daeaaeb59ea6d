# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      # Calls the blocks that the program has registered for events, see {Config#on}.
      #
      # @api private
      class Events
        # The last that was registered is called first, for it may need what those before it have begun.
        REVERSED = %i[quiet shutdown exit].freeze

        # @param config [Config]
        # @param log [Log] for blocks that raise
        def initialize(config, log)
          @config = config
          @log = log
        end

        # May switch strands. What a block raises is logged. That holds for a {Cancelled} too, which a block gets that waits in a
        # cancelled strand.
        #
        # @param event [Symbol]
        def call(event, *arguments)
          each(event) do |block|
            block.call(*arguments)
          rescue Exception => error
            @log.event(:error, "a block for #{event} raises", error: error.class.name, message: Retrying.message_of(error))
          end
        end

        # The same, but raises what a block raises.
        def call!(event) = each(event, &:call)

        private

        def each(event, &)
          blocks = @config.hooks[event] or return
          (REVERSED.include?(event) ? blocks.reverse : blocks).each(&)
        end
      end
      private_constant :Events

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
