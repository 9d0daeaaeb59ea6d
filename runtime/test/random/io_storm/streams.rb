# frozen_string_literal: true

module IOStorm
  # One direction of a connection, and how far it is.
  class Stream
    attr_reader :reader, :writer, :total, :key
    attr_accessor :sent, :received

    def initialize(reader, writer, total, key, socket: false)
      @reader, @writer, @total, @key, @socket = reader, writer, total, key, socket
      @sent = @received = 0
    end

    def socket? = @socket
    def bytes(place, length) = Pattern.at(@key + place, length)
    def bytes?(place, bytes) = Pattern.at?(@key + place, bytes)
  end

  # Sends what the stream is made of.
  class Writer < Role
    ENDS = [Errno::EPIPE, Errno::ECONNRESET, Ringspun::ClosedError].freeze

    def initialize(round, stream, doomed: false)
      super(round)
      @stream = stream
      @doomed = doomed
    end

    private

    def step
      return @done = true if @stream.sent == @stream.total || @stream.writer.closed?

      disturbed { @stream.sent += write }
    rescue *ENDS
      raise unless @doomed

      @done = true
    end

    def io = @stream.writer.io
    def chunk = [1 + pick([100, 5000, 200_000][pick(3)]), @stream.total - @stream.sent].min

    def write
      bytes = +"" << @stream.bytes(@stream.sent, chunk)
      case pick(@stream.socket? ? 7 : 4)
      when 0 then @round.changing(bytes) { @machine.write(io, bytes) }
      when 1 then @machine.write(io, buffer_of(bytes))
      when 2 then @machine.write(io, IO::Buffer.for(bytes.freeze))
      when 3 then parts_of(bytes).then { |parts| @round.changing(*parts.grep(String)) { @machine.writev(io, parts) } }
      when 4 then @round.changing(bytes) { @machine.send(io, bytes) }
      when 5 then @machine.send(io, buffer_of(bytes))
      else @round.changing(bytes) { @machine.sendmsg(io, bytes) }
      end
    end

    # At times a slice of a larger one.
    def buffer_of(bytes)
      return IO::Buffer.new(bytes.bytesize).tap { |buffer| buffer.set_string(bytes) } if pick(2).zero?

      IO::Buffer.new(bytes.bytesize + 10).slice(5, bytes.bytesize).tap { |buffer| buffer.set_string(bytes) }
    end

    def parts_of(bytes)
      count = 1 + pick(5)
      size = (bytes.bytesize + count - 1) / count
      parts = Array.new(count) { |i| bytes.byteslice(i * size, size) || +"" }
      parts.map { |part| part.empty? || pick(2).zero? ? part : buffer_of(part) }
    end
  end

  # Takes what comes, and compares.
  class Reader < Role
    ENDS = [Errno::ECONNRESET, Ringspun::ClosedError].freeze

    def initialize(round, stream, doomed: false)
      super(round)
      @stream = stream
      @doomed = doomed
    end

    private

    def step
      return @done = true if @stream.reader.closed?

      disturbed { take(read) }
    rescue *ENDS
      raise unless @doomed

      @done = true
    end

    def io = @stream.reader.io

    def take(bytes)
      return unless bytes
      return @done = true if bytes.empty?

      place = @stream.received
      @stream.received += bytes.bytesize
      Tally.add(bytes: bytes.bytesize)
      return if @stream.bytes?(place, bytes)

      @round.complain("#{bytes.bytesize} bytes from place #{place} of stream #{@stream.key} are wrong (#{@how})")
      @done = true
    end

    WAYS = %i[string behind buffer slice vector polled].freeze
    SOCKET_WAYS = %i[received received_buffer message peeked].freeze

    # The bytes that came.
    def read
      ways = @stream.socket? ? WAYS + SOCKET_WAYS : WAYS
      @how = ways[pick(ways.size)]
      __send__(@how, 1 + pick([100, 5000, 100_000][pick(3)]))
    end

    def string(length)
      bytes = +"old"
      count = @machine.read(io, bytes, length)
      checked(count, bytes)
    end

    def behind(length)
      bytes = +"head"
      count = @machine.read(io, bytes, length, 4)
      return checked(count, bytes.byteslice(4..)) if bytes.start_with?("head")

      @round.complain("the head of the String is gone")
    end

    def buffer(length)
      buffer = IO::Buffer.new(length)
      count = @machine.read(io, buffer)
      buffer.get_string(0, count)
    end

    def slice(length)
      buffer = IO::Buffer.new(length + 20)
      count = @machine.read(io, buffer.slice(10, length))
      return buffer.get_string(10, count) if [0, length + 10].all? { |at| buffer.get_string(at, 10) == "\0" * 10 }

      @round.complain("bytes beside the slice")
    end

    def vector(length)
      parts = [+"x" * (1 + (length / 3)), IO::Buffer.new(1 + (length / 2)), +"", +"y" * length]
      count = @machine.readv(io, parts)
      parts.map { |part| part.is_a?(String) ? part.b : part.get_string }.join.byteslice(0, count)
    end

    def polled(length)
      mask = @machine.poll(io, :readable)
      mask.zero? ? @round.complain("ready for nothing") : string(length)
    end

    def received(length)
      bytes = +""
      checked(@machine.recv(io, bytes, length), bytes)
    end

    def received_buffer(length)
      buffer = IO::Buffer.new(length)
      buffer.get_string(0, @machine.recv(io, buffer))
    end

    def message(length)
      bytes = +""
      checked(@machine.recvmsg(io, bytes, length).first, bytes)
    end

    def peeked(length)
      bytes = +""
      count = @machine.recv(io, bytes, length, Socket::MSG_PEEK)
      return if checked(count, bytes).then { |seen| !seen || @stream.bytes?(@stream.received, seen) }

      @round.complain("what was looked at is wrong")
    end

    def checked(count, bytes)
      return bytes if count == bytes.bytesize

      @round.complain("#{count} bytes read, and #{bytes.bytesize} in the String (#{@how})")
    end
  end

  # Something that bytes go through, from its making to its end.
  class Streams < Scene
    MADE = %i[machine_pipe stock_pipe blocking_pipe machine_pair stock_pair tcp].freeze

    def play
      make
      play_streams
    end

    private

    def make
      made = MADE[pick(MADE.size)]
      @socket = %i[machine_pair stock_pair tcp].include?(made)
      @ends = __send__(made)
      @streams = [stream(*@ends)]
      @streams << stream(*@ends.reverse) if @socket
    end

    def stream(reader, writer)
      size = pick(20).zero? ? 1_500_000 : 60_000
      Stream.new(reader, writer, pick(GCStress::WANTED ? 2000 : size), pick(Pattern::SIZE), socket: @socket)
    end

    def machine_pipe = @round.ends_of(@machine.pipe)
    def stock_pipe = @round.ends_of(IO.pipe)
    def blocking_pipe = @round.ends_of(IO.pipe.each { |io| io.nonblock = false })
    def machine_pair = @round.ends_of(@machine.socketpair)
    def stock_pair = @round.ends_of(UNIXSocket.pair)

    # The connection waits in the listener's queue.
    def tcp
      listener, one = Array.new(2) { @round.end_of(@machine.socket(:INET, :STREAM)) }
      @machine.bind(listener.io, Addrinfo.tcp("127.0.0.1", 0))
      @machine.listen(listener.io)
      @machine.connect(one.io, Socket.for_fd(listener.io).tap { |socket| socket.autoclose = false }.local_address)
      other = @round.end_of(@machine.accept(listener.io))
      listener.close
      @round.forget(listener)
      [one, other]
    end

    def play_streams
      @machine.scope do |scope|
        @streams.each { |stream| scope.spin { play_stream(stream) } }
      end
      @streams.each { |stream| look_back(stream) }
      @ends.each(&:close)
      @round.forget(*@ends)
    end

    def play_stream(stream)
      @machine.scope do |scope|
        scope.spin do
          @round.act(Writer.new(@round, stream))
          @socket ? @machine.shutdown(stream.writer.io, :WR) : stream.writer.close
        end
        @round.act(Reader.new(@round, stream))
      end
    end

    def look_back(stream)
      return if [stream.sent, stream.received] == [stream.total] * 2

      @round.complain("stream #{stream.key}: #{stream.sent} of #{stream.total} bytes sent, #{stream.received} received")
    end
  end

  # One that loses an end while strands wait there.
  class DoomedStreams < Streams
    private

    def make
      super
      @streams = [stream(*@ends)]
    end

    def play_stream(stream)
      closing_soon(@ends[pick(2)]) do
        @machine.scope do |scope|
          scope.spin { @round.act(Writer.new(@round, stream, doomed: true)).then { stream.writer.close } }
          @round.act(Reader.new(@round, stream, doomed: true)).then { stream.reader.close }
        end
      end
    end

    def look_back(stream)
      return if stream.received <= stream.sent

      @round.complain("stream #{stream.key}: #{stream.sent} bytes sent, #{stream.received} received")
    end
  end
end
