# frozen_string_literal: true

module Ringspun
  module TLS
    # Reads certificates and keys: PEM, files or objects.
    #
    # @api private
    module Certificates
      PEM = "-----BEGIN "
      # A String that may be a key without its PEM header is never put into a message.
      PATH = %r{\A(?=[[:print:]]{1,255}\z)(?:~?|\.{1,2})(?:/[^"'\\=:,;]*|[\w.@-]+(?:/[\w.@ -]+)*\.(?:pem|key|crt|cer|der|p8))\z}i
      CODED = /[A-Za-z0-9+_=-]{40}/
      private_constant :PEM, :PATH, :CODED

      class << self
        # @return [Array<OpenSSL::X509::Certificate>]
        def all(what, name)
          case what
          when OpenSSL::X509::Certificate then [what]
          when Array then what.flat_map { |one| all(one, name) }
          when String then in_text(text(what, name), what, name)
          else raise UsageError, "tls: #{name} is PEM, a path or an OpenSSL::X509::Certificate, got #{what.class}"
          end
        rescue OpenSSL::X509::CertificateError => error
          raise UsageError, "tls: #{label(what, name)} holds no certificate that can be read (#{error.message})"
        end

        def key(what)
          case what
          when OpenSSL::PKey::PKey then what
          when String then OpenSSL::PKey.read(text(what, "key"), "")
          else raise UsageError, "tls: key is PEM, a path or an OpenSSL::PKey, got #{what.class}"
          end
        rescue OpenSSL::PKey::PKeyError => error
          raise UsageError, "tls: #{label(what, "key")} holds no private key that can be read without a password " \
                            "(#{error.message}); pass one with a password as an object: OpenSSL::PKey.read(pem, password)"
        end

        # The trusted authorities; nil: those of the system.
        def store(what)
          return what if what.is_a?(OpenSSL::X509::Store)
          return OpenSSL::X509::Store.new.tap(&:set_default_paths) unless what

          OpenSSL::X509::Store.new.tap { |store| all(what, "ca").uniq(&:to_der).each { |one| store.add_cert(one) } }
        end

        # The option's name, with the paths if its value has any.
        def label(what, name)
          paths = Array(what).grep(String).select { |one| path?(one) }
          paths.empty? ? name : "#{name} (#{paths.join(", ")})"
        end

        private

        def in_text(text, what, name)
          found = OpenSSL::X509::Certificate.load(text)
          raise UsageError, "tls: #{label(what, name)} holds no certificate" if found.empty?

          found
        end

        def text(string, name)
          return string if string.include?(PEM)

          File.read(string)
        rescue SystemCallError, ArgumentError => error
          reason = ": #{strerror(error)}" if path?(string)
          raise UsageError, "tls: #{label(string, name)} is neither PEM nor the path of a file that can be read#{reason}"
        end

        def strerror(error) = error.message.split(" @ ").first.split(" - ").first

        # Whether the String looks like a path. One that may be a key without its PEM header does not, in any encoding.
        def path?(string)
          text = string.dup.force_encoding(Encoding::UTF_8)
          text.valid_encoding? && text.match?(PATH) && !text.match?(CODED) && !text.include?(PEM)
        end
      end
    end
    private_constant :Certificates
  end
end
