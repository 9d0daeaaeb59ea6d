# frozen_string_literal: true

module Ringspun
  class Stream
    # Makes a stream for the block, and closes it after that. If the block raises, written bytes that have not left are dropped.
    #
    # May switch strands.
    #
    # @param io [Integer, IO]
    # @param options (see #initialize)
    # @yieldparam stream [Stream]
    # @return [Object] the block's value
    # @raise (see #initialize)
    # @raise (see #close)
    # @since 0.1.0
    def self.open(io, **options, &) = new(io, **options).__send__(:lend, &)

    # Begins TLS as the client, on a connection in clear text (STARTTLS and the like). All bytes of the clear-text protocol must
    # have been read: unread bytes are refused. If the handshake fails, the stream is closed.
    #
    # May switch strands.
    #
    # @param tls [true, Hash, OpenSSL::SSL::SSLContext] see {TLS.client_context}
    # @param host [String, nil] the name in the server's certificate; nil: that of `tls`
    # @param timeout [Numeric, nil] seconds for the handshake; nil: no limit
    # @return [self]
    # @raise [EarlyBytesError] when there are unread bytes
    # @raise [CertificateError] when the server's certificate is not valid for that host
    # @raise [HandshakeError]
    # @raise [UsageError, ClosedError, TimeoutError, SystemCallError]
    # @since 0.1.0
    def start_tls(tls = true, host: nil, timeout: TLS::HANDSHAKE_SECONDS)
      begin_client(TLS.__send__(:client, tls, host), timeout)
    end

    # Begins TLS as the server. See {#start_tls}.
    #
    # May switch strands.
    #
    # @param tls [Hash, OpenSSL::SSL::SSLContext] see {TLS.server_context}
    # @param timeout [Numeric, nil] seconds for the handshake; nil: no limit
    # @return [self]
    # @raise (see #start_tls)
    # @since 0.1.0
    def accept_tls(tls, timeout: TLS::HANDSHAKE_SECONDS)
      shake(TLS.__send__(:server, tls), timeout, "accept_tls") { |handshake| handshake.accept }
    end

    # @return [TLS::Connection, nil] the result of the handshake; nil without TLS
    # @since 0.1.0
    def tls
      socket = tls_socket
      @tls ||= TLS::Connection.new(socket, *tls_facts) if socket
    end

    # Writes a String, and returns the stream for the next one.
    #
    # May switch strands.
    #
    # @param string [String]
    # @return [self]
    # @raise (see #write)
    # @since 0.1.0
    def <<(string)
      write(string)
      self
    end

    # @return [String] the class, and the descriptor or IO
    # @since 0.1.0
    def inspect
      return "#<#{self.class} (closed)>" if closed?

      "#<#{self.class} over #{"#{tls.version} on " if tls}#{over.inspect}>"
    end

    # Copies the bytes of this stream to another stream or descriptor, until this one ends or `length` bytes were copied. The
    # bytes in this stream's buffer go first, after those written to the other stream before. No other strand should write there
    # meanwhile. If the kernel can, it moves the bytes itself (splice(2)).
    #
    # If a cancellation, a timeout or an error ends it early, the rest stays in this stream for the next read or copy.
    #
    # May switch strands.
    #
    # @param other [Stream, Integer, IO]
    # @param length [Integer, nil] bytes; nil: all until the end
    # @param timeout [Numeric, nil] seconds without progress; nil: the stream's own
    # @return [Integer] bytes copied; fewer than `length` when the stream has ended
    # @raise [UsageError, ClosedError, TimeoutError, SystemCallError]
    # @since 0.1.0
    def copy_to(other, length = nil, timeout: nil)
      unless length.nil? || (length.is_a?(Integer) && !length.negative?)
        raise UsageError, "copy_to: the length must be an Integer and not negative, or nil, got #{length.inspect}"
      end

      Copy.new(self, other, length, timeout).call
    end

    # One {#copy_to}.
    #
    # @api private
    class Copy
      def initialize(stream, other, length, timeout)
        @stream = stream
        @other = other
        @limits = timeout ? { timeout: timeout } : {}
        @timeout = timeout
        @left = length
        @done = 0
        raise UsageError, "copy_to: a stream cannot be copied to itself" if other.equal?(stream)
      end

      def call
        loop do
          nil until all? || hand_on.zero?
          flush
          return @done if all?

          # 0 may also mean that another strand has called peek, and the buffer has bytes again.
          spliced = splice or break
          count(spliced)
          return @done if all? || @stream.eof?(**@limits)
        end
        hand_on until all? || @stream.eof?(**@limits)
        flush
        @done
      end

      private

      def all? = @left&.zero?

      def count(bytes)
        @done += bytes
        @left -= bytes if @left
        bytes
      end

      # Passes on the buffered bytes. They are removed only after the other side has them.
      def hand_on = count(@other.is_a?(Stream) ? to_stream : to_descriptor)

      def to_stream
        @stream.__send__(:pass_on, @other, @left, @timeout).tap { @other.write("", **@limits) }
      end

      def to_descriptor
        bytes = @stream.__send__(:buffered, @left, @timeout)
        return 0 if bytes.empty?

        written = @timeout ? Machine.current.timeout(@timeout) { write(bytes) } : write(bytes)
        @stream.skip(written)
        written
      end

      def write(bytes) = Machine.current.write(@other, bytes)

      def flush
        if @other.is_a?(Stream)
          @other.flush(**@limits)
        elsif @other.is_a?(IO)
          @other.flush
        end
      end

      def splice
        return if @other.is_a?(Stream) && !@other.__send__(:plain?)

        @stream.__send__(:splice_to, @other, @left, @timeout)
      end
    end
    private_constant :Copy

    # Methods of IO that a stream does not have, and those that it has instead, which differ in detail.
    INSTEAD = {
      puts: "write_line, which adds a line's end to the last", print: "write", printf: "write(format(...))",
      putc: "write", syswrite: "write", write_nonblock: "write, which waits until there is room",
      gets: "read_line, which leaves the line's end out unless told chomp: false", readline: "read_line",
      readlines: "each_line.to_a", each: "each_line", getc: "read(1)", getbyte: "read(1)",
      readbyte: "read(1)", readchar: "read(1)",
      readpartial: "read_partial", sysread: "read_partial", read_nonblock: "read_partial(timeout: 0)"
    }.freeze
    private_constant :INSTEAD

    # Errors of a handshake that has not begun: the stream is not closed.
    NOT_BEGUN = [EarlyBytesError, UsageError, UnsupportedError].freeze
    private_constant :NOT_BEGUN

    # Errors of a handshake whose other side is gone, or does not answer in time.
    CUT_SHORT = [Errno::ECONNRESET, Errno::EPIPE, Errno::ETIMEDOUT, TimeoutError].freeze
    private_constant :CUT_SHORT

    private

    # Methods of Kernel such as `puts` come here too, because they are private.
    def method_missing(name, *)
      instead = INSTEAD[name] or super
      raise NoMethodError.new("undefined method '#{name}' for an instance of #{self.class}: a stream has #{instead}", name,
                              receiver: self)
    end

    def begin_client(client, timeout = nil)
      shake(client.context, timeout, "start_tls") { |handshake, io| handshake.connect(client, port_of(io)) }
    end

    def shake(context, timeout, what)
      machine = Machine.current
      flush
      io = begin_tls
      Net.within(machine, timeout, "#{what}: the handshake was not done") do
        use_tls(TLS.__send__(:shake, machine, io, context) { |handshake| yield(handshake, io) })
      end
      self
    rescue Exception => error
      blame(error) if CUT_SHORT.any? { |kind| kind === error }
      close_at_once unless io.nil? && NOT_BEGUN.any? { |kind| kind === error }
      raise
    end

    def port_of(io)
      address = io.remote_address
      address.ip? ? address.ip_port : address.unix_path
    end

    def lend
      yield self
    rescue Exception
      close_at_once
      raise
    ensure
      close
    end

    def close_at_once
      close(timeout: 0)
    rescue Error, SystemCallError
      nil # the block's error is raised
    end
  end
end
