# frozen_string_literal: true

module Ringspun
  module Postgres
    class Options
      # Looks at values one by one, and at those that do not go with each other.
      #
      # @api private
      class Checks
        FLAGS = %w[0 1 true false].freeze
        VERSIONS = %w[3.0 3.2 latest].freeze
        TLS_VERSIONS = %w[TLSv1.2 TLSv1.3].freeze
        ONE_OF = {
          "sslmode" => %w[disable allow prefer require verify-ca verify-full], "sslnegotiation" => %w[postgres direct],
          "target_session_attrs" => %w[any read-write read-only primary standby prefer-standby],
          "channel_binding" => %w[disable prefer require], "load_balance_hosts" => %w[disable random],
          "min_protocol_version" => VERSIONS, "max_protocol_version" => VERSIONS, "sslcompression" => %w[0 1],
          "ssl_min_protocol_version" => TLS_VERSIONS, "ssl_max_protocol_version" => TLS_VERSIONS,
          "allow_cleartext" => FLAGS, "keepalives" => FLAGS
        }.freeze
        COUNTS = %w[keepalives_idle keepalives_interval keepalives_count tcp_user_timeout].freeze
        METHODS = %w[password md5 gss sspi scram-sha-256 oauth none].freeze
        private_constant :FLAGS, :VERSIONS, :TLS_VERSIONS, :ONE_OF, :COUNTS, :METHODS

        def initialize(options)
          @options = options
        end

        # @raise [UsageError]
        def call
          Keywords::ALL.each_key { |name| check_text(name) }
          ONE_OF.each { |name, values| expect(name, "one of #{values.join(", ")}") { |text| values.include?(text) } }
          COUNTS.each { |name| expect(name, "a number from 0 to 2147483647") { |text| count?(text) } }
          expect("connect_timeout", "seconds") { |text| Float(text, exception: false)&.finite? && !text.include?("_") }
          expect("client_encoding", "UTF8, which is all there is") { |text| text.match?(/\A(?:utf-?8|unicode|auto)\z/i) }
          expect("gssencmode", "disable or prefer, for GSS is not supported") { |text| %w[disable prefer].include?(text) }
          expect("sslcertmode", "allow or disable; whether the server asks for a certificate is not known") do |text|
            %w[allow disable].include?(text)
          end
          expect("sslsni", "1, for without it there is no name to verify") { |text| text == "1" }
          check_methods
          check_versions
        end

        private

        # A NUL ends a text of the protocol, and what comes after it would be read as the next option.
        def check_text(name)
          expect(name, "text in UTF-8, without a NUL") do |text|
            text.dup.force_encoding(Encoding::UTF_8).then { |copy| copy.valid_encoding? && !copy.include?("\0") }
          end
        end

        def check_methods
          expect("require_auth", "some of #{METHODS.join(", ")}, or with a ! before each") do |text|
            names = text.split(",", -1)
            names.all? { |name| METHODS.include?(name.delete_prefix("!")) } && [0, names.size].include?(names.grep(/\A!/).size)
          end
        end

        def check_versions
          return if @options.min_version <= @options.max_version

          raise UsageError, "min_protocol_version: expected no more than max_protocol_version, which is " \
                            "#{@options["max_protocol_version"] || "3.0 unless told"}, got #{@options["min_protocol_version"]}"
        end

        def count?(text) = text.match?(/\A\d+\z/) && Integer(text, 10) <= 0x7fffffff

        def expect(name, what)
          text = @options[name]
          return if text.nil? || yield(text)

          raise UsageError, "#{name}: expected #{what}, got #{Keywords.shown(name, text)}"
        end
      end
      private_constant :Checks
    end
  end
end
