# frozen_string_literal: true

module Ringspun
  module Postgres
    class Startup
      # Whether a server is one that target_session_attrs wants.
      # https://www.postgresql.org/docs/17/libpq-connect.html#LIBPQ-CONNECT-TARGET-SESSION-ATTRS
      #
      # @api private
      class ServerRole
        # Servers say so from 14 on; those before, and poolers, are asked.
        QUESTION = "SELECT pg_catalog.pg_is_in_recovery(), pg_catalog.current_setting('transaction_read_only')"
        private_constant :QUESTION

        # @return [String]
        attr_reader :wanted

        def initialize(wanted)
          @wanted = wanted
        end

        # @return [Array<#call>] one after the other, each for all hosts
        def passes
          return [method(:any)] if @wanted == "any"

          @wanted == "prefer-standby" ? [method(:standby), method(:any)] : [method(@wanted.tr("-", "_"))]
        end

        private

        def any(_session) = true
        def standby(session) = standby?(session)
        def primary(session) = !standby?(session)
        def read_only(session) = read_only?(session)
        def read_write(session) = !read_only?(session)

        def standby?(session) = fact(session, "in_hot_standby", 0)
        def read_only?(session) = standby?(session) || fact(session, "default_transaction_read_only", 1)

        def fact(session, setting, at)
          told = session.settings[setting]
          told ? told == "on" : %w[t on].include?(ask(session)[at])
        end

        # @return [Array<String>] the values of the only row
        def ask(session)
          session.stream.write(Messages.query(QUESTION))
          messages = Messages.new(session.stream)
          row = nil
          loop do
            type, fields = messages.next || raise(ConnectError, Failures::CLOSED)
            case type
            when "D" then row = fields || raise(ProtocolError, "the server was asked for its role, and sent what is no row")
            when "E" then raise Postgres.error_of(fields.first.force_encoding(Encoding::UTF_8).scrub)
            when "Z" then return row || []
            end
          end
        end
      end
      private_constant :ServerRole
    end
  end
end
