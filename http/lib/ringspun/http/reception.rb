# frozen_string_literal: true

module Ringspun
  module HTTP
    # How a connection begins, before its first request: what a proxy tells of it, and TLS, which comes behind that.
    #
    # @api private
    class Reception
      # Seconds for a handshake, where nothing else is said.
      HANDSHAKE_SECONDS = 30
      NOTHING = {}.freeze
      private_constant :HANDSHAKE_SECONDS, :NOTHING

      # @param service [Service]
      # @param tls [FreshContext, nil]
      # @param proxy [ProxyProtocol, nil]
      # @param metrics [Metrics, nil]
      # @param options [Hash] those of {Server#initialize}
      def initialize(service, tls: nil, proxy: nil, metrics: nil, options: {})
        @service = service
        @tls = tls
        @proxy = proxy
        @metrics = metrics
        @seconds = options[:first_byte] || HANDSHAKE_SECONDS
        @options = options
      end

      # @return [Hash] for {Server#initialize}, which may read nothing of what comes first here
      def options
        options = { **@service.server_options, **@options }
        @tls || @proxy ? { **options, first_byte: nil } : options
      end

      # Serves a connection to its end, or until it waits for its next request.
      #
      # May switch strands.
      #
      # @param stream [Stream]
      # @return [Waiting, nil] nil: to its end
      def call(stream)
        @metrics&.connected
        told = @proxy ? @proxy.read(stream) : NOTHING
        waiting = go_on(stream, told) if told && secured?(stream)
      ensure
        gone unless waiting
      end

      # One that has waited goes on, and what is returned is that of {#call}.
      #
      # @param waiting [Waiting]
      def wake(waiting)
        again = go_on(waiting.stream, waiting.told, waiting.deadline)
      ensure
        gone unless again
      end

      # One that has waited is closed.
      def gone = @metrics&.disconnected

      private

      def go_on(stream, told, deadline = nil)
        due = @service.call(stream, told, deadline, leaves: true)
        Waiting.new(stream, due, self, told) if due
      end

      # A failed handshake is the client's fault.
      def secured?(stream)
        stream.accept_tls(@tls.context, timeout: @seconds) if @tls
        true
      rescue HandshakeError
        false
      end
    end
    private_constant :Reception
  end
end
