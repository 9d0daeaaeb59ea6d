# frozen_string_literal: true

module Ringspun
  # Errors that came after the one that a scope raised.
  module Suppressed
    # @return [Array<Exception>] in the order in which they came
    # @since 0.1.0
    attr_reader :suppressed

    # @return [String] the message and backtrace, followed by those of the suppressed errors
    # @since 0.1.0
    def full_message(**options)
      [super, *suppressed.map { |error| "Suppressed: #{error.full_message(**options)}" }].join("\n")
    end
  end
  private_constant :Suppressed

  # What TLS is about: the handshake, the session, its end.
  class TLSError < Error; end

  # There is no session, and the connection is closed.
  class HandshakeError < TLSError; end

  # Because the other side does not want to: the message says what it has said.
  class HandshakeRefusedError < HandshakeError; end

  # Because the other side's certificate is not good.
  class CertificateError < HandshakeError; end

  # It is another's than that of the host that was to be connected to.
  class WrongHostError < CertificateError; end

  # It is valid no more, or not yet.
  class CertificateExpiredError < CertificateError; end

  # It is by nobody who is trusted.
  class UntrustedCertificateError < CertificateError; end

  # Something is wrong in the middle of a session: bytes that were changed on their way, or the other side gives it up.
  class TLSSessionError < TLSError; end

  # The connection has ended, but the other side has not said so: perhaps somebody has cut it, and what came last is missing.
  class TruncatedStreamError < TLSError; end

  # Bytes came in clear text before a handshake that is to begin in the middle of a stream: anybody may have put them there.
  class EarlyBytesError < TLSError; end

  class << self
    # Errors that came after this one in the scope that raised it.
    #
    # @param error [Exception]
    # @return [Array<Exception>]
    # @since 0.1.0
    def suppressed(error) = Suppressed === error ? error.suppressed : []

    private

    def suppress(error, others)
      return if error.frozen?

      all = suppressed(error) | others
      error.extend(Suppressed)
      error.instance_variable_set(:@suppressed, all)
    end
  end
end
