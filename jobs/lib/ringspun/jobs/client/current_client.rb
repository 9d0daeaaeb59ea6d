# frozen_string_literal: true

# The client by which a process enqueues.

module Ringspun
  module Jobs
    class << self
      # @api private
      def client
        return @client if @client

        target = enqueuer
        build { @client ||= new_client(target) }
      end

      # @return [Client] whose jobs are as the settings say
      # @api private
      def new_client(enqueuer)
        client = [Notices, Tracing].map(&:look).any? ? WatchedClient : Client
        client.new(enqueuer, chain: config.client_middleware, milliseconds: config.milliseconds,
                             after_commit: config.after_commit)
      end
    end
  end
end
