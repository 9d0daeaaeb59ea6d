# frozen_string_literal: true

require "socket"
require_relative "socket_file"

module Ringspun
  class << self
    # A UDP socket: bound to an address of this machine's, connected to another's, or both.
    #
    # May switch strands.
    #
    # @param host [String, nil] an address or a name, as "127.0.0.1"; "0.0.0.0" and "::" are all of this machine's; nil: the
    #   kernel chooses, for one that is connected
    # @param port [Integer, String] 0: one that is free, see {Datagram#port}
    # @param connect [Array(String, Integer), Addrinfo, nil] whom it sends to, and alone receives from
    # @param broadcast [Boolean] whether it may send to broadcast addresses
    # @param reuse_port [Boolean] other processes may be bound there as well; the kernel shares out what comes
    # @param timeout [Numeric, nil] seconds that each of its calls may wait, unless it names another; nil: as long as it takes
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

    # The same on Unix sockets. The file of one that is bound is removed when it is closed.
    #
    # May switch strands.
    #
    # @param path [String, Pathname, nil] where others send to it; nil: nobody can
    # @param connect [String, Pathname, nil] the path of whom it sends to
    # @param timeout [Numeric, nil] seconds that each of its calls may wait, unless it names another; nil: as long as it takes
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

  # Messages that arrive whole or not at all, in any order. See {Ringspun.datagram}, {Ringspun.datagram_unix}.
  #
  # Any number of strands may send and receive. A cancelled or timed-out {#recv} has taken nothing.
  class Datagram
    # As long as one can be over IP.
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
        look = -> { Addrinfo.getaddrinfo(host, port, family, :DGRAM, nil, flags).first }
        Net.naming("datagram", Net.place(host, port)) { Fiber.current_scheduler ? look.call : Ringspun.offload(&look) }
      rescue TypeError
        raise UsageError, "datagram: expected a host (String) and a port (Integer or String), got #{[host, port].inspect}"
      end

      def unix_address(path)
        Addrinfo.unix(path.respond_to?(:to_path) ? path.to_path : path, :DGRAM)
      rescue TypeError, ArgumentError => error
        raise UsageError, "datagram: expected the path of a Unix socket (String or Pathname): #{error.message}"
      end
    end

    # @return [Numeric, nil] seconds that each call may wait, unless it names another
    # @since 0.1.0
    attr_reader :timeout

    # @api private
    def initialize(machine, family, timeout)
      self.timeout = timeout
      @machine = machine
      @family = family
      @descriptor = machine.socket(family, :DGRAM)
    end

    # @param seconds [Numeric, nil] that each call may wait from now on, unless it names another; nil: as long as it takes
    # @since 0.1.0
    def timeout=(seconds)
      unless seconds.nil? || (seconds.is_a?(Numeric) && !seconds.negative?)
        raise UsageError, "timeout: must be a number of seconds and not negative, or nil, got #{seconds.inspect}"
      end

      @timeout = seconds
    end

    # Sends one datagram.
    #
    # May switch strands.
    #
    # @param bytes [String] may be empty
    # @param host [Addrinfo, String, Pathname, nil] where to: an address or a name; a path for a Unix socket; nil: to whom
    #   it is connected
    # @param port [Integer, String, nil] beside a name; a name is looked up for every datagram, an Addrinfo is not
    # @param timeout [Numeric, nil] seconds
    # @return [Integer] bytes
    # @raise [Errno::EMSGSIZE] when it is too long
    # @raise [Errno::ECONNREFUSED] where it is connected: nobody was there for one that was sent before
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
    # @param timeout [Numeric, nil] seconds
    # @return [Array(String, Addrinfo)] the bytes, and who has sent them; nil for a Unix socket that has no path
    # @raise [LimitError] when it is longer; it is gone then
    # @raise [Errno::ECONNREFUSED] where it is connected: nobody was there for one that was sent before
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

    # Yields one datagram after the other, until it is closed in the block or the block breaks.
    #
    # May switch strands.
    #
    # @param max [Integer] bytes that one may have
    # @param timeout [Numeric, nil] seconds that each may take
    # @yieldparam bytes [String]
    # @yieldparam from [Addrinfo, nil]
    # @return [nil]
    # @raise (see #recv)
    # @since 0.1.0
    def each(max = LONGEST, timeout: @timeout)
      return to_enum(:each, max, timeout: timeout) unless block_given?

      yield(*recv(max, timeout: timeout)) until closed?
    end

    # @return [Addrinfo] its own
    # @since 0.1.0
    def address
      socket = ::Socket.for_fd(descriptor)
      socket.autoclose = false
      socket.local_address
    end

    # @return [Integer] the UDP port
    # @since 0.1.0
    def port = address.ip_port

    # Closes it. Strands that wait for a datagram get a ClosedError.
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

    # For IO.select, IO#wait, and what the machine's methods can do with an IO. It is always the same one, is closed with the
    # socket, and does not close the descriptor itself; once it is closed there is a new one.
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

    # The same for one after the other, where no two strands receive at a time.
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
