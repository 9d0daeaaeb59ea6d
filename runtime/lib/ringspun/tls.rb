# frozen_string_literal: true

module Ringspun
  # TLS for streams, with Ruby's openssl, which is loaded when it is first asked for. Where a method takes `tls:` that is
  #
  # - `true`: a client that trusts whom the system trusts;
  # - a Hash with the options of {client_context} or {server_context};
  # - an `OpenSSL::SSL::SSLContext`, which is used as it is: a client's believes everybody, unless its `set_params` was called or
  #   its `verify_mode` set. Where it verifies, the name is checked as well.
  #
  # @example
  #   Ringspun.connect_tcp("example.org", 443, tls: true) { |stream| stream.write("...") }
  #   Ringspun.listen_tcp("0.0.0.0", 443, tls: { cert: "server.pem", key: "server.key" }) { |stream| stream.read_line }
  module TLS
    # Seconds that a handshake has where nothing else bounds it: the side that waits for the other must not wait for ever.
    HANDSHAKE_SECONDS = 30

    class << self
      # What a client trusts, and what it offers. Sessions are resumed: those of the servers connected to last are kept with the
      # context, so make it once.
      #
      # @param ca [String, OpenSSL::X509::Certificate, OpenSSL::X509::Store, Array, nil] whom to trust: PEM or the path of a file
      #   with some, a certificate, several of those, or a store; nil: whom the system trusts
      # @param verify [Boolean, Symbol] false: anybody is believed to be whoever he says; :issuer: everybody is who shows a
      #   certificate by one of `ca`, whatever host it is for
      # @param cert [String, OpenSSL::X509::Certificate, Array, nil] its own certificate, and those between it and the CA's: PEM,
      #   path or objects
      # @param key [String, OpenSSL::PKey::PKey, nil] the key for it: PEM, path or object
      # @param alpn [Array<String>, nil] protocols that it speaks, the best first, as `["h2", "http/1.1"]`
      # @param min_version [Symbol] :TLS1_2 or :TLS1_3
      # @return [OpenSSL::SSL::SSLContext]
      # @raise [UsageError]
      # @since 0.1.0
      def client_context(ca: nil, verify: true, cert: nil, key: nil, alpn: nil, min_version: :TLS1_2)
        load
        Context.client({ ca:, verify:, cert:, key:, alpn:, min_version: })
      end

      # What a server shows, and whom it lets in.
      #
      # @param cert [String, OpenSSL::X509::Certificate, Array] its certificate, and those between it and the CA's: PEM, path or
      #   objects
      # @param key [String, OpenSSL::PKey::PKey] the key for it: PEM, path or object
      # @param ca [String, OpenSSL::X509::Certificate, OpenSSL::X509::Store, Array, nil] clients must show a certificate by one of
      #   these
      # @param verify [Boolean, nil] false: a client may also show none
      # @param alpn [Array<String>, nil] protocols that it speaks, the best first; a client that offers none of them is refused
      # @param min_version [Symbol] :TLS1_2 or :TLS1_3
      # @return [OpenSSL::SSL::SSLContext] one that may still be changed, as by `servername_cb=` for several names; its first
      #   connection freezes it
      # @raise [UsageError]
      # @since 0.1.0
      def server_context(cert:, key:, ca: nil, verify: nil, alpn: nil, min_version: :TLS1_2)
        load
        Context.server({ ca:, verify:, cert:, key:, alpn:, min_version: })
      end

      private

      # Without a switch: to another strand Ruby would say that a file which is being loaded is loaded.
      def load
        return if defined?(Sessions)

        Fiber.blocking do
          require "openssl"
          require_relative "tls/certificates"
          require_relative "tls/context"
          require_relative "tls/handshake"
          require_relative "tls/sessions"
        end
      end

      def client(tls, host)
        load
        Client.new(tls, host)
      end

      def server(tls)
        load
        case tls
        when OpenSSL::SSL::SSLContext then tls
        when Hash then Context.server(tls)
        else raise UsageError, "tls: a server needs {cert:, key:} or an OpenSSL::SSL::SSLContext, got #{tls.inspect}"
        end
      end

      def shake(machine, io, context) = yield(Handshake.new(machine, io, context))
    end

    # What a handshake has come to. See {Stream#tls}.
    class Connection
      # @api private
      def initialize(socket, server_name, kernel_sends, kernel_receives)
        @socket = socket
        @server_name = server_name
        @kernel_sends = kernel_sends
        @kernel_receives = kernel_receives
      end

      # @return [String] "TLSv1.3" or "TLSv1.2"
      # @since 0.1.0
      def version = @socket.ssl_version

      # @return [String] the cipher's name
      # @since 0.1.0
      def cipher = @socket.cipher.first

      # @return [String, nil] what both sides speak; nil where one of them has named nothing
      # @since 0.1.0
      def alpn_protocol = @socket.alpn_protocol

      # @return [String, nil] the name that the client has asked for (SNI)
      # @since 0.1.0
      attr_reader :server_name

      # @return [OpenSSL::X509::Certificate, nil] the other side's
      # @since 0.1.0
      def peer_certificate = @socket.peer_cert

      # @return [Boolean] whether the handshake was a short one, with what both knew from a former connection
      # @since 0.1.0
      def session_reused? = @socket.session_reused?

      # @return [Boolean] whether the kernel encrypts what is written (kTLS)
      # @since 0.1.0
      def kernel_sends? = @kernel_sends

      # @return [Boolean] whether the kernel decrypts what is read (kTLS)
      # @since 0.1.0
      def kernel_receives? = @kernel_receives

      # @return [String] how it is encrypted; nothing that is secret
      # @since 0.1.0
      def inspect
        alpn = " for #{alpn_protocol}" if alpn_protocol
        "#<#{self.class} #{version} #{cipher}#{alpn}#{" resumed" if session_reused?}>"
      end
    end
  end
end
