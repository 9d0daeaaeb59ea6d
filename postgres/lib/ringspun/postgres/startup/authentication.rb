# frozen_string_literal: true

require "openssl"
require_relative "../scram"

module Ringspun
  module Postgres
    class Startup
      # Shows the server who we are, and with SCRAM makes it show that it knows the password as well. A server asks once: one that
      # asks for something else after that would like to have it in a weaker form.
      # https://www.postgresql.org/docs/17/auth-methods.html
      #
      # @api private
      class Authentication
        # AuthenticationOk, AuthenticationSASLContinue and AuthenticationSASLFinal:
        # https://www.postgresql.org/docs/17/protocol-message-formats.html
        OK = 0
        SASL_CONTINUE = 11
        SASL_FINAL = 12
        # By what the server calls them, and by their names in require_auth.
        REQUESTS = { 2 => "krb5", 3 => "password", 5 => "md5", 7 => "gss", 9 => "sspi", 10 => "scram-sha-256" }.freeze
        private_constant :OK, :SASL_CONTINUE, :SASL_FINAL, :REQUESTS

        # @param options [Options]
        # @param transport [Transport]
        def initialize(options, transport)
          @options = options
          @transport = transport
          @binding = options["channel_binding"] || "prefer"
          @step = :begun
        end

        # Without the password.
        def inspect = "#<#{self.class} #{@step}>"

        # @return [Boolean] the server knows who we are
        def done? = @step == :done

        # @param request [Integer, nil] of an Authentication message; nil: it is none
        # @param rest [String, nil] what else is in it
        # @return [String, nil] the message that is to be answered
        # @raise [ConnectError] that will not be done
        # @raise [ProtocolError]
        def take(request, rest)
          case request
          when OK then finish(rest)
          when *REQUESTS.keys then begin_with(REQUESTS[request], rest)
          when SASL_CONTINUE then step(:first, :final) { Messages.sasl_response(@scram.final(rest)) }
          when SASL_FINAL then step(:final, :verified) { @scram.verify(rest) }
          else refuse("asks for a way to authenticate that is not known (#{request.inspect})")
          end
        end

        private

        def begin_with(name, rest)
          wrong("asks again who is there") unless @step == :begun

          permit(name)
          @step = :asked
          case name
          when "password" then Messages.password(cleartext)
          when "md5" then Messages.password(md5(rest))
          when "scram-sha-256" then begin_scram(rest)
          else refuse("asks for #{name}, which is not supported; there are password, md5, SCRAM-SHA-256 and certificates")
          end
        end

        def permit(name)
          unless @options.allow_auth?(name)
            asks = name == "none" ? "does not ask who is there" : "asks for #{name}"
            refuse("#{asks}, and require_auth wants #{@options["require_auth"]}")
          end
          return unless @binding == "require" && name != "scram-sha-256"

          refuse("does not ask for SCRAM-SHA-256-PLUS, and channel_binding=require wants it")
        end

        def step(from, to)
          wrong("answers SCRAM out of turn") unless @step == from

          @step = to
          yield
        end

        def finish(rest)
          wrong("says more than it may") unless rest.empty?

          permit("none") if @step == :begun
          refuse("ends SCRAM before it has proved that it knows the password") if %i[first final].include?(@step)
          @step = :done
          nil
        end

        # --- ways ---

        def begin_scram(rest)
          wrong("names no mechanism") unless rest.end_with?("\0\0")

          names = rest.split("\0")
          step(:asked, :first) do
            check_binding(names)
            @scram = Scram.new(password, names, bound:)
          end
          Messages.sasl_initial(@scram.mechanism, @scram.first)
        end

        # Whoever offers to bind to a TLS session that does not exist is between us and somebody who has one.
        def check_binding(names)
          offered = names.include?(Scram::PLUS)
          wrong("offers #{Scram::PLUS} without TLS") if offered && !@transport.encrypted?
          return unless @binding == "require" && !(offered && bound)

          refuse("cannot bind SCRAM to the TLS session, and channel_binding=require wants it")
        end

        def bound
          return if @binding == "disable" || !@transport.encrypted?

          Scram.binding_of(@transport.stream.tls.peer_certificate)
        end

        def cleartext
          return password if @transport.private? || @options.allow_cleartext?

          refuse("wants the password in clear text over a connection that all can read; set sslmode=require or allow_cleartext")
        end

        # https://www.postgresql.org/docs/17/protocol-message-formats.html: AuthenticationMD5Password
        def md5(salt)
          wrong("sends a salt of #{salt.bytesize} bytes") unless salt.bytesize == 4

          "md5#{digest(digest(password.b + @options.user.b) + salt)}"
        end

        def digest(text) = OpenSSL::Digest.hexdigest("MD5", text)

        def password
          @password ||= @options.password(@transport.host) ||
                        refuse("wants a password; give one as password, in PGPASSWORD or in ~/.pgpass")
        end

        def refuse(what) = raise(ConnectError, "the server #{what}")
        def wrong(what) = raise(ProtocolError, "the server #{what}")
      end
      private_constant :Authentication
    end
  end
end
