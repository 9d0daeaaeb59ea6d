# frozen_string_literal: true

module Ringspun
  # What all that has to do with addresses, names and limits of time shares.
  #
  # @api private
  module Net
    class << self
      def within(machine, seconds, message, &)
        return yield unless seconds

        begin
          machine.timeout(seconds, &)
        rescue TimeoutError
          raise TimeoutError, "#{message} within #{seconds} s"
        end
      end

      # For who says the port alone, as programs do elsewhere.
      def need_both(what, host, port)
        return check_place(what, host, port) unless port.nil?

        place = host.is_a?(Integer) ? %("127.0.0.1", #{host}) : "#{host.inspect}, 8080"
        raise UsageError, "#{what}: takes a host and a port, as in #{what}(#{place})"
      end

      # What getaddrinfo takes; its own errors for the rest name neither the method nor the argument.
      def check_place(what, host, port)
        raise UsageError, "#{what}: expected a host (String), got #{shown(host)}" unless host?(host)
        raise UsageError, "#{what}: expected a port (Integer, or the name of a service), got #{shown(port)}" unless port?(port)
      end

      def host?(host) = host.is_a?(Integer) ? host.between?(0, 0xffffffff) : host.nil? || name?(host)

      def port?(port) = port.is_a?(Integer) ? port.between?(0, 65_535) : name?(port)

      def name?(object)
        name = String.try_convert(object)
        name && name.encoding.ascii_compatible? && !name.include?("\0")
      end

      # Without its own inspect, which may do anything.
      def shown(object) = object.is_a?(String) || object.is_a?(Integer) ? object.inspect : object.class

      # Adds the address to the message of an error of the system or of the handshake, unless the message has it.
      def naming(what, where)
        yield
      rescue SystemCallError, SocketError, HandshakeError => error
        raise if error.message.include?(where)

        raise error.exception("#{error.message} (#{what} #{where})"), cause: error.cause
      end

      # Brackets an IPv6 address, which has colons, and replaces the NUL before the name of an abstract Unix socket.
      def place(host, port = nil)
        return host.to_s.sub("\0", "@") unless port

        host.to_s.include?(":") ? "[#{host}]:#{port}" : "#{host}:#{port}"
      end

      def unix_address(path, what)
        Addrinfo.unix(path)
      rescue ArgumentError, TypeError => error
        raise UsageError, "#{what}: expected the path of a socket, got #{path.inspect}: #{error.message}"
      end

      # With a fiber scheduler, its hook address_resolve looks the name up on a worker thread. Without one the look-up would block
      # the thread, so it is offloaded.
      def look_up(host, port, flags = 0)
        look = -> { Addrinfo.getaddrinfo(host, port, nil, :STREAM, nil, flags) }
        Fiber.current_scheduler ? look.call : Ringspun.offload(&look)
      end

      # @return [Integer] the descriptor of a connected socket
      def connect(machine, address)
        descriptor = machine.socket(address.afamily, :STREAM)
        machine.connect(descriptor, address)
        connected = descriptor
      ensure
        machine.close(descriptor) if descriptor && !connected
      end

      # TCP_NODELAY: small messages leave at once, because the stream's write queue has joined them already.
      def without_delay(machine, descriptor, address)
        machine.setsockopt(descriptor, ::Socket::IPPROTO_TCP, ::Socket::TCP_NODELAY, true) if address.ip?
      end
    end
  end
  private_constant :Net
end
