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

        # Whoever answers may be anybody, and says no more than this: bytes of a message (as libpq), and messages.
        BODY_MAX = 30_000
        MESSAGES_MAX = 1_000
        KEY = 4..256
        SETTING = /\A([^\0]+)\0([^\0]*)\0\z/n
        private_constant :SETTINGS, :EXACT, :BODY_MAX, :MESSAGES_MAX, :KEY, :SETTING

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
            type, body = next_message
            return session(body) if type == "Z" && @authentication.done?

            @authentication.done? ? take(type, body) : take_before(type, body)
          end
          wrong("more than #{MESSAGES_MAX} messages")
        end

        private

        def send_startup
          parameters = { "user" => @options.user, "database" => @options.database, **SETTINGS, **(@exact ? EXACT : {}),
                         **@options.session_settings, **@wanted,
                         "application_name" => @options["application_name"] || @options["fallback_application_name"],
                         "options" => @options["options"] }.compact
          body = [@version].pack("N") << parameters.flatten.map { |text| "#{text}\0".b }.join << "\0"
          @stream.write([body.bytesize + 4].pack("N"), body)
        end

        def next_message
          header = @stream.peek(5)
          wrong("a message of #{header.unpack1("@1N")} bytes") if header&.bytesize == 5 && header.unpack1("@1N") > BODY_MAX
          @messages.next(nil) || raise(ConnectError, Failures::CLOSED)
        end

        # Nothing else is for somebody whom the server does not know yet.
        def take_before(type, body)
          case type
          when "R" then answer(@authentication.take(body))
          when "v" then negotiate(body)
          when "E" then refuse(body)
          else wrong("message #{type.inspect} before it knew who is there")
          end
        end

        def take(type, body)
          case type
          when "S" then @settings.store(*setting(body))
          when "K" then @process, @key = body.unpack("Na*").tap { |_, key| wrong("a key for cancelling") unless valid_key?(key) }
          when "E" then refuse(body)
          when "N" then nil
          else wrong("message #{type.inspect} while the connection began")
          end
        end

        def answer(reply)
          @stream.write("p", [reply.bytesize + 4].pack("N"), reply) if reply
        end

        def setting(body)
          found = SETTING.match(body) || wrong("a setting")
          found.captures.map { |text| text.force_encoding(Encoding::UTF_8).scrub }
        end

        def valid_key?(key) = @key.nil? && key && KEY.cover?(key.bytesize)

        # The server is older than what was asked for. We have asked for no options of the protocol, so it can refuse none.
        def negotiate(body)
          wrong("a second offer of a version") if @negotiated

          @negotiated = true
          newest, count = body.unpack("NN")
          wrong("an offer of a version") unless body.bytesize == 8 && count.zero? && newest.between?(0x30000, @version - 1)
          wrong("version 3.1, which there never was") if newest == 0x30001

          raise ConnectError, "the server's protocol is older than min_protocol_version" if newest < @options.min_version

          @version = newest
        end

        def refuse(body)
          wrong("an error") unless body.end_with?("\0")

          raise Postgres.error_of(body.force_encoding(Encoding::UTF_8).scrub)
        end

        def session(body)
          wrong("a status") unless %w[I T E].include?(body)

          Session.new(stream: @stream, host: @transport.host, encrypted: @transport.encrypted?, settings: @settings.freeze,
                      process: @process, key: @key, version: @version, status: body)
        end

        def wrong(what) = raise(ProtocolError, "what answers is no Postgres, or a broken one: it sent #{what}")
      end
      private_constant :Greeting
    end
  end
end
