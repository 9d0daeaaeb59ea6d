# frozen_string_literal: true

require "openssl"

# Certificates, made anew by every test process, and contexts that trust them. Where nothing else is said they are for localhost,
# and of their own authority.
module Certificate
  DAY = 86_400

  class << self
    def server_context = OpenSSL::SSL::SSLContext.new.tap { |context| context.add_certificate(certificate, key) }
    def client_context = OpenSSL::SSL::SSLContext.new.tap { |context| context.set_params(cert_store: store) }

    def store = OpenSSL::X509::Store.new.tap { |store| store.add_cert(certificate) }

    def certificate = @certificate ||= issue
    def key = @key ||= OpenSSL::PKey::EC.generate("prime256v1")

    # One for those names, by its own authority or that issuer, for so many days around now. All have the same key.
    def issue(names: "DNS:localhost,IP:127.0.0.1", common_name: "localhost", issuer: nil, days: -1..1)
      certificate = OpenSSL::X509::Certificate.new
      certificate.version = 2
      certificate.serial = @serial = @serial.to_i + 1
      certificate.subject = OpenSSL::X509::Name.parse("/CN=#{common_name}")
      certificate.issuer = issuer ? issuer.subject : certificate.subject
      certificate.not_before = Time.now + (days.begin * DAY)
      certificate.not_after = Time.now + (days.end * DAY)
      certificate.public_key = key
      extend_and_sign(certificate, issuer, names)
    end

    # What the authority says of those that it takes back.
    def revoke(*certificates)
      list = OpenSSL::X509::CRL.new
      list.version = 1
      list.issuer = authority.subject
      list.last_update = Time.now - DAY
      list.next_update = Time.now + DAY
      certificates.each { |certificate| list.add_revoked(revoked(certificate)) }
      list.sign(key, "SHA256")
    end

    def authority = @authority ||= issue(names: nil, common_name: "authority")

    private

    def revoked(certificate)
      OpenSSL::X509::Revoked.new.tap do |revoked|
        revoked.serial = certificate.serial
        revoked.time = Time.now - DAY
      end
    end

    def extend_and_sign(certificate, issuer, names)
      factory = OpenSSL::X509::ExtensionFactory.new(issuer || certificate, certificate)
      certificate.add_extension(factory.create_extension("basicConstraints", issuer ? "CA:FALSE" : "CA:TRUE", true))
      certificate.add_extension(factory.create_extension("subjectAltName", names, false)) if names
      certificate.sign(key, "SHA256")
    end
  end
end
