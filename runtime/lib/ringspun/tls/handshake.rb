# frozen_string_literal: true

require "ipaddr"

module Ringspun
  module TLS
    # The options of a client, checked before it connects.
    #
    # @api private
    class Client
      attr_reader :context, :host

      def initialize(tls, host)
        options = tls.is_a?(Hash) ? tls : {}
        @host = options.fetch(:host, host)
        @context = context_of(tls, options)
        check_host
      end

      # Whether the name in the certificate is checked. Without that, anyone with a certificate of a trusted authority is
      # accepted, so it is left out only for `verify: :issuer`.
      def checks_name? = (@context.verify_mode & OpenSSL::SSL::VERIFY_PEER).positive? && !Context.any_name?(@context)

      # The name for SNI; nil for an address (RFC 6066, section 3).
      def server_name = (name if @host && !address?)

      # Names in certificates have no dot at their end.
      def name = @host.delete_suffix(".")

      private

      def context_of(tls, options)
        case tls
        when true, Hash then Context.kept_client(options.except(:host))
        when OpenSSL::SSL::SSLContext then tls
        else raise UsageError, "tls: true, a Hash or an OpenSSL::SSL::SSLContext, got #{tls.inspect}"
        end
      end

      def check_host
        return if @host.is_a?(String) && !@host.empty?
        return if @host.nil? && !checks_name?

        raise UsageError, "tls: say by host: whose certificate the server must show, got #{@host.inspect}"
      end

      def address?
        IPAddr.new(@host)
        true
      rescue IPAddr::Error
        false
      end
    end
    private_constant :Client

    # The handshake of a session, as the client or the server.
    #
    # @api private
    class Handshake
      EXPIRED = [OpenSSL::X509::V_ERR_CERT_HAS_EXPIRED, OpenSSL::X509::V_ERR_CERT_NOT_YET_VALID].freeze
      UNTRUSTED = [
        OpenSSL::X509::V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, OpenSSL::X509::V_ERR_SELF_SIGNED_CERT_IN_CHAIN,
        OpenSSL::X509::V_ERR_UNABLE_TO_GET_ISSUER_CERT, OpenSSL::X509::V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
        OpenSSL::X509::V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE
      ].freeze
      WRONG_HOST = [OpenSSL::X509::V_ERR_HOSTNAME_MISMATCH, OpenSSL::X509::V_ERR_IP_ADDRESS_MISMATCH].freeze
      private_constant :EXPIRED, :UNTRUSTED, :WRONG_HOST

      def initialize(machine, io, context)
        @machine = machine
        @descriptor = io.fileno # for an IO object the machine would look up the descriptor at each poll
        @socket = OpenSSL::SSL::SSLSocket.new(io, context)
      end

      # @return [OpenSSL::SSL::SSLSocket]
      def connect(client, port)
        @client = client
        name_host
        resume(port)
        shake(:connect_nonblock)
        check_certificate
        sessions&.keep(peer, @socket.session) if @socket.session_reused? && @socket.ssl_version == "TLSv1.2" # there is no new one
        @socket
      end

      # @return [OpenSSL::SSL::SSLSocket]
      def accept
        shake(:accept_nonblock)
        @socket
      end

      private

      # An address is not for SNI, which `hostname=` sets. The gem verifies it all the same by what that would keep.
      # https://github.com/ruby/openssl/blob/v3.3.0/ext/openssl/ossl_ssl.c (call_verify_certificate_identity)
      def name_host
        if @client.server_name
          @socket.hostname = @client.server_name
        elsif @client.host
          @socket.instance_variable_set(:@hostname, @client.name)
        end
      end

      def resume(port)
        return unless sessions && @client.host

        @socket.instance_variable_set(:@ringspun_peer, "#{@client.host}:#{port}")
        session = sessions.take(peer)
        @socket.session = session if session
      end

      def sessions = Sessions.of(@socket.context)
      def peer = @socket.instance_variable_get(:@ringspun_peer)

      def shake(step)
        loop do
          case @socket.__send__(step, exception: false)
          when :wait_readable then @machine.poll(@descriptor, :readable)
          when :wait_writable then @machine.poll(@descriptor, :writable)
          else return
          end
        end
      rescue OpenSSL::SSL::SSLError => error
        raise meaning(error)
      end

      def check_certificate
        return unless @client.checks_name? && @client.host
        return if OpenSSL::SSL.verify_certificate_identity(@socket.peer_cert, @client.name)

        raise wrong_host
      end

      def meaning(error)
        code = @socket.verify_result
        return certificate_error(code) if code != OpenSSL::X509::V_OK && error.message.include?("certificate verify failed")
        return HandshakeRefusedError.new(refused(error)) if error.message.include?("alert")

        HandshakeError.new(failed(error))
      end

      def certificate_error(code)
        case code
        when *EXPIRED then CertificateExpiredError.new(expired)
        when *UNTRUSTED then UntrustedCertificateError.new(untrusted)
        when *WRONG_HOST then wrong_host
        when OpenSSL::X509::V_ERR_CERT_REVOKED then CertificateError.new("#{whose} is revoked")
        else CertificateError.new("#{whose} cannot be verified: #{@socket.context.cert_store&.error_string || "error #{code}"}")
        end
      end

      def whose = @client ? "the certificate of #{@client.host}" : "the client's certificate"

      def expired
        "#{whose} has expired, or is not valid yet; check its dates and this computer's clock (now #{Time.now.utc})"
      end

      def untrusted
        "#{whose} is by nobody who is trusted here: it is self-signed, or its issuer is not known; " \
          "pass whom to trust as tls: {ca: \"ca.pem\"}"
      end

      def wrong_host
        WrongHostError.new("the server's certificate is not for #{@client.host}#{names}; connect by a name that it is for, " \
                           "or say which you expect as tls: {host: \"...\"}")
      end

      # The names in the certificate. OpenSSL has it only after the handshake.
      def names
        certificate = @socket.peer_cert or return
        names = certificate.extensions.find { |extension| extension.oid == "subjectAltName" }
        ", but for #{names&.value || certificate.subject}"
      end

      def refused(error) = "the other side has refused the TLS handshake: #{reason(error)}"

      def failed(error)
        case error.message
        when /wrong version number|http request|packet length too long|unknown protocol/
          "the other side does not speak TLS (#{reason(error)}); is this the right port, and is TLS meant to begin at once?"
        when /unexpected eof|returned=5 errno=0/ then "the other side has closed the connection in the TLS handshake"
        else "the TLS handshake has failed: #{reason(error)}"
        end
      end

      # OpenSSL's message, without the place in its code.
      def reason(error) = error.message[/state=[^:]*: (.*)/, 1] || error.message
    end
    private_constant :Handshake
  end
end
