# frozen_string_literal: true

require "socket"
require_relative "startup/authentication"
require_relative "startup/failures"
require_relative "startup/greeting"
require_relative "startup/keepalive"
require_relative "startup/server_role"
require_relative "startup/session"
require_relative "startup/transport"

module Ringspun
  module Postgres
    # The beginning of a connection, up to where it takes statements: which of several hosts it is, TLS, who we are, and the
    # server's settings.
    #
    # @api private
    class Startup
      # May switch strands.
      #
      # @param options [Options]
      # @param settings [Hash{String => String}] of the server, beside those of the options
      # @return [Session]
      # @raise [ConnectError] no host is there, or what is there refuses; says why of each
      # @raise [ServerError] the server refuses, as by {InvalidPassword}
      # @raise [ProtocolError] what answers is no Postgres, or a broken one
      # @raise [TimeoutError] the only host has not answered within `connect_timeout`
      # @raise [UsageError] a file that the options name cannot be read
      def self.connect(options, settings = {}) = new(options, settings).connect

      def initialize(options, settings)
        @options = options
        @settings = settings
        @role = ServerRole.new(options["target_session_attrs"] || "any")
        @failures = []
      end

      def connect
        @role.passes.each do |role|
          hosts.each { |host| try(host, role)&.then { |session| return session } }
        end
        raise_failures
      end

      private

      def hosts = @options["load_balance_hosts"] == "random" ? @options.hosts.shuffle : @options.hosts

      # Another host may do better. One that has said whom it does not let in has spoken for all.
      def try(host, role)
        Failures.within(@options.connect_timeout, host) { admit(host, role) }
      rescue ConnectError, TimeoutError, CannotConnectNow => error
        @failures << error
        nil
      end

      def admit(host, role)
        session = begin_on(host)
        raise ConnectError, "the server is not #{@role.wanted}, as target_session_attrs has it" unless role.call(session)

        admitted = session
      ensure
        Transport.give_up(session.stream) if session && !admitted
      end

      # With TLS and without, as sslmode has it.
      def begin_on(host)
        attempts = @options.encryption.attempts(host)
        begin
          begin_with(host, attempts.shift)
        rescue HandshakeError, InvalidAuthorization => error
          raise if attempts.empty? || error.is_a?(InvalidPassword)

          retry
        end
      end

      # A pooler that does not know a setting refuses the connection: https://www.pgbouncer.org/config.html#ignore_startup_parameters
      def begin_with(host, encrypted)
        exact = @options.exact_settings?(host)
        greet(host, encrypted, exact)
      rescue ServerError => error
        raise unless exact && Greeting.exact?(error.message)

        @options.leave_exact_settings(host)
        retry
      end

      def greet(host, encrypted, exact)
        transport = Transport.open(@options, host, encrypted:, required: @options.encryption.required?)
        session = Greeting.new(@options, transport, @settings, exact:).call
      ensure
        Transport.give_up(transport.stream) if transport && !session
      end

      def raise_failures
        raise @failures.first if @failures.one?

        raise ConnectError, @failures.map(&:message).uniq.join("; ")
      end
    end
    private_constant :Startup
  end
end
