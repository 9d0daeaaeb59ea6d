# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      # Calls the program's hook for jobs whose process has died, see {Config#on_process_death}.
      #
      # @api private
      class Deaths
        def initialize(config, log)
          @config = config
          @log = log
        end

        # May switch strands, as the hook does.
        #
        # @param job [Hash]
        def report(job, kind, queue:, node:, fate: nil)
          @config.process_death&.call(job, Config::ProcessDeath.new(kind, fate, queue, node))
        rescue Cancelled
          raise
        rescue Exception => error # the hook is the program's code, and must not end the worker
          @log.event(:error, "on_process_death raises", jid: job["jid"], error: error.class.name,
                                                        message: ErrorText.message_of(error))
        end
      end
      private_constant :Deaths
    end
  end
end
