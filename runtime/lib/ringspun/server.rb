# frozen_string_literal: true

require "socket"
require_relative "server/idle"
require_relative "socket_file"

module Ringspun
  class << self
    # Listens on a TCP address, and runs the block for each connection in a strand of its own, until the server is stopped or the
    # surrounding run is cancelled. Returns at once.
    #
    # May switch strands.
    #
    # @param host [String] an address or a name, such as "127.0.0.1"; "0.0.0.0" and "::" are all local addresses
    # @param port [Integer, String] 0: a free one, see {Server#port}
    # @param backlog [Integer] how many connections may wait in the kernel to be accepted
    # @param reuse_port [Boolean] other processes may listen on the same port; the kernel distributes the connections
    # @param options those of {Server#initialize}
    # @yieldparam stream [Stream] closed after the block
    # @return [Server]
    # @raise [UsageError, SystemCallError, SocketError]
    # @since 0.1.0
    def listen_tcp(host, port = nil, backlog: 1024, reuse_port: false, **options, &block)
      Net.need_both("listen_tcp", host, port)
      raise UsageError, "listen_tcp needs a block" unless block

      machine = Machine.current
      listener = Net.naming("listen_tcp on", Net.place(host, port)) do
        Listener.tcp(machine, Net.look_up(host, port, ::Socket::AI_PASSIVE).first, backlog, reuse_port)
      end
      Server.new(listener, **options, &block)
    end

    # Listens on a Unix socket. Its file is removed when the server stops. A file left by a socket that no process listens on is
    # replaced.
    #
    # May switch strands.
    #
    # @param path [String]
    # @param backlog [Integer] how many connections may wait in the kernel to be accepted
    # @param mode [Integer, nil] permissions of the file; nil: by the umask
    # @param options those of {Server#initialize}
    # @yieldparam stream [Stream] closed after the block
    # @return [Server]
    # @raise [UsageError, SystemCallError]
    # @since 0.1.0
    def listen_unix(path, backlog: 1024, mode: nil, **options, &block)
      raise UsageError, "listen_unix needs a block" unless block

      listener = Net.naming("listen_unix on", Net.place(path)) { Listener.unix(Machine.current, path, backlog, mode) }
      Server.new(listener, **options, &block)
    end
  end

  # A listening socket: how it is made and closed.
  #
  # @api private
  class Listener
    # `ahead`: options for Machine#accept_each. If other processes accept on the socket too, none is accepted ahead.
    attr_reader :machine, :descriptor, :address, :ahead

    def self.tcp(machine, address, backlog, reuse_port)
      new(machine, address) do |descriptor|
        machine.setsockopt(descriptor, ::Socket::SOL_SOCKET, ::Socket::SO_REUSEADDR, true)
        machine.setsockopt(descriptor, ::Socket::SOL_SOCKET, ::Socket::SO_REUSEPORT, true) if reuse_port
        machine.bind(descriptor, address)
        machine.listen(descriptor, backlog)
      end
    end

    def self.unix(machine, path, backlog, mode)
      address = Net.unix_address(path, "listen_unix")
      new(machine, address) do |descriptor|
        mode &&= permissions(mode)
        bind_unix(machine, descriptor, address)
        File.chmod(mode, path) if mode && !simulated?(machine)
        machine.listen(descriptor, backlog)
      end
    end

    def self.permissions(mode)
      number = Integer.try_convert(mode)
      return number if number&.between?(0, 0o7777)

      raise UsageError, "listen_unix: mode: must be an Integer between 0 and 0o7777, got #{mode.class}"
    end

    # Replaces the file of a socket that refuses connections: no process listens on it.
    def self.bind_unix(machine, descriptor, address)
      machine.bind(descriptor, address)
    rescue Errno::EADDRINUSE
      raise unless File.socket?(address.unix_path) && left_over?(machine, address)

      File.unlink(address.unix_path)
      machine.bind(descriptor, address)
    end

    def self.left_over?(machine, address)
      machine.close(Net.connect(machine, address))
      false
    rescue Errno::ECONNREFUSED
      true
    end

    # A simulated socket has no file.
    def self.simulated?(machine) = machine.backend.name == :sim
    private_class_method :permissions, :bind_unix, :left_over?

    # A listener on a socket of another process, which removes the file of a Unix socket.
    def self.shared(machine, descriptor)
      machine.__send__(:own_listener, descriptor)
      new(machine, nil, descriptor)
    end

    def initialize(machine, address, descriptor = nil)
      @machine = machine
      @descriptor = descriptor || machine.socket(address.afamily, :STREAM)
      yield @descriptor unless descriptor
      @address = local_address
      @ahead = descriptor ? { ahead: 0 } : {}
      @file = SocketFile.of(@address) unless descriptor || Listener.simulated?(machine)
      made = true
    ensure
      machine.close(@descriptor) if @descriptor && !made
    end

    # Accepts a connection on a socket that other processes have too; nil: there is none, or an error.
    def take
      return if @ahead.empty? || !@descriptor

      connection, = socket.accept_nonblock(exception: false)
      return if connection == :wait_readable

      connection.autoclose = false
      connection.fileno
    rescue SystemCallError
      nil
    end

    def close
      return unless @descriptor

      descriptor, @descriptor = @descriptor, nil
      @file&.remove
      @machine.close(descriptor)
    end

    private

    # As Socket#local_address says it, also where no Socket can be made of the number.
    def local_address
      packed = @machine.__send__(:bound_to, @descriptor)
      Addrinfo.new(packed, Addrinfo.new(packed).afamily, :STREAM)
    end

    def socket = ::Socket.for_fd(@descriptor).tap { |socket| socket.autoclose = false }
  end
  private_constant :Listener

  # Accepts connections and runs a block for each, in a strand of its own. See {Ringspun.listen_tcp}, {Ringspun.listen_unix}.
  #
  # An error in a connection ends that connection. Those that its stream raises because the peer has gone, or has sent too much,
  # too little or nothing in time, are ignored. All others go to `on_error`, also a {TimeoutError} of `Machine#timeout` in the
  # block, and errors of another stream that the block uses. If descriptors, memory or strands run out, the server pauses, and
  # accepts again.
  class Server
    # Errors of accept(2) for lack of descriptors or memory. The connections wait in the kernel.
    EXHAUSTED = [Errno::EMFILE, Errno::ENFILE, Errno::ENOBUFS, Errno::ENOMEM].freeze

    # Errors of accept(2) for a connection that has failed before it was accepted.
    PASSED = [Errno::ECONNABORTED, Errno::EPROTO, Errno::ENETDOWN, Errno::EHOSTUNREACH, Errno::ENETUNREACH].freeze

    PAUSES = (0.01..1.0)
    # Seconds for what was written to a connection to leave, before it is closed all the same.
    CLOSE_SECONDS = 5
    private_constant :EXHAUSTED, :PASSED, :PAUSES, :CLOSE_SECONDS

    # @param listener [Listener]
    # @param max_connections [Integer] while there are so many, further ones wait in the kernel
    # @param first_byte [Numeric, nil] seconds in which the client must send its first byte; nil: no limit, for protocols in which
    #   the server sends first
    # @param tls [Hash, OpenSSL::SSL::SSLContext, nil] see {TLS.server_context}; the handshake may take as long as the first byte,
    #   or 30 seconds; nil: clear text
    # @param on_error [#call, nil] called with the error and the stream; nil: the `on_error:` of the run or the machine, else a
    #   warning
    # @param on_stop [#call, nil] called once, when it stops listening and before it waits for its connections; a number that it
    #   returns is that of the seconds which connections without a strand still have for their next byte. If it has a method
    #   `waiting`, that returns a Hash whose keys are the streams that wait for their next bytes
    # @param stream_options those of {Stream#initialize}
    # @api private
    def initialize(listener, max_connections: 10_000, first_byte: 30, tls: nil, on_error: nil, on_stop: nil, **stream_options,
                   &block)
      @listener = listener
      @machine = listener.machine
      @max_connections = max_connections
      @first_byte = first_byte && Seconds.limit("first_byte", first_byte)
      @tls = tls && TLS.__send__(:server, tls)
      @on_error = on_error || method(:report)
      @on_stop = on_stop
      @stream_options = stream_options
      Stream.new(listener.descriptor, **stream_options) # raises for wrong options here, and not for the first connection
      @block = block
      @strands = {}
      @unbegun = {}
      @change = Condition.new
      @idle = IdleConnections.new(@machine, @change, method(:close)) { |idle| begin_strand(idle.stream, idle) }
      @pause = PAUSES.begin
      @stopping = false
      @cut = 0
      @strand = @machine.spin { serve }
      begin_serving
      begun = true
    ensure
      give_up(listener) unless begun
    end

    # @return [Addrinfo] the address that it listens on
    # @since 0.1.0
    def address = @listener.address

    # @return [Integer] the TCP port
    # @since 0.1.0
    def port = address.ip_port

    # @return [Integer] open connections
    # @since 0.1.0
    def connections = @strands.size + @idle.size

    # For blocks that serve several requests: whether the present one should be the last.
    #
    # @return [Boolean] whether {#stop} was called
    # @since 0.1.0
    def stopping? = @stopping

    # Stops listening, and waits until the connections have ended. After `within` seconds the others are cancelled. A connection
    # that stops its own server is neither waited for nor cancelled.
    #
    # May switch strands.
    #
    # @param within [Numeric, nil] seconds for the connections; nil: no limit
    # @return [Integer] how many were cancelled
    # @since 0.1.0
    def stop(within: 10)
      deadline = within && (now + Seconds.limit("within", within))
      stop_listening
      wait_for_change(deadline && [deadline - now, 0].max) while others?
      0
    rescue TimeoutError
      cancel_all
    end

    # The first half of {#stop}: later connections go to other processes that listen there, if there are any.
    #
    # May switch strands.
    #
    # @return [nil]
    # @api private
    def stop_listening
      begins = !@stopping
      @stopping = true
      seconds = @on_stop&.call if begins
      @idle.hurry(seconds) if seconds.is_a?(Numeric)
      @machine.terminate(@strand)
      end_of(@strand)
      @listener.close
      nil
    end

    # Connections at work, which would be cut now. Those that wait for their next bytes, with a strand or without, lose nothing. A
    # handler of a signal may call it.
    #
    # @param connections [Hash{Strand => Stream}]
    # @return [Integer]
    # @api private
    def busy(connections = @strands)
      waiting = @on_stop.respond_to?(:waiting) ? @on_stop.waiting : {}
      connections.count { |_, stream| !waiting.key?(stream) }
    end

    # @return [Integer] connections at work that {#stop} has cancelled
    # @api private
    attr_reader :cut

    # Waits until it has stopped.
    #
    # May switch strands.
    #
    # @return [nil]
    # @since 0.1.0
    def wait
      end_of(@strand)
      wait_for_change while others?
    end

    private

    # A strand that ends before it begins tells nobody: it is looked at again when those have run that are to begin.
    #
    # @param timeout [Float, nil] seconds
    def wait_for_change(timeout = nil)
      @unbegun.empty? || timeout&.zero? ? @change.wait(timeout:) : @machine.yield
    end

    # Ends it when `initialize` is cancelled or fails, possibly before its first line.
    def give_up(listener)
      listener.machine.terminate(@strand) if @strand
      listener.close
    end

    # Lets the strand begin: if it is cancelled before, its ensure block does not close the listener.
    def begin_serving
      @machine.yield
      @listener.close unless @strand.alive?
    end

    def now = @machine.now

    def end_of(strand)
      strand.join
    rescue TerminatedError
      nil
    end

    # Whether there are connections besides the one whose strand asks: that one cannot wait for itself.
    def others?
      drop_unbegun
      connections > (@strands.key?(@machine.running) ? 1 : 0)
    end

    # One that was to have a strand may have got it meanwhile.
    def cancel_all
      @cut += busy(@strands.except(@machine.running))
      rest = cancel_strands
      (rest.size + @idle.drop_all).tap { join(rest.merge(cancel_strands)) }
    end

    def cancel_strands = @strands.except(@machine.running).each_key { |strand| @machine.terminate(strand) }

    # Closes the streams: a strand that was cancelled before it ran has not done so.
    def join(connections)
      connections.each do |strand, stream|
        end_of(strand)
        drop(strand, stream)
      end
    end

    def drop(strand, stream)
      @strands.delete(strand)
      idle = @unbegun.delete(strand)
      close(stream)
    ensure
      idle&.dropped
      @change.broadcast
    end

    # Drops the connections whose strands have ended before they ran: they were cancelled, or there was no stack for them. Strands
    # begin in the order in which they were made, so that no more than the first is asked of thousands that have come at once.
    #
    # @return [LimitError, nil] why there was none
    def drop_unbegun
      lack = nil
      while (strand, = @unbegun.first) && !strand.alive?
        drop(strand, @strands[strand])
        lack ||= lack_of(strand)
      end
      lack
    end

    def lack_of(strand)
      end_of(strand)
      nil
    rescue LimitError => error
      error
    end

    def serve
      accept
    ensure
      begin
        take_rest if @stopping
      ensure
        @listener.close
        Ringspun.shield { join(@strands.dup) && @idle.drop_all } unless @stopping
      end
    end

    def accept
      @machine.accept_each(@listener.descriptor, **@listener.ahead) { |descriptor| welcome(descriptor) }
    rescue *EXHAUSTED => error
      pause(error)
      retry
    rescue *PASSED
      retry
    end

    def welcome(descriptor)
      stream = Stream.new(descriptor, **@stream_options)
      begin_strand(stream)
      stream = descriptor = nil
      wait_for_room
    ensure
      stream ? stream.close : descriptor && @machine.close(descriptor)
    end

    # Serves the connections that still wait in a shared socket: when the last process closes it, the kernel resets them.
    def take_rest
      while connections < @max_connections && (descriptor = @listener.take)
        stream = Stream.new(descriptor, **@stream_options)
        begin_strand(stream)
        stream = nil
      end
    ensure
      stream&.close
    end

    # Waits before the next accept, because another process might have room for that connection. Connections that were accepted
    # ahead are served, also if {#stop} has cancelled this strand.
    def wait_for_room
      while connections >= @max_connections
        wait_for_change
        pause_for_lack
      end
    rescue Cancelled
      raise unless @stopping
    end

    # The connection is counted before its strand runs, and before this one waits.
    #
    # @param idle [Idle, nil] one that goes on
    def begin_strand(stream, idle = nil)
      pause_for_lack
      strand = @machine.spin { attend(stream, strand, idle) }
      @strands[strand] = stream
      @unbegun[strand] = idle
    rescue LimitError => error
      pause(error)
      retry
    end

    def pause_for_lack
      lack = drop_unbegun
      pause(lack) if lack
    end

    # The connections of this time wait in the kernel.
    def pause(error)
      Warnings.tell("ringspun: #{error.message}; no connection is accepted for #{@pause} s") if @pause == PAUSES.begin
      @machine.sleep(@pause)
      @pause = [@pause * 2, PAUSES.end].min
    end

    def attend(stream, strand, idle)
      begin
        @unbegun.delete(strand)
        @pause = PAUSES.begin
        serve_one(stream, idle)
      ensure
        @strands.delete(strand)
        @change.broadcast
      end
      @idle.keep
    end

    def serve_one(stream, idle)
      answer = idle ? idle.call : first_call(stream)
      answer = answer.call while answer.is_a?(Idle) && !(waits = waits_without_strand?(answer))
    rescue StandardError => error
      @on_error.call(error, stream) unless stream.__send__(:peers_fault?, error)
    ensure
      close(stream) unless waits
    end

    def first_call(stream)
      Net.without_delay(@machine, stream.__send__(:over), address)
      @block.call(stream) if begun?(stream)
    end

    # @return [Boolean] false: there was no place for it among those, and its wait is over
    def waits_without_strand?(idle)
      waits = @idle.add(idle)
      wait_with_strand(idle) unless waits
      done = true
      waits
    ensure
      idle.dropped unless done
    end

    def wait_with_strand(idle)
      idle.stream.eof?(timeout: idle.deadline && [idle.deadline - now, 0].max)
    rescue TimeoutError
      nil
    end

    # A failed handshake is the peer's fault, and ignored here. A HandshakeError of the block is not: it concerns another peer.
    def begun?(stream)
      deadline = @first_byte && (now + @first_byte)
      stream.accept_tls(@tls, timeout: @first_byte || TLS::HANDSHAKE_SECONDS) if @tls
      deadline.nil? || !stream.eof?(timeout: [deadline - now, 0].max)
    rescue HandshakeError
      false
    end

    def close(stream)
      stream.close(timeout: CLOSE_SECONDS)
    rescue StandardError => error
      raise unless stream.__send__(:peers_fault?, error)
    end

    def report(error, _stream)
      return @machine.__send__(:report_error, @machine.running, error) if @machine.__send__(:on_error?)

      Warnings.tell("ringspun: a connection failed: #{error.full_message(highlight: false)}")
    end
  end
end
