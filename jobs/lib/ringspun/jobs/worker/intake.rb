# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      # What those who fetch need of their worker: whose the jobs are, whether more may be fetched, and who waits for the last
      # fetch.
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

        # A fetch or a wait has ended. Never waits.
        def ended = @ended.call
      end
      private_constant :Intake
    end
  end
end
