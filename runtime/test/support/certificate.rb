# frozen_string_literal: true

require "openssl"

# A certificate for localhost, made anew by every test process, and contexts that trust it.
module Certificate
  DAY = 86_400

  class << self
    def server_context
      OpenSSL::SSL::SSLContext.new.tap { |context| context.add_certificate(certificate, key) }
    end

    def client_context
      OpenSSL::SSL::SSLContext.new.tap { |context| context.set_params(cert_store: store) }
    end

    def store = OpenSSL::X509::Store.new.tap { |store| store.add_cert(certificate) }

    def certificate = @certificate ||= sign(OpenSSL::X509::Certificate.new)
    def key = @key ||= OpenSSL::PKey::EC.generate("prime256v1")

    private

    def sign(certificate)
      certificate.version = 2
      certificate.serial = 1
      certificate.subject = certificate.issuer = OpenSSL::X509::Name.parse("/CN=localhost")
      certificate.not_before = Time.now - DAY
      certificate.not_after = Time.now + DAY
      certificate.public_key = key
      extensions = OpenSSL::X509::ExtensionFactory.new(certificate, certificate)
      certificate.add_extension(extensions.create_extension("basicConstraints", "CA:TRUE", true))
      certificate.add_extension(extensions.create_extension("subjectAltName", "DNS:localhost,IP:127.0.0.1", false))
      certificate.sign(key, "SHA256")
    end
  end
end
