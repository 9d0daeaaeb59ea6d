# frozen_string_literal: true

require "socket"

# Ports of the loopback on which nobody listens. They are below those that the kernel gives to clients, ip_local_port_range, so
# that no client takes one before its server does.
module FreePort
  PORTS = (12_000...30_000)
  private_constant :PORTS

  # @return [Integer]
  def self.find
    port = rand(PORTS)
    TCPServer.new("127.0.0.1", port).close
    port
  rescue Errno::EADDRINUSE
    retry
  end
end
