# frozen_string_literal: true

require "openssl"
require "socket"

require "bench/workspace"
require "bench/floor_program"

module Bench
  # The clients in `tls_echo`: bench/floor/tls_messages.c in a process of its own, so that their cost is not counted; and the
  # certificate of all contenders.
  module TlsClients
    PROGRAM = "tls_messages.c"

    class << self
      # Yields the listener, and a function that lets the clients begin. Returns how many messages came back as they were sent.
      def during(connections, trips, bytes)
        listener = TCPServer.new("127.0.0.1", 0)
        arguments = ["talk", listener.addr[1], connections, trips, bytes]
        clients = IO.popen([FloorProgram.new(PROGRAM).path, *arguments.map(&:to_s)], "r+")
        yield listener, -> { clients.syswrite("g") }
        { intact: clients.read.to_i }
      ensure
        listener&.close
        clients&.close
      end

      def context = OpenSSL::SSL::SSLContext.new.tap { |context| context.add_certificate(certificate, key) }

      # Key and certificate in one file, for the floor.
      def pem = File.join(Workspace.build_directory, "tls_messages.pem").tap { |path| write(path) unless File.exist?(path) }

      private

      def write(path)
        fresh = "#{path}.#{Process.pid}"
        File.write(fresh, certificate.to_pem + key.to_pem)
        File.rename(fresh, path)
      end

      def key = @key ||= OpenSSL::PKey::EC.generate("prime256v1")

      def certificate
        @certificate ||= OpenSSL::X509::Certificate.new.tap do |certificate|
          certificate.subject = certificate.issuer = OpenSSL::X509::Name.parse("/CN=bench")
          certificate.not_before = Time.now - 60
          certificate.not_after = Time.now + 3600
          certificate.public_key = key
          certificate.serial = 1
          certificate.sign(key, "SHA256")
        end
      end
    end
  end
end
