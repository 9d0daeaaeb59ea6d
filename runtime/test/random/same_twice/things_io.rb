# frozen_string_literal: true

class SameTwice
  # The bytes of a pipe.
  class Bytes < Thing
    LINE = "a line\n"

    def prepare = (@reader, @writer = pair)
    def pair = IO.pipe
    def await = one_of(*ways)
    def give = @writer.write(LINE)
    def shut = @writer.close

    # Without readpartial: in a thread it takes no notice of IO#timeout=.
    def limited
      one_of(-> { @reader.wait_readable(TINY) }, -> { IO.select([@reader], nil, nil, TINY) },
             -> { IO.select([@reader], nil, nil, 0) }, -> { @reader.wait(IO::READABLE, TINY) }, -> { timed(-> { @reader.gets }) },
             -> { timed(-> { @reader.getbyte }) }, -> { timed(-> { @reader.read(3) }) })
    end

    # The rest is what a wait that was cut short has not taken along.
    def works
      give
      @writer.close_write if @writer.respond_to?(:close_write)
      @writer.close unless @writer.closed?
      @reader.read
    end

    def dispose = [@reader, @writer].each { |io| io.close unless io.closed? }

    private

    def ways
      [-> { @reader.gets }, -> { @reader.readpartial(100) }, -> { @reader.read(LINE.size) }, -> { @reader.readline },
       -> { @reader.getc + @reader.read(LINE.size - 1) }, -> { @reader.readbyte && @reader.gets }, -> { @reader.each_line.first },
       -> { @reader.wait_readable && @reader.read_nonblock(100) }, -> { IO.select([@reader]) && @reader.readpartial(100) },
       -> { @reader.sysread(100) }, -> { @reader.each_line.next }, -> { @reader.each_char.first(2).join + @reader.gets },
       -> { with_timeout(LONG) { @reader.gets } }, -> { read_by_tries }]
    end

    def read_by_tries
      loop do
        got = @reader.read_nonblock(9, exception: false)
        return got unless got == :wait_readable

        @reader.wait_readable
      end
    end

    def timed(call) = with_timeout(TINY) { call.call }

    def with_timeout(seconds)
      @reader.timeout = seconds
      yield
    ensure
      @reader.timeout = nil unless @reader.closed?
    end
  end

  class SocketBytes < Bytes
    def pair = one_of(-> { UNIXSocket.pair }, -> { Socket.pair(:UNIX, :STREAM, 0) })

    private

    def ways = super + [-> { @reader.recv(100) }, -> { @reader.recvmsg.first }, -> { @reader.recv(100, 0) }]
  end

  # Room in a pipe that is full.
  class Space < Thing
    MANY = 100_000

    def prepare
      @reader, @writer = IO.pipe
      @filled = 0
      loop do
        written = @writer.write_nonblock("f" * 4096, exception: false)
        break if written == :wait_writable

        @filled += written
      end
    end

    def await
      text = "x" * MANY
      one_of(-> { @writer.write(text) }, -> { @writer.write("x" * 10, "y" * (MANY - 10)) }, -> { (@writer << text).class },
             -> { @writer.wait_writable && @writer.write(text) }, -> { IO.select(nil, [@writer]) && @writer.write(text) })
    end

    def give = @reader.read(@filled + MANY).size
    def limited = one_of(-> { @writer.wait_writable(TINY) }, -> { IO.select(nil, [@writer], nil, TINY) }, -> { timed })
    def shut = @reader.close

    def works
      nil until @reader.read_nonblock(65_536, exception: false) == :wait_readable
      @writer.write("z")
      @reader.readpartial(10)
    end

    def dispose = [@reader, @writer].each { |io| io.close unless io.closed? }

    private

    def timed
      @writer.timeout = TINY
      @writer.write("x" * MANY)
    ensure
      @writer.timeout = nil
    end
  end

  # A connection.
  class Guest < Thing
    def prepare
      @server = TCPServer.new("127.0.0.1", 0)
      @guests = []
    end

    def await
      socket = one_of(-> { @server.accept }, -> { @server.wait_readable && @server.accept_nonblock },
                      -> { IO.select([@server]) && @server.accept })
      socket.readpartial(10)
    ensure
      socket&.close
    end

    def give
      @guests << (socket = TCPSocket.new("127.0.0.1", @server.addr[1]))
      socket.write("hello")
    end

    def limited = @server.wait_readable(TINY)
    def dispose = [@server, *@guests].each(&:close)
  end

  # The end of a process, which costs more than all others.
  class Child < Thing
    def prepare
      reader, @writer = IO.pipe
      @pid = spawn("read line; exit 3", in: reader, @writer => :close)
      reader.close
    end

    def await
      _, status = one_of(-> { Process.wait2(@pid) }, -> { [Process.wait(@pid), $?] }, -> { [nil, Process.detach(@pid).value] })
      @pid = nil
      status.exitstatus
    end

    def give = @writer.write("\n")

    def dispose
      @writer.close
      Process.wait(@pid) if @pid
    end
  end

  # What a command writes.
  class Command < Thing
    def prepare = @command = IO.popen("cat", "r+")

    def await
      line = @command.gets
      [line, @command.read, @command.close, $?.exitstatus]
    end

    def give
      @command.puts("a line")
      @command.close_write
    end

    def dispose = @command.closed? || @command.close
  end

  CHILDREN = [Child, Command].freeze
  THINGS.push(Bytes, Bytes, SocketBytes, SocketBytes, Space, Guest)
end
