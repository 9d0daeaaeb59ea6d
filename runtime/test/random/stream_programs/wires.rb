# frozen_string_literal: true

class StreamPrograms
  # What connects two ends.
  class Wires
    # @attr flows [Array] of [from, to], a stream each
    Wire = Data.define(:flows) do
      def close = flows.flatten.uniq.each(&:close)
    end

    class << self
      # @return [Wire]
      def make(machine, setting)
        ends = send(setting[:wire], machine)
        bound(machine, ends) if setting[:bounded] && setting[:wire] != :pipe
        one, other = ends.map { |io| Ringspun::Stream.new(io, high_water: setting[:high_water]) }
        return Wire.new([[other, one]]) if setting[:wire] == :pipe

        shake_hands(machine, one, other) if setting[:wire] == :tls
        Wire.new([[one, other], [other, one]])
      end

      private

      def pipe(machine) = machine.pipe
      def socketpair(machine) = machine.socketpair
      def tls(machine) = tcp(machine)

      # So that there is less room than a step writes.
      def bound(machine, ends)
        ends.product([Socket::SO_SNDBUF, Socket::SO_RCVBUF]) do |io, name|
          machine.setsockopt(io, Socket::SOL_SOCKET, name, 20_000)
        end
      end

      def tcp(_machine)
        listener = TCPServer.new("127.0.0.1", 0)
        client = TCPSocket.new("127.0.0.1", listener.local_address.ip_port)
        [client, listener.accept]
      ensure
        listener&.close
      end

      def shake_hands(machine, client, server)
        accepting = machine.spin { server.accept_tls(Certificate.server_context) }
        client.start_tls(Certificate.client_context, host: "localhost")
        accepting.join
      end
    end
  end
end
