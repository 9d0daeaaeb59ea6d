# frozen_string_literal: true

module Ringspun
  module TLS
    # Makes contexts of options. Those of clients are cached by their options, because reading the system's store takes
    # milliseconds.
    #
    # @api private
    module Context
      COMMON = %i[ca verify cert key alpn min_version].freeze
      VERSIONS = { TLS1_2: OpenSSL::SSL::TLS1_2_VERSION, TLS1_3: OpenSSL::SSL::TLS1_3_VERSION }.freeze
      # Contexts of clients, by their options: programs have a few, unless they make options for each host.
      KEPT = 32
      ANY_NAME = :issuer
      private_constant :COMMON, :VERSIONS, :KEPT, :ANY_NAME

      @clients = {}

      class << self
        # @return [Boolean] whether it was made to verify only the issuer of a certificate. `verify_hostname` does not show that:
        #   it is false in every context where it was not set.
        def any_name?(context) = context.instance_variable_get(:@ringspun_any_name)

        def client(options)
          check(options)
          check_verify(options[:verify])
          context = make(options)
          context.verify_mode = verify?(options) ? OpenSSL::SSL::VERIFY_PEER : OpenSSL::SSL::VERIFY_NONE
          context.verify_hostname = verify?(options) && options[:verify] != ANY_NAME
          context.instance_variable_set(:@ringspun_any_name, options[:verify] == ANY_NAME)
          context.cert_store = Certificates.store(options[:ca]) if verify?(options)
          context.alpn_protocols = protocols(options) if options[:alpn]
          Sessions.attach(context)
          context
        end

        def kept_client(options)
          context = @clients.delete(options) || client(options)
          @clients[options.dup.freeze] = context
          @clients.shift if @clients.size > KEPT
          context
        end

        def server(options)
          check(options)
          raise UsageError, "tls: a server needs cert: and key:" unless options[:cert]

          context = make(options)
          ask_clients(context, options)
          select_protocol(context, protocols(options)) if options[:alpn]
          context
        end

        private

        def verify?(options) = options[:verify] != false

        def check(options)
          unknown = options.keys - COMMON
          return if unknown.empty?

          raise UsageError, "tls: unknown option #{list(unknown)}; there are #{list(COMMON)}"
        end

        def check_verify(wish)
          return if [true, false, nil, ANY_NAME].include?(wish)

          raise UsageError, "tls: verify is true, false or #{ANY_NAME.inspect}, got #{wish.inspect}"
        end

        def list(names) = names.map(&:inspect).join(", ")

        def make(options)
          context = OpenSSL::SSL::SSLContext.new
          context.min_version = version(options[:min_version] || :TLS1_2)
          context.options |= OpenSSL::SSL::OP_NO_COMPRESSION
          context.options |= OpenSSL::SSL::OP_ENABLE_KTLS if defined?(OpenSSL::SSL::OP_ENABLE_KTLS)
          identify(context, options[:cert], options[:key]) if options[:cert] || options[:key]
          context
        end

        def version(name)
          VERSIONS.fetch(name) do
            raise UsageError, "tls: min_version is one of #{list(VERSIONS.keys)}, got #{name.inspect}"
          end
        end

        def identify(context, cert, key)
          raise UsageError, "tls: cert: needs key:, and key: needs cert:" unless cert && key

          own, *between = Certificates.all(cert, "cert")
          raise UsageError, "tls: cert holds no certificate" unless own

          own_key = Certificates.key(key)
          unless own.check_private_key(own_key)
            raise UsageError, "tls: the #{Certificates.label(key, "key")} is not that of the certificate #{own.subject} in " \
                              "#{Certificates.label(cert, "cert")}"
          end

          context.add_certificate(own, own_key, between)
        end

        def ask_clients(context, options)
          return context.verify_mode = OpenSSL::SSL::VERIFY_NONE unless options[:ca] || options[:verify]
          raise UsageError, "tls: to verify clients, say by ca: whose certificates they may show" unless options[:ca]

          context.verify_mode = OpenSSL::SSL::VERIFY_PEER
          context.verify_mode |= OpenSSL::SSL::VERIFY_FAIL_IF_NO_PEER_CERT if verify?(options)
          context.cert_store = Certificates.store(options[:ca])
          context.client_ca = Certificates.all(options[:ca], "ca") unless options[:ca].is_a?(OpenSSL::X509::Store)
          context.session_id_context = "ringspun" # or sessions of verified clients fail: SSL_CTX_set_session_id_context(3)
        end

        def protocols(options)
          names = options[:alpn]
          return names if names.is_a?(Array) && names.all? { |name| name.is_a?(String) && name.bytesize.between?(1, 255) }

          raise UsageError, "tls: alpn is an Array of the protocols' names, as [\"h2\", \"http/1.1\"], got #{names.inspect}"
        end

        def select_protocol(context, ours)
          context.alpn_select_cb = lambda do |theirs|
            ours.find { |name| theirs.include?(name) } ||
              raise(HandshakeError, "the client speaks #{theirs.join(", ")} (ALPN), and the server only #{ours.join(", ")}")
          end
        end
      end
    end
    private_constant :Context
  end
end
