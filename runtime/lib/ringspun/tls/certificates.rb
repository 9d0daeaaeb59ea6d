# frozen_string_literal: true

module Ringspun
  module TLS
    # Certificates and keys out of whatever a program has them in.
    #
    # @api private
    module Certificates
      PEM = "-----BEGIN "
      private_constant :PEM

      class << self
        # @return [Array<OpenSSL::X509::Certificate>]
        def all(what, name)
          case what
          when OpenSSL::X509::Certificate then [what]
          when Array then what.flat_map { |one| all(one, name) }
          when String then OpenSSL::X509::Certificate.load(text(what, name))
          else raise UsageError, "tls: #{name} is PEM, a path or an OpenSSL::X509::Certificate, got #{what.class}"
          end
        rescue OpenSSL::X509::CertificateError => error
          raise UsageError, "tls: #{name} holds no certificate that can be read (#{error.message})"
        end

        def key(what)
          case what
          when OpenSSL::PKey::PKey then what
          when String then OpenSSL::PKey.read(text(what, "key"), "")
          else raise UsageError, "tls: key is PEM, a path or an OpenSSL::PKey, got #{what.class}"
          end
        rescue OpenSSL::PKey::PKeyError => error
          raise UsageError, "tls: key holds no private key that can be read without a password (#{error.message}); " \
                            "pass one with a password as an object: OpenSSL::PKey.read(pem, password)"
        end

        # Whom to trust; nil: whom the system does.
        def store(what)
          return what if what.is_a?(OpenSSL::X509::Store)
          return OpenSSL::X509::Store.new.tap(&:set_default_paths) unless what

          OpenSSL::X509::Store.new.tap { |store| all(what, "ca").uniq(&:to_der).each { |one| store.add_cert(one) } }
        end

        private

        def text(string, name)
          return string if string.include?(PEM)

          File.read(string)
        rescue SystemCallError, ArgumentError
          raise UsageError, "tls: #{name} is neither PEM nor the path of a file that can be read"
        end
      end
    end
    private_constant :Certificates
  end
end
