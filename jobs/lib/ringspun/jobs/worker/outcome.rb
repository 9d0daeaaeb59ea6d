# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      # How a run has ended.
      #
      # - `change`: what the storage is to do, a {Storage::Ack} or {Storage::Failure}
      # - `kind`: :done, :retry, :dead, :dropped (failed, and not kept), :malformed, :snoozed, :cancelled, :returned
      #   (to its queue, for the worker ends) or :died (with the process in which it ran isolated; it runs again)
      # - `error`: the Exception, if it has failed
      # - `text`: what becomes of the job, for the log
      # - `seconds`: how long the run has taken
      #
      # @api private
      Outcome = Struct.new(:change, :kind, :error, :text, :seconds) do
        def processed? = !%i[snoozed returned].include?(kind)

        def failed? = !error.nil?
      end
      private_constant :Outcome
    end
  end
end
