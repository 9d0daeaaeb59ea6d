# frozen_string_literal: true

require "openssl"
require "securerandom"
require_relative "scram/saslprep"

module Ringspun
  module Postgres
    # SCRAM-SHA-256 and -PLUS, the client's side: RFC 5802, RFC 7677; channel binding by tls-server-end-point: RFC 5929.
    #
    # @api private
    class Scram
      PLAIN = "SCRAM-SHA-256"
      PLUS = "SCRAM-SHA-256-PLUS"

      # A server that wants more makes each connection as slow as it likes. PostgreSQL's default is 4,096.
      ITERATIONS_MAX = 1_000_000

      FIRST = /\Ar=(?<nonce>[!-+\--~]+),s=(?<salt>[^,]+),i=(?<count>[1-9]\d{0,9})(?:,|\z)/n
      private_constant :FIRST

      # The hash of a certificate by the function of its signature, and by SHA-256 where that is older: RFC 5929, section 4.1.
      #
      # @param certificate [OpenSSL::X509::Certificate]
      # @return [String, nil] nil: the signature's function is not defined by its name
      def self.binding_of(certificate)
        name = certificate.signature_algorithm
        name = hash_of_pss(certificate) if name == "rsassaPss"
        digest = name.match?(/sha-?1|md5/i) ? "SHA256" : name[/sha(?:224|256|384|512)(?!\w*[-_]?\d)/i]
        OpenSSL::Digest.digest(digest, certificate.to_der) if digest
      end

      # There it is a parameter of the signature, and SHA-1 where none is named: RFC 4055, section 3.1.
      def self.hash_of_pss(certificate)
        parameters = OpenSSL::ASN1.decode(certificate.to_der).value[1].value[1]&.value.to_a
        hash = parameters.find { |parameter| parameter.tag.zero? }
        hash ? hash.value.first.value.first.value : "SHA1"
      end
      private_class_method :hash_of_pss

      # @return [String] which mechanism it is
      attr_reader :mechanism

      # @param password [String]
      # @param mechanisms [Array<String>] that the server offers
      # @param bound [String, nil] what {.binding_of} says of the server's certificate; nil: there is nothing to bind to
      # @param nonce [String]
      # @raise [ConnectError] none of them is known
      def initialize(password, mechanisms, bound: nil, nonce: SecureRandom.base64(18))
        @password = Saslprep.prepare(password)
        @mechanism = bound && mechanisms.include?(PLUS) ? PLUS : PLAIN
        raise ConnectError, "the server offers #{shown(mechanisms)}; none of them is known" unless mechanisms.include?(@mechanism)

        @bound = plus? ? bound : ""
        @header = header(bound)
        @nonce = nonce
        @bare = "n=,r=#{nonce}" # Postgres knows the user from the startup message
      end

      # Without the password.
      def inspect = "#<#{self.class} #{@mechanism}>"

      # @return [Boolean] the password's proof is bound to the connection
      def plus? = @mechanism == PLUS

      # @return [String] the client's first message
      def first = @header + @bare

      # @param server_first [String]
      # @return [String] the client's second message, which proves that the password is known
      # @raise [ProtocolError]
      # @raise [ConnectError] the server asks for too much
      def final(server_first)
        salt, iterations, nonce = read_first(server_first)
        salted = OpenSSL::KDF.pbkdf2_hmac(@password, salt:, iterations:, length: 32, hash: "SHA256")
        without_proof = "c=#{[@header + @bound].pack("m0")},r=#{nonce}"
        message = "#{@bare},#{server_first},#{without_proof}"
        @signature = hmac(hmac(salted, "Server Key"), message)
        "#{without_proof},p=#{[proof(hmac(salted, "Client Key"), message)].pack("m0")}"
      end

      # @param server_final [String]
      # @raise [ConnectError] whoever answers does not know the password
      def verify(server_final)
        signature = decoded(server_final[/\Av=([^,]+)(?:,|\z)/n, 1].to_s)
        return if OpenSSL.secure_compare(signature, @signature)

        raise ConnectError, "the server does not prove that it knows the password: it may be another one"
      end

      private

      # A client that could have bound its proof, and was not offered to, says so: by that the server finds out that somebody has
      # taken the offer away.
      def header(bound)
        return "p=tls-server-end-point,," if plus?

        bound ? "y,," : "n,,"
      end

      def read_first(text)
        found = FIRST.match(text)
        unless found && found[:nonce].start_with?(@nonce) && found[:nonce] != @nonce
          raise ProtocolError, "SCRAM: the server's first message is not as RFC 5802 has it"
        end

        iterations = Integer(found[:count], 10)
        if iterations > ITERATIONS_MAX
          raise ConnectError, "SCRAM: the server asks for #{iterations} iterations, and at most #{ITERATIONS_MAX} are done"
        end

        [decoded(found[:salt]), iterations, found[:nonce]]
      end

      def decoded(text)
        text.unpack1("m0")
      rescue ArgumentError
        raise ProtocolError, "SCRAM: the server has sent what is not in base64"
      end

      def proof(client_key, message)
        signature = hmac(OpenSSL::Digest.digest("SHA256", client_key), message)
        client_key.bytes.zip(signature.bytes).map { |one, other| one ^ other }.pack("C*")
      end

      def hmac(key, text) = OpenSSL::HMAC.digest("SHA256", key, text)

      # Of a server that nobody has verified, and so not as it has come.
      def shown(names) = names.map(&:inspect).join(", ")
    end
    private_constant :Scram
  end
end
