# frozen_string_literal: true

module Ringspun
  module Jobs
    # A worker process's end of its lifeline. The supervisor extends the lease of this node, and says so on the lifeline. If it is
    # silent for too long, frozen or without a connection, or is gone, this process extends its lease itself, so that others do
    # not take over jobs that run here.
    #
    # It has a thread and a connection of its own, so that a job which computes cannot delay it.
    #
    # @api private
    class Lifeline
      # What the supervisor writes: a heartbeat, and the order to cancel running jobs.
      BEAT = "b"
      HURRY = "h"

      # @param line [IO] see {Child}
      # @param node [String]
      # @param hurry [#call] is called to cancel running jobs
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
          heed
          @gone.call
          loop { beat.then { sleep(@config.beat) } }
        ensure
          @connection&.close
        end
      end

      private

      # Returns when the supervisor is gone.
      def heed
        loop do
          next beat if @line.wait_readable(@config.lease / 2.0).nil?

          text = @line.read_nonblock(4096, exception: false) or return
          @hurry.call if text != :wait_readable && text.include?(HURRY)
        end
      end

      def beat
        @connection ||= @storage.connect
        @storage.extend([@node], @config.lease, connection: @connection)
      rescue StandardError => error
        @log.event(:warn, "no heartbeat: #{error.message}", node: @node)
      end
    end
    private_constant :Lifeline
  end
end
