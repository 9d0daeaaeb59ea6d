# frozen_string_literal: true

module Ringspun
  module Jobs
    # The child's end of what its supervisor holds it by. While the supervisor beats for this node, it says so there; when it has
    # been silent for too long, be it frozen or without a connection, or is gone, this process beats for itself, so that no job
    # runs here that others take over.
    #
    # On a thread and a connection of its own, so that a job which computes is not in the way.
    #
    # @api private
    class Lifeline
      # What the supervisor writes: that it beats, and that running jobs shall be cancelled.
      BEAT = "b"
      HURRY = "h"

      # @param line [IO] see {Child}
      # @param node [String]
      # @param hurry [#call] when running jobs shall be cancelled
      # @yield when the supervisor is gone
      def initialize(line, node, config, storage, log, hurry:, &gone)
        @line = line
        @node = node
        @config = config
        @storage = storage
        @log = log
        @hurry = hurry
        @gone = gone
      end

      # @return [Thread]
      def watch
        Thread.new do
          Thread.current.name = "ringspun-jobs lifeline"
          @connection = @storage.connect
          heed
          @gone.call
          loop { beat.then { sleep(@config.beat) } }
        ensure
          @connection&.close
        end
      end

      private

      # Until there is no supervisor any more.
      def heed
        loop do
          next beat if @line.wait_readable(@config.lease / 2.0).nil?

          told = @line.read_nonblock(4096, exception: false) or return
          @hurry.call if told.include?(HURRY)
        end
      end

      def beat
        @storage.extend([@node], @config.lease, connection: @connection)
      rescue StandardError => error
        @log.event(:warn, "no heartbeat: #{error.message}", node: @node)
      end
    end
    private_constant :Lifeline
  end
end
