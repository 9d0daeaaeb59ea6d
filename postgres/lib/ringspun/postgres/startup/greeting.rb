# frozen_string_literal: true

module Ringspun
  module Postgres
    class Startup
      # What is said until the server is ready:
      # https://www.postgresql.org/docs/17/protocol-flow.html#PROTOCOL-FLOW-START-UP
      #
      # @api private
      class Greeting
        # How values are decoded does not depend on what the server's administrator likes.
        SETTINGS = { "client_encoding" => "UTF8", "DateStyle" => "ISO", "IntervalStyle" => "iso_8601" }.freeze

        # Nor on what a role or a database is set to. A pooler may not know these, and refuse the connection.
        EXACT = { "extra_float_digits" => "3", "array_nulls" => "on" }.freeze

        # Whoever answers may be anybody, and says no more than that.
        MESSAGES_MAX = 1_000
        private_constant :SETTINGS, :EXACT, :MESSAGES_MAX

        # Whether a pooler says that it does not know one of those.
        def self.exact?(message)
          message.include?("unsupported startup parameter") && EXACT.keys.any? { |name| message.include?(name) }
        end

        # @param transport [Transport]
        # @param settings [Hash{String => String}] of the server, beside those of the options
        # @param exact [Boolean] whether to ask for the settings that a pooler may refuse
        def initialize(options, transport, settings, exact: true)
          @exact = exact
          @options = options
          @wanted = settings
          @transport = transport
          @stream = transport.stream
          @messages = Messages.new(@stream)
          @authentication = Authentication.new(options, transport)
          @version = options.max_version
          @settings = {}
          @process = @key = nil
        end

        # May switch strands.
        #
        # @return [Session]
        def call
          send_startup
          MESSAGES_MAX.times do
            type, fields = @messages.next || raise(ConnectError, Failures::CLOSED)
            return session(fields) if type == "Z" && @authentication.done?

            @authentication.done? ? take(type, fields) : take_before(type, fields)
          end
          wrong("more than #{MESSAGES_MAX} messages")
        end

        private

        def send_startup
          parameters = { "user" => @options.user, "database" => @options.database, **SETTINGS, **(@exact ? EXACT : {}),
                         **@options.session_settings, **@wanted,
                         "application_name" => @options["application_name"] || @options["fallback_application_name"],
                         "options" => @options["options"] }.compact
          @stream.write(Messages.startup(@version, parameters.flatten.map(&:to_s)))
        end

        # Nothing else is for somebody whom the server does not know yet.
        def take_before(type, fields)
          case type
          when "R" then @authentication.take(*fields || [nil, nil])&.then { |answer| @stream.write(answer) }
          when "v" then negotiate(*fields || wrong("an offer of a version"))
          when "E" then refuse(*fields)
          else wrong("message #{type.inspect} before it knew who is there")
          end
        end

        def take(type, fields)
          case type
          when "S" then @settings.store(*setting(fields || wrong("a setting")))
          when "K" then @process, @key = (fields unless @key) || wrong("a key for cancelling")
          when "E" then refuse(*fields)
          when "N" then nil
          else wrong("message #{type.inspect} while the connection began")
          end
        end

        def setting(fields) = fields.map { |text| text.force_encoding(Encoding::UTF_8).scrub }

        # The server is older than what was asked for. We have asked for no options of the protocol, so it can refuse none.
        def negotiate(newest, unknown)
          wrong("a second offer of a version") if @negotiated

          @negotiated = true
          wrong("an offer of a version") unless unknown.zero? && newest.between?(0x30000, @version - 1)
          wrong("version 3.1, which there never was") if newest == 0x30001

          raise ConnectError, "the server's protocol is older than min_protocol_version" if newest < @options.min_version

          @version = newest
        end

        def refuse(body)
          wrong("an error") unless body.end_with?("\0")

          raise Postgres.error_of(body.force_encoding(Encoding::UTF_8).scrub)
        end

        def session(fields)
          status, = fields || wrong("a status")
          Session.new(stream: @stream, host: @transport.host, encrypted: @transport.encrypted?, settings: @settings.freeze,
                      process: @process, key: @key, version: @version, status:)
        end

        def wrong(what) = raise(ProtocolError, "what answers is no Postgres, or a broken one: it sent #{what}")
      end
      private_constant :Greeting
    end
  end
end
