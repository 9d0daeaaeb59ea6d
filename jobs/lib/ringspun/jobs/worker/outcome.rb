# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      # What a run has come to.
      #
      # - `change`: what the storage is to be told, a {Storage::Ack} or {Storage::Failure}
      # - `kind`: :done, :retry, :dead, :dropped (failed, and nobody wants it kept), :malformed, :snoozed, :cancelled, :returned
      #   (to its queue, for the worker ends) or :died (with the process in which it ran isolated; it runs again)
      # - `error`: the Exception, if it has failed
      # - `text`: what becomes of it, for the log
      # - `seconds`: how long it has run
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
