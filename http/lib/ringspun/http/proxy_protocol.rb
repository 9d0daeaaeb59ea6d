# frozen_string_literal: true

require "ipaddr"
require "socket"
require_relative "proxy_protocol/header"

module Ringspun
  module HTTP
    # Reads what a proxy tells of its client before the first byte of that one: https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt
    #
    # Only of peers that are named, which must send it, once. From all others it is no part of HTTP, and refused as such.
    #
    # @api private
    class ProxyProtocol
      # What begins version 2, and as many bytes as say that it is one of both.
      SIGNATURE = "\r\n\r\n\0\r\nQUIT\n".b.freeze
      # Bytes of version 1, with its end.
      LINE_MAX = 107
      # Bytes of the fixed part of version 2 behind its signature: command, family, length.
      FIXED = 4
      # Bytes of version 2 behind that. The longest that proxies send has a client's certificate.
      REST_MAX = 4096
      # What names peers that come by Unix sockets.
      UNIX = "unix"
      private_constant :SIGNATURE, :LINE_MAX, :FIXED, :REST_MAX, :UNIX

      class << self
        # @param peers [Array<String>, String, nil] addresses and networks; "unix": all that come by Unix sockets
        # @param telling [Telling]
        # @param seconds [Numeric] until all of it has come
        # @return [ProxyProtocol, nil]
        # @raise [UsageError]
        def of(peers, telling, seconds:)
          peers = [*peers]
          new(peers, telling, seconds) if peers.any?
        end
      end

      def initialize(peers, telling, seconds)
        @unix = peers.include?(UNIX)
        @networks = (peers - [UNIX]).map { |peer| network(peer) }
        @telling = telling
        @seconds = seconds
      end

      # May switch strands.
      #
      # @param stream [Stream] nobody has read from it
      # @return [Hash{String => String}, nil] what it says, as an env has it; nil: nothing that can be read, and the connection is
      #   to be closed
      def read(stream)
        descriptor = stream.__send__(:over)
        (peer, _), own = Connection.ends(descriptor)
        return if own && !peer # it has reset the connection, and is no peer at a Unix socket
        return {} unless named?(peer)

        Machine.current.timeout(@seconds) { env_of(header(Machine.current, descriptor)) }
      rescue Wrong => error
        refuse(peer, error.message)
      rescue TimeoutError
        refuse(peer, "has not sent all of a PROXY header in #{@seconds} s")
      rescue SystemCallError # the proxy has gone
        nil
      end

      private

      def network(peer)
        IPAddr.new(String(peer))
      rescue IPAddr::Error, TypeError
        raise UsageError, "proxy_protocol: takes addresses, networks such as 10.0.0.0/8, and #{UNIX.inspect}, got #{peer.inspect}"
      end

      def named?(peer)
        return @unix unless peer

        address = IPAddr.new(peer)
        @networks.any? { |network| network.include?(address) }
      end

      # Takes no byte behind it, for those may be TLS, which reads the descriptor itself.
      def header(machine, descriptor)
        first = take(machine, descriptor, SIGNATURE.bytesize)
        return second_version(machine, descriptor) if first == SIGNATURE
        raise Wrong, "has sent something else than a PROXY header" unless first.start_with?("PROXY ")

        Line.read(line(machine, descriptor, first))
      end

      def second_version(machine, descriptor)
        command, family, length = take(machine, descriptor, FIXED).unpack("CCn")
        raise Wrong, "has sent a PROXY header of #{length} bytes; #{REST_MAX} are read" if length > REST_MAX

        Bytes.read(command, family, take(machine, descriptor, length))
      end

      # Looks before it takes: each turn takes all that is there of the line, so that it waits in the next.
      def line(machine, descriptor, line)
        until line.end_with?("\r\n")
          room = LINE_MAX - line.bytesize
          raise Wrong, "has sent no end of a PROXY header in #{LINE_MAX} bytes" if room.zero?

          seen = peek(machine, descriptor, room)
          ends = "#{line[-1]}#{seen}".index("\r\n")
          line << take(machine, descriptor, ends ? ends + 1 : seen.bytesize)
        end
        line
      end

      def peek(machine, descriptor, length)
        bytes = +"".b
        machine.recv(descriptor, bytes, length, ::Socket::MSG_PEEK).zero? ? ended(true) : bytes
      end

      def take(machine, descriptor, length)
        bytes = +"".b
        while bytes.bytesize < length
          piece = +"".b
          ended(bytes.empty?) if machine.recv(descriptor, piece, length - bytes.bytesize).zero?
          bytes << piece
        end
        bytes
      end

      # A look at whether somebody listens, as balancers take it, is no fault.
      def ended(nothing)
        raise Errno::ECONNRESET if nothing

        raise Wrong, "has closed the connection within a PROXY header"
      end

      def env_of(header)
        return {} unless header.source

        env = { "REMOTE_ADDR" => header.source, "SERVER_NAME" => Service.named(header.destination),
                "SERVER_PORT" => header.destination_port.to_s }
        env["rack.url_scheme"] = "https" if header.secure
        env
      end

      # One that is set up wrongly says the same with each connection.
      def refuse(peer, message)
        text = "the proxy #{peer || "at a Unix socket"} #{message}"
        @telling.puts(text) unless text == @told
        @told = text
        nil
      end
    end
    private_constant :ProxyProtocol
  end
end
