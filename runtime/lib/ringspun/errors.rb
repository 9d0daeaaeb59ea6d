# frozen_string_literal: true

module Ringspun
  # Extends an error that a scope has raised by the errors that came after it.
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

  # An error of TLS: of the handshake, the session or its end.
  class TLSError < Error; end

  # The handshake has failed. There is no session, and the connection is closed.
  class HandshakeError < TLSError; end

  # The other side has refused the handshake, by the alert in the message.
  class HandshakeRefusedError < HandshakeError; end

  # The other side's certificate is not valid.
  class CertificateError < HandshakeError; end

  # The certificate is for another host than the one connected to.
  class WrongHostError < CertificateError; end

  # The certificate has expired, or is not valid yet.
  class CertificateExpiredError < CertificateError; end

  # The certificate is not signed by a trusted authority.
  class UntrustedCertificateError < CertificateError; end

  # A session has failed: bytes were changed on their way, or the other side has ended it by an alert.
  class TLSSessionError < TLSError; end

  # The connection has ended without close_notify: an attacker may have cut it, and the last bytes may be missing.
  class TruncatedStreamError < TLSError; end

  # Bytes came in clear text before a handshake in the middle of a stream. An attacker may have sent them.
  class EarlyBytesError < TLSError; end

  # Raised at the end of a cluster whose workers had to be killed, failed while they ended, or never became ready.
  class ClusterError < Error
  end

  class << self
    # The errors that came after this one, in the scope that has raised it.
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
