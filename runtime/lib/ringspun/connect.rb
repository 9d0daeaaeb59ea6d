# frozen_string_literal: true

require "socket"

module Ringspun
  class << self
    # A stream to that host and port. Where a name has several addresses they are tried one after the other, IPv6 and IPv4 in
    # turn, the next one as soon as one has failed or takes longer than `attempt_delay`; the first that answers wins, and the
    # others are given up.
    #
    # May switch strands.
    #
    # @param host [String] a name or an address
    # @param port [Integer, String] a number or the name of a service
    # @param connect_timeout [Numeric, nil] seconds for all of it, the look-up of the name included
    # @param attempt_delay [Numeric] seconds that an address has before the next one is tried as well
    # @param tls [true, Hash, OpenSSL::SSL::SSLContext, nil] see {TLS.client_context}; in the Hash also `host:`, if the server's
    #   certificate is for another name than that; nil: in clear text
    # @param options those of {Stream#initialize}
    # @yieldparam stream [Stream] closed after the block
    # @return [Stream, Object] the stream; with a block, its value
    # @raise [HandshakeError] when there is no TLS session
    # @raise [TimeoutError] when there is no connection in time, the TLS handshake included
    # @raise [SystemCallError] what the last address answered, when none can be connected to
    # @raise [SocketError] when the name means nothing
    # @since 0.1.0
    # @see https://www.rfc-editor.org/rfc/rfc8305 RFC 8305
    def connect_tcp(host, port, tls: nil, connect_timeout: 30, attempt_delay: HappyEyeballs::ATTEMPT_DELAY, **options, &block)
      machine = Machine.current
      client = TLS.__send__(:client, tls, host) if tls
      stream = Net.within(machine, connect_timeout, "connect_tcp: no connection to #{Net.place(host, port)}") do
        Net.naming("connect_tcp to", Net.place(host, port)) do
          Net.stream(machine, HappyEyeballs.new(machine, Net.look_up(host, port), attempt_delay).connect, options, client)
        end
      end
      block ? stream.__send__(:lend, &block) : stream
    end

    # A stream to that Unix socket.
    #
    # May switch strands.
    #
    # @param path [String]
    # @param tls [Hash, OpenSSL::SSL::SSLContext, nil] see {TLS.client_context}, and `host:` whose certificate it must show
    # @param connect_timeout [Numeric, nil] seconds
    # @param options those of {Stream#initialize}
    # @yieldparam stream [Stream] closed after the block
    # @return [Stream, Object] the stream; with a block, its value
    # @raise [HandshakeError, TimeoutError, SystemCallError]
    # @since 0.1.0
    def connect_unix(path, tls: nil, connect_timeout: 30, **options, &block)
      machine = Machine.current
      client = TLS.__send__(:client, tls, nil) if tls
      stream = Net.within(machine, connect_timeout, "connect_unix: no connection to #{Net.place(path)}") do
        Net.naming("connect_unix to", Net.place(path)) do
          Net.stream(machine, Net.connect(machine, Net.unix_address(path, "connect_unix")), options, client)
        end
      end
      block ? stream.__send__(:lend, &block) : stream
    end
  end

  # What connecting and listening share.
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

      # What the system answers, or the other side in the TLS handshake, names what it was about, unless it does already.
      def naming(what, where)
        yield
      rescue SystemCallError, SocketError, HandshakeError => error
        raise if error.message.include?(where)

        raise error.exception("#{error.message} (#{what} #{where})"), cause: error.cause
      end

      # An address of IPv6 has colons of its own, and a Unix socket without a file a NUL before its name.
      def place(host, port = nil)
        return host.to_s.sub("\0", "@") unless port

        host.to_s.include?(":") ? "[#{host}]:#{port}" : "#{host}:#{port}"
      end

      def unix_address(path, what)
        Addrinfo.unix(path)
      rescue ArgumentError, TypeError => error
        raise UsageError, "#{what}: expected the path of a socket, got #{path.inspect}: #{error.message}"
      end

      # In a strand of Ringspun.run Ruby asks our scheduler, which has a worker look it up; elsewhere it would hold the thread.
      def look_up(host, port, flags = 0)
        look = -> { Addrinfo.getaddrinfo(host, port, nil, :STREAM, nil, flags) }
        Fiber.current_scheduler ? look.call : Ringspun.offload(&look)
      end

      # A connected socket's descriptor.
      def connect(machine, address)
        descriptor = machine.socket(address.afamily, :STREAM)
        machine.connect(descriptor, address)
        connected = descriptor
      ensure
        machine.close(descriptor) if descriptor && !connected
      end

      def stream(machine, descriptor, options, client)
        stream = Stream.new(descriptor, **options)
        begun = client ? stream.__send__(:begin_client, client) : stream
      ensure
        stream ? (stream.close unless begun) : machine.close(descriptor)
      end

      # Small messages leave at once: a stream has joined already what belongs together.
      def without_delay(machine, descriptor, address)
        machine.setsockopt(descriptor, ::Socket::IPPROTO_TCP, ::Socket::TCP_NODELAY, true) if address.ip?
      end
    end
  end
  private_constant :Net

  # One connection out of several addresses.
  #
  # @api private
  class HappyEyeballs
    # Recommended by RFC 8305, section 5.
    ATTEMPT_DELAY = 0.25

    def initialize(machine, addresses, delay)
      @machine = machine
      @addresses = in_turn(addresses)
      @delay = delay
      @answers = Queue.new
      @failed = 0
    end

    # @return [Integer] the descriptor
    def connect
      return connect_to(@addresses.first) if @addresses.size == 1

      @machine.scope do |scope|
        @winner = race(scope)
        scope.cancel
      end
      connected = @winner
    ensure
      @answers.push(@winner) if @winner && !connected # cancelled while it waited for the others' end
      close_all
    end

    private

    # Families one after the other, the first one that the resolver named first (section 4).
    def in_turn(addresses)
      first, *others = addresses.group_by(&:afamily).values
      first.flat_map.with_index { |address, at| [address, *others.filter_map { |other| other[at] }] } |
        others.flatten
    end

    def race(scope)
      waiting = @addresses.dup
      loop do
        try(scope, waiting.shift) unless waiting.empty?
        answer = @answers.pop(timeout: (@delay unless waiting.empty?))
        return answer if answer.is_a?(Integer)
        next unless answer

        @failed += 1
        raise answer if @failed == @addresses.size
      end
    end

    def try(scope, address)
      scope.spin do
        @answers.push(connect_to(address))
      rescue SystemCallError => error
        @answers.push(error)
      end
    end

    def connect_to(address)
      Net.connect(@machine, address).tap { |descriptor| Net.without_delay(@machine, descriptor, address) }
    end

    # Those that were connected as well, too late.
    def close_all
      until @answers.empty?
        answer = @answers.pop
        @machine.close(answer) if answer.is_a?(Integer)
      end
    end
  end
  private_constant :HappyEyeballs
end
