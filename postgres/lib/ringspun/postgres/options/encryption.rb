# frozen_string_literal: true

require "openssl"

module Ringspun
  module Postgres
    class Options
      # Whether a connection is encrypted, and whom it trusts: https://www.postgresql.org/docs/17/libpq-ssl.html
      #
      # @api private
      class Encryption
        ALPN = "postgresql"
        STRONG = %w[require verify-ca verify-full].freeze
        VERSIONS = { "TLSv1.2" => :TLS1_2, "TLSv1.3" => :TLS1_3 }.freeze
        private_constant :ALPN, :STRONG, :VERSIONS

        # @return [String] one of libpq's sslmode
        attr_reader :mode

        def initialize(options, files)
          @options = options
          @files = files
          # Whom the whole world's authorities vouch for is not yet the one that is meant.
          @mode = options["sslmode"] || (system? ? "verify-full" : "prefer")
          check
        end

        # @return [Array<Boolean>] what is tried, one after the other: with TLS, without
        def attempts(host)
          return [false] if host.unix? # as libpq has it, whatever the mode

          case @mode
          when "disable" then [false]
          when "allow" then [false, true]
          when "prefer" then [true, false]
          else [true]
          end
        end

        # @return [Boolean] a connection without TLS will not do
        def required? = STRONG.include?(@mode)

        # @return [Boolean] TLS begins with the first byte
        def direct? = @options["sslnegotiation"] == "direct"

        # Older servers name nothing. Where TLS begins at once, one that does not may be of another protocol altogether:
        # https://alpaca-attack.com
        #
        # @param protocol [String, nil] that the server has chosen in the handshake
        def speaks?(protocol) = protocol == ALPN || (protocol.nil? && !direct?)

        # Made anew for each connection, so that a certificate that somebody has renewed is the one which is shown.
        #
        # @return [OpenSSL::SSL::SSLContext]
        # @raise [UsageError] a file is not as it must be
        def context
          limits = { alpn: [ALPN], min_version: VERSIONS.fetch(@options["ssl_min_protocol_version"] || "TLSv1.2") }
          context = TLS.client_context(**trust, **identity, **limits)
          context.max_version = OpenSSL::SSL::TLS1_2_VERSION if @options["ssl_max_protocol_version"] == "TLSv1.2"
          context
        end

        private

        def check
          if direct? && !required?
            fail_with("sslnegotiation: direct goes with sslmode require, verify-ca or verify-full, got #{@mode}")
          end
          if system? && @mode != "verify-full"
            fail_with("sslrootcert: system goes with sslmode verify-full, got #{@mode}")
          end
          if @options["ssl_min_protocol_version"] == "TLSv1.3" && @options["ssl_max_protocol_version"] == "TLSv1.2"
            fail_with("ssl_max_protocol_version: TLSv1.2 is less than ssl_min_protocol_version")
          end
          root if @mode.start_with?("verify") && !system?
          check_revocation
        end

        def check_revocation
          given = %w[sslcrl sslcrldir].find { |name| @options[name] }
          return if given.nil? || @mode == "disable"

          fail_with("#{given}: goes with sslrootcert, for without it no certificate is looked at") unless system? || root
          folder = @options["sslcrldir"]
          fail_with("sslcrldir: #{folder} is no folder") if folder && !File.directory?(folder)
        end

        def system? = @options["sslrootcert"] == "system"

        # Where there is a file of authorities it counts in every mode that ends in TLS, as for libpq.
        def trust
          return { ca: revoking(OpenSSL::X509::Store.new.tap(&:set_default_paths)) } if system?
          return { verify: false } unless (file = root)

          store = OpenSSL::X509::Store.new
          read("sslrootcert", file) { |text| OpenSSL::X509::Certificate.load(text) }.uniq(&:to_der).each { |one| store.add_cert(one) }
          { ca: revoking(store), verify: @mode == "verify-full" || :issuer }
        end

        # As for libpq, each authority up to the root must have said which certificates it has revoked, once somebody asks.
        def revoking(store)
          file = own("sslcrl", "root.crl")
          folder = @options["sslcrldir"]
          read("sslcrl", file) { store.add_file(file) } if file
          folder && store.add_path(folder)
          store.flags = OpenSSL::X509::V_FLAG_CRL_CHECK | OpenSSL::X509::V_FLAG_CRL_CHECK_ALL if file || folder
          store
        end

        def root
          file = @options["sslrootcert"] || @files.in_home(".postgresql/root.crt")
          return file if file && File.exist?(file)
          return unless @mode.start_with?("verify")

          fail_with("sslrootcert: #{file || "no file"} is not there, and sslmode=#{@mode} wants to know whom to trust; name a " \
                    "file of certificates, or system for whom the system trusts")
        end

        def identity
          file = own("sslcert", "postgresql.crt") if @options["sslcertmode"] != "disable"
          return {} unless file

          key = own("sslkey", "postgresql.key") or fail_with("sslkey: there is none for the certificate #{file}")
          check_permissions(key)
          { cert: read("sslcert", file) { |text| OpenSSL::X509::Certificate.load(text) },
            key: read("sslkey", key) { |text| OpenSSL::PKey.read(text, @options["sslpassword"] || "") } }
        end

        def own(name, default)
          file = @options[name] || @files.in_home(".postgresql/#{default}")
          file if @options[name] || (file && File.exist?(file))
        end

        # As libpq: a key is its owner's, and where that is root a group's as well.
        def check_permissions(file)
          found = File.stat(file)
          return if found.mode.nobits?(found.uid.zero? ? 0o037 : 0o077)

          fail_with("sslkey: others may read #{file}; chmod 0600 it")
        rescue SystemCallError
          nil # whoever reads it says so
        end

        def read(name, file)
          yield File.binread(file)
        rescue SystemCallError, OpenSSL::OpenSSLError => error
          fail_with("#{name}: #{file} cannot be read (#{error.message[/\A[^@\n]*/].strip})")
        end

        def fail_with(message) = raise(UsageError, message)
      end
      private_constant :Encryption
    end
  end
end
