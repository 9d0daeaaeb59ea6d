# frozen_string_literal: true

require "socket"
require_relative "socket_file"

module Ringspun
  class << self
    # Makes a UDP socket: bound to a local address, connected to a remote one, or both.
    #
    # May switch strands.
    #
    # @param host [String, nil] a local address or name, such as "127.0.0.1"; "0.0.0.0" and "::" are all local addresses; nil: the
    #   kernel chooses, for a connected socket
    # @param port [Integer, String] 0: a free one, see {Datagram#port}
    # @param connect [Array(String, Integer), Addrinfo, nil] the only peer that it sends to and receives from
    # @param broadcast [Boolean] whether it may send to broadcast addresses
    # @param reuse_port [Boolean] other processes may bind the same port; the kernel distributes the datagrams
    # @param timeout [Numeric, nil] seconds that each call may wait, unless it has a timeout of its own; nil: no limit
    # @yieldparam socket [Datagram] closed after the block
    # @return [Datagram, Object] the socket; with a block, its value
    # @raise [UsageError, SystemCallError, SocketError]
    # @since 0.1.0
    def datagram(host = nil, port = 0, connect: nil, broadcast: false, reuse_port: false, timeout: nil, &block)
      raise UsageError, "datagram: name a host to be bound to, or one to connect: to" unless host || connect

      peer = Datagram.__send__(:address_of, connect) if connect
      own = Datagram.__send__(:look_up, host, port, peer&.afamily, ::Socket::AI_PASSIVE) if host
      Datagram.__send__(:make, own, peer, timeout, { SO_BROADCAST: broadcast, SO_REUSEPORT: reuse_port }, &block)
    end

    # Makes a Unix datagram socket. If it is bound, its file is removed when it is closed.
    #
    # May switch strands.
    #
    # @param path [String, Pathname, nil] its own path; nil: others cannot send to it
    # @param connect [String, Pathname, nil] the path of its peer
    # @param timeout [Numeric, nil] seconds that each call may wait, unless it has a timeout of its own; nil: no limit
    # @yieldparam socket [Datagram] closed after the block
    # @return [Datagram, Object] the socket; with a block, its value
    # @raise [UsageError, SystemCallError]
    # @since 0.1.0
    def datagram_unix(path = nil, connect: nil, timeout: nil, &block)
      raise UsageError, "datagram_unix: name a path to be bound to, or one to connect: to" unless path || connect

      own, peer = [path, connect].map { |name| name && Datagram.__send__(:unix_address, name) }
      Datagram.__send__(:make, own, peer, timeout, {}, &block)
    end
  end

  # A datagram socket. See {Ringspun.datagram}, {Ringspun.datagram_unix}. Messages arrive whole or not at all, in any order.
  #
  # Any number of strands may send and receive. If {#recv} is cancelled or times out, no message is lost.
  class Datagram
    # The longest datagram over IP, in bytes.
    LONGEST = 65_535

    class << self
      private

      def make(own, peer, timeout, options, &block)
        datagram = new(Machine.current, (own || peer).afamily, timeout)
        datagram.__send__(:set_up, own, peer, options)
        made = datagram
        block ? datagram.__send__(:lend, &block) : datagram
      ensure
        datagram&.close unless made
      end

      def address_of(connect)
        return connect if connect.is_a?(Addrinfo)
        return look_up(*connect) if connect.is_a?(Array) && connect.size == 2

        raise UsageError, "datagram: connect: takes [host, port] or an Addrinfo, got #{connect.inspect}"
      end

      def look_up(host, port, family = nil, flags = 0)
        Net.check_place("datagram", host, port)
        look = -> { Addrinfo.getaddrinfo(host, port, family, :DGRAM, nil, flags).first }
        Net.naming("datagram", Net.place(host, port)) { Fiber.current_scheduler ? look.call : Ringspun.offload(&look) }
      end

      def unix_address(path)
        Addrinfo.unix(path.respond_to?(:to_path) ? path.to_path : path, :DGRAM)
      rescue TypeError, ArgumentError => error
        raise UsageError, "datagram: expected the path of a Unix socket (String or Pathname): #{error.message}"
      end
    end

    # @return [Numeric, nil] seconds that each call may wait, unless it has a timeout of its own; nil: no limit
    # @since 0.1.0
    attr_reader :timeout

    # @api private
    def initialize(machine, family, timeout)
      self.timeout = timeout
      @machine = machine
      @family = family
      @descriptor = machine.socket(family, :DGRAM)
    end

    # @param seconds [Numeric, nil] that each call may wait from now on, unless it has a timeout of its own; nil: no limit
    # @since 0.1.0
    def timeout=(seconds)
      @timeout = seconds && Seconds.limit("timeout", seconds)
    end

    # Sends one datagram.
    #
    # May switch strands.
    #
    # @param bytes [String] may be empty
    # @param host [Addrinfo, String, Pathname, nil] the receiver: an address or a name; a path for a Unix socket; nil: the peer of
    #   {Ringspun.datagram}'s `connect:`
    # @param port [Integer, String, nil] for a name or address; a name is looked up for every datagram, an Addrinfo is not
    # @param timeout [Numeric, nil] seconds; nil: no limit
    # @return [Integer] bytes
    # @raise [Errno::EMSGSIZE] when it is too long
    # @raise [Errno::ECONNREFUSED] on a connected socket: the peer has refused an earlier datagram
    # @raise [TimeoutError, UsageError, ClosedError, SystemCallError, SocketError]
    # @since 0.1.0
    def send(bytes, host = nil, port = nil, timeout: @timeout)
      Net.within(@machine, timeout, "send: no room for a datagram") do
        @machine.sendmsg(descriptor, bytes, target(host, port))
      end
    end

    # Waits for a datagram.
    #
    # May switch strands.
    #
    # @param max [Integer] bytes
    # @param timeout [Numeric, nil] seconds; nil: no limit
    # @return [Array(String, Addrinfo)] the bytes and the sender; nil for a Unix socket without a path
    # @raise [LimitError] when the datagram is longer; it is lost then
    # @raise [Errno::ECONNREFUSED] on a connected socket: the peer has refused an earlier datagram
    # @raise [TimeoutError, UsageError, ClosedError, SystemCallError]
    # @since 0.1.0
    def recv(max = LONGEST, timeout: @timeout)
      buffer = take_buffer
      length, from, flags = Net.within(@machine, timeout, "recv: no datagram") do
        @machine.recvmsg(descriptor, buffer, max, ::Socket::MSG_TRUNC)
      end
      raise LimitError, "recv: a datagram of #{length} bytes is longer than #{max}" if flags.anybits?(::Socket::MSG_TRUNC)

      [String.new(buffer), sender(from)]
    ensure
      @buffer = buffer
    end

    # Yields one datagram after the other, until the block closes the socket or breaks.
    #
    # May switch strands.
    #
    # @param max [Integer] bytes that a datagram may have
    # @param timeout [Numeric, nil] seconds for each datagram; nil: no limit
    # @yieldparam bytes [String]
    # @yieldparam from [Addrinfo, nil]
    # @return [nil]
    # @raise (see #recv)
    # @since 0.1.0
    def each(max = LONGEST, timeout: @timeout)
      return to_enum(:each, max, timeout: timeout) unless block_given?

      yield(*recv(max, timeout: timeout)) until closed?
    end

    # @return [Addrinfo] its local address
    # @since 0.1.0
    def address
      socket = ::Socket.for_fd(descriptor)
      socket.autoclose = false
      socket.local_address
    end

    # @return [Integer] the UDP port
    # @since 0.1.0
    def port = address.ip_port

    # Closes the socket. Strands that wait for a datagram get a ClosedError.
    #
    # May switch strands.
    #
    # @return [nil] also when it is closed already
    # @since 0.1.0
    def close
      return unless @descriptor

      closing, @descriptor = @descriptor, nil
      @file&.remove
      @machine.close(closing) unless @machine.closed?
    ensure
      @shown = @shown&.close
    end

    # @return [Boolean]
    # @since 0.1.0
    def closed? = @descriptor.nil?

    # An IO for the descriptor: for IO.select, IO#wait and methods of the machine. It is always the same object, is closed with
    # the socket, and does not close the descriptor itself; if it was closed, this makes a new one.
    #
    # @return [IO]
    # @raise [UsageError] when the socket is closed
    # @since 0.1.0
    def to_io
      raise UsageError, "to_io: the datagram socket is closed; ask before" if closed?

      @shown = IO.for_fd(@descriptor, "r+", autoclose: false) if @shown.nil? || @shown.closed?
      @shown
    end

    # @return [String]
    # @since 0.1.0
    def inspect = "#<#{self.class} #{closed? ? "(closed)" : address.inspect_sockaddr}>"

    private

    def descriptor = @descriptor || raise(ClosedError, "the datagram socket is closed")

    def set_up(own, peer, options)
      options.each do |name, wanted|
        @machine.setsockopt(@descriptor, ::Socket::SOL_SOCKET, ::Socket.const_get(name), true) if wanted
      end
      bind(own) if own
      @machine.connect(@descriptor, peer) if peer
    end

    def bind(own)
      @machine.bind(@descriptor, own)
      @file = SocketFile.of(own)
    end

    def lend
      yield self
    ensure
      close
    end

    def target(host, port)
      return host if host.nil? || host.is_a?(Addrinfo)
      return Datagram.__send__(:unix_address, host) if @family == ::Socket::AF_UNIX
      raise UsageError, "send: #{host.inspect} needs a port" unless port

      Datagram.__send__(:look_up, host, port, @family)
    end

    # One buffer, which is used again. If several strands receive at once, the others make their own.
    def take_buffer
      buffer, @buffer = @buffer, nil
      buffer || String.new(capacity: LONGEST)
    end

    def sender(packed)
      family = packed.unpack1("S")
      return if family.nil? || (family == ::Socket::AF_UNIX && packed.bytesize <= 2)

      Addrinfo.new(packed, family, :DGRAM, family == ::Socket::AF_UNIX ? 0 : ::Socket::IPPROTO_UDP)
    end
  end
end
