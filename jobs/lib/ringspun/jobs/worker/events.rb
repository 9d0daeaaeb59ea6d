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
            complain("a block for #{event} raises", error)
          end
        end

        # Tells all who want to hear of failed runs. May switch strands. What they raise is logged.
        #
        # @param job [Hash]
        # @param error [Exception]
        # @param context [Hash{Symbol => Object}] see {Config#error_handlers}
        def failed(job, error, context)
          @config.error_handlers.each do |handler|
            handler.call(error, job, context)
          rescue Exception => another
            complain("an error handler raises", another)
          end
          Notices.tell(context[:outcome].name) { { job:, error:, **context.slice(:queue, :delay) } }
        rescue Exception => another
          complain("who listens to #{context[:outcome]} raises", another)
        end

        # The same as {#call}, but raises what a block raises.
        def call!(event) = each(event, &:call)

        private

        def complain(what, error)
          @log.event(:error, what, error: error.class.name, message: ErrorText.message_of(error))
        end

        def each(event, &)
          blocks = @config.hooks[event] or return
          (REVERSED.include?(event) ? blocks.reverse : blocks).each(&)
        end
      end
      private_constant :Events
    end
  end
end
