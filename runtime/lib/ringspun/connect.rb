# frozen_string_literal: true

require "socket"

module Ringspun
  class << self
    # Connects to a host and port. If the name has several addresses, they are tried one after the other, IPv6 and IPv4 in turn.
    # The next one is tried as soon as one has failed or takes longer than `attempt_delay`. The first connection wins, and the
    # other attempts are cancelled.
    #
    # May switch strands.
    #
    # @param host [String] a name or an address
    # @param port [Integer, String] a number or the name of a service
    # @param connect_timeout [Numeric, nil] seconds for everything, the look-up of the name included; nil: no limit
    # @param attempt_delay [Numeric] seconds after which the next address is tried as well
    # @param tls [true, Hash, OpenSSL::SSL::SSLContext, nil] see {TLS.client_context}; the Hash also takes `host:`, if the
    #   server's certificate is for another name; nil: clear text
    # @param options those of {Stream#initialize}
    # @yieldparam stream [Stream] closed after the block
    # @return [Stream, Object] the stream; with a block, its value
    # @raise [HandshakeError] when the TLS handshake fails
    # @raise [TimeoutError] when there is no connection in time, the TLS handshake included
    # @raise [SystemCallError] when no address can be connected to: the last error
    # @raise [SocketError] when the name cannot be resolved
    # @since 0.1.0
    # @see https://www.rfc-editor.org/rfc/rfc8305 RFC 8305
    def connect_tcp(host, port = nil, tls: nil, connect_timeout: 30, attempt_delay: HappyEyeballs::ATTEMPT_DELAY, **options,
                    &block)
      Net.need_both("connect_tcp", host, port)
      machine = Machine.current
      delay = Seconds.limit("attempt_delay", attempt_delay, "a number of seconds")
      client = TLS.__send__(:client, tls, host) if tls
      stream = Net.within(machine, connect_timeout, "connect_tcp: no connection to #{Net.place(host, port)}") do
        Net.naming("connect_tcp to", Net.place(host, port)) do
          Net.stream(machine, HappyEyeballs.new(machine, Net.look_up(host, port), delay).connect, options, client)
        end
      end
      block ? stream.__send__(:lend, &block) : stream
    end

    # Connects to a Unix socket.
    #
    # May switch strands.
    #
    # @param path [String]
    # @param tls [Hash, OpenSSL::SSL::SSLContext, nil] see {TLS.client_context}; `host:` is the name in the server's certificate
    # @param connect_timeout [Numeric, nil] seconds; nil: no limit
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

  module Net
    class << self
      def stream(machine, descriptor, options, client)
        stream = Stream.new(descriptor, **options)
        begun = client ? stream.__send__(:begin_client, client) : stream
      ensure
        stream ? (stream.close unless begun) : machine.close(descriptor)
      end
    end
  end

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
      @answers.push(@winner) if @winner && !connected # it was cancelled while it waited for the end of the others
      close_all
    end

    private

    # The families in turn, beginning with that of the resolver's first address (RFC 8305, section 4).
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

    # Closes connections that came too late.
    def close_all
      until @answers.empty?
        answer = @answers.pop
        @machine.close(answer) if answer.is_a?(Integer)
      end
    end
  end
  private_constant :HappyEyeballs
end
