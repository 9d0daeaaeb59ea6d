# frozen_string_literal: true

module Ringspun
  # TLS for streams, by Ruby's openssl, which is loaded at the first use. The option `tls:` of methods is
  #
  # - `true`: a client that trusts the system's certificate authorities;
  # - a Hash with the options of {client_context} or {server_context};
  # - an `OpenSSL::SSL::SSLContext`, which is used as it is. A client's context verifies nothing, unless its `set_params` was
  #   called or its `verify_mode` set. If it verifies, the name is checked too.
  #
  # @example
  #   Ringspun.connect_tcp("example.org", 443, tls: true) { |stream| stream.write("...") }
  #   Ringspun.listen_tcp("0.0.0.0", 443, tls: { cert: "server.pem", key: "server.key" }) { |stream| stream.read_line }
  module TLS
    # Seconds for a handshake without another limit: neither side must wait forever for the other.
    HANDSHAKE_SECONDS = 30

    class << self
      # Makes the context of a client. It keeps the sessions of the servers connected to last, and resumes them, so make it once.
      #
      # @param ca [String, OpenSSL::X509::Certificate, OpenSSL::X509::Store, Array, nil] trusted authorities: PEM, the path of a
      #   PEM file, a certificate, an Array of those, or a store; nil: those of the system
      # @param verify [Boolean, Symbol] false: the server's certificate is not verified; :issuer: it must be signed by one of
      #   `ca`, but may be for any host
      # @param cert [String, OpenSSL::X509::Certificate, Array, nil] its own certificate, and intermediate ones: PEM, path or
      #   objects
      # @param key [String, OpenSSL::PKey::PKey, nil] the private key of `cert`: PEM, path or object
      # @param alpn [Array<String>, nil] its protocols, the best first, such as `["h2", "http/1.1"]`
      # @param min_version [Symbol] :TLS1_2 or :TLS1_3
      # @return [OpenSSL::SSL::SSLContext]
      # @raise [UsageError]
      # @since 0.1.0
      def client_context(ca: nil, verify: true, cert: nil, key: nil, alpn: nil, min_version: :TLS1_2)
        load
        Context.client({ ca:, verify:, cert:, key:, alpn:, min_version: })
      end

      # Makes the context of a server.
      #
      # @param cert [String, OpenSSL::X509::Certificate, Array] its certificate, and intermediate ones: PEM, path or objects
      # @param key [String, OpenSSL::PKey::PKey] the private key of `cert`: PEM, path or object
      # @param ca [String, OpenSSL::X509::Certificate, OpenSSL::X509::Store, Array, nil] clients need a certificate signed by one
      #   of these; nil: they need none
      # @param verify [Boolean, nil] false: a client may also have none
      # @param alpn [Array<String>, nil] its protocols, the best first; a client that offers none of them is refused
      # @param min_version [Symbol] :TLS1_2 or :TLS1_3
      # @return [OpenSSL::SSL::SSLContext] it may still be changed, for example by `servername_cb=` for several names; its first
      #   connection freezes it
      # @raise [UsageError]
      # @since 0.1.0
      def server_context(cert:, key:, ca: nil, verify: nil, alpn: nil, min_version: :TLS1_2)
        load
        Context.server({ ca:, verify:, cert:, key:, alpn:, min_version: })
      end

      private

      # In Fiber.blocking, without a switch: while a strand loads a file, `require` of it returns in other strands of the thread.
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

    # The result of a handshake. See {Stream#tls}.
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

      # @return [String, nil] the protocol agreed on (ALPN); nil when one side has named none
      # @since 0.1.0
      def alpn_protocol = @socket.alpn_protocol

      # @return [String, nil] the server name that the client has sent (SNI)
      # @since 0.1.0
      attr_reader :server_name

      # @return [OpenSSL::X509::Certificate, nil] the other side's
      # @since 0.1.0
      def peer_certificate = @socket.peer_cert

      # @return [Boolean] whether a session of an earlier connection was resumed
      # @since 0.1.0
      def session_reused? = @socket.session_reused?

      # @return [Boolean] whether the kernel encrypts what is written (kTLS)
      # @since 0.1.0
      def kernel_sends? = @kernel_sends

      # @return [Boolean] whether the kernel decrypts what is read (kTLS)
      # @since 0.1.0
      def kernel_receives? = @kernel_receives

      # @return [String] version, cipher and protocol; no secrets
      # @since 0.1.0
      def inspect
        alpn = " for #{alpn_protocol}" if alpn_protocol
        "#<#{self.class} #{version} #{cipher}#{alpn}#{" resumed" if session_reused?}>"
      end
    end
  end
end
