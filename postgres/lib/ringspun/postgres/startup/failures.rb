# frozen_string_literal: true

module Ringspun
  module Postgres
    class Startup
      # What goes wrong below, said in words of this gem, with the place.
      #
      # @api private
      module Failures
        CLOSED = "the server has closed the connection while it began"

        class << self
          # May switch strands.
          #
          # @param seconds [Float, nil] for all of the block
          # @param place [Options::Host]
          # @raise [ConnectError, ProtocolError, TimeoutError]
          def within(seconds, place, &)
            naming(place) { seconds ? Machine.current.timeout(seconds, &) : yield }
          rescue TimeoutError
            raise TimeoutError, "#{place}: no connection within #{seconds} s"
          end

          private

          def naming(place)
            yield
          rescue EarlyBytesError => error
            # https://www.postgresql.org/support/security/CVE-2021-23222/
            raise ProtocolError, "#{place}: the server sent bytes before the TLS handshake", cause: error
          rescue TruncatedStreamError, Errno::ECONNRESET, Errno::EPIPE => error
            raise ConnectError, "#{place}: #{CLOSED}", cause: error
          rescue TLSError => error
            raise ConnectError, "#{place}: #{of_tls(error)}", cause: error
          rescue ConnectError, ProtocolError => error
            raise error.exception("#{place}: #{error.message}"), cause: error.cause
          rescue SystemCallError, SocketError => error
            raise ConnectError, "#{place}: #{error.message.sub(/ \(connect_(tcp|unix) to .*\)\z/, "")}", cause: error
          end

          # The advice of the runtime is about options of its own.
          def of_tls(error)
            case error
            when UntrustedCertificateError then "#{first_part(error)}; say by sslrootcert whom to trust"
            when WrongHostError then "#{first_part(error)}; connect by a name that it is for, and give its address as hostaddr"
            else error.message
            end
          end

          def first_part(error) = error.message[/\A[^;]*/]
        end
      end
    end
  end
end
