# frozen_string_literal: true

require_relative "startup"

module Ringspun
  module Postgres
    # Asks a server to cancel what one of its connections is at, by another connection.
    # https://www.postgresql.org/docs/17/protocol-flow.html#PROTOCOL-FLOW-CANCELING-REQUESTS
    #
    # @api private
    module CancelRequest
      # Returns when the server has taken note: whether there was something to cancel it does not say.
      #
      # May switch strands.
      #
      # @param options [Options] by which the session was begun
      # @param session [Startup::Session]
      # @yield when the request has left
      # @return [Boolean] false: it has named no key by which it could be asked
      # @raise [ConnectError, ProtocolError, TimeoutError, UsageError]
      def self.send(options, session, &)
        return false unless session.key

        Startup::Failures.within(options.connect_timeout, session.host) do
          ask(options, session, Messages.cancel_request(session.process, session.key), &)
        end
        true
      end

      # In the clear only what has been in the clear before.
      def self.ask(options, session, request)
        encrypted = session.encrypted
        transport = Startup::Transport.open(options, session.host, encrypted:, required: encrypted)
        transport.stream.write(request)
        transport.stream.flush
        yield if block_given?
        wait_for_end(transport.stream)
      ensure
        Startup::Transport.give_up(transport.stream) if transport
      end
      private_class_method :ask

      def self.wait_for_end(stream)
        stream.read_partial(1)
      rescue TLSError
        nil # a server ends this connection without a word
      rescue Errno::ECONNRESET, Errno::EPIPE => error
        raise ConnectError, "the request to cancel may not have come to the server, or come later: #{error.message}"
      end
      private_class_method :wait_for_end
    end
    private_constant :CancelRequest
  end
end
