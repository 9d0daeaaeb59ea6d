# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      # What {Fetcher} and {Isolation} need of their worker: the node that fetches, whether more may be fetched, and a call for
      # the end of a fetch.
      #
      # @api private
      class Intake
        # @return [String]
        attr_reader :node

        # @param lease [Lease]
        # @param quiet [#call] whether the worker was told to fetch no more
        # @yield when a fetch or a wait has ended
        def initialize(node, lease, quiet, &ended)
          @node = node
          @lease = lease
          @quiet = quiet
          @ended = ended
        end

        # @return [Boolean] whether more jobs may be fetched
        def open? = !@quiet.call && @lease.lasts?

        # Called when a fetch or a wait has ended. Never waits.
        def ended = @ended.call
      end
      private_constant :Intake
    end
  end
end
