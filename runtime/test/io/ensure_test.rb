# frozen_string_literal: true

require_relative "io_case"

# What a strand can do in an `ensure` block after it was cancelled: all that is done at once, and what waits for a file alone.
module EnsureTests
  def test_what_streams_have_at_once_is_done
    on_machine do |machine|
      reader, writer = make_pipe
      one, other = make_socketpair
      in_ensure do
        assert_equal 5, machine.write(writer, "hello")
        assert_equal 10, machine.writev(writer, %w[hello world])
        assert_equal 5, machine.send(one, "hello")
        assert_equal 5, machine.sendmsg(other, "hello")
        assert_equal IO::WRITABLE, machine.poll(writer, :writable) & IO::WRITABLE
      end
      in_ensure { assert_includes 1..15, machine.read(reader, +"", 15) }
      in_ensure { assert_includes 1..5, machine.recv(one, +"", 5) }
      in_ensure { assert_includes 1..5, machine.recvmsg(other, +"").first }
      in_ensure do
        machine.shutdown(one, :RDWR)
        close(one)
        close(writer)
      end
    end
  end

  def test_connections_are_made_and_taken
    on_machine do |machine|
      listener = client = nil
      in_ensure do
        listener = make_listener
        client = make_socket(:UNIX, :STREAM)
        machine.setsockopt(client, Socket::SOL_SOCKET, Socket::SO_KEEPALIVE, true)
        machine.connect(client, ADDRESS)
        assert_equal 0, machine.getsockopt(client, Socket::SOL_SOCKET, Socket::SO_ERROR)
      end
      in_ensure do
        taken = keep(machine.accept(listener)).first
        machine.write(taken, "x")
        assert_equal 1, machine.read(client, +"")
        make_pipe
        make_socketpair
      end
    end
  end

  def test_what_would_wait_is_refused
    on_machine do |machine|
      reader, = make_pipe
      one, = make_socketpair
      listener = make_listener
      [-> { machine.read(reader, +"") }, -> { machine.recv(one, +"") }, -> { machine.poll(one, :readable) },
       -> { machine.accept(listener) }, -> { machine.readv(reader, [+"1"]) }, -> { machine.recvmsg(one, +"") },
       -> { machine.sleep(0) }].each do |wait|
        in_ensure { assert_raises(Ringspun::Cancelled, &wait) }
      end
      assert_nothing_in_flight
    end
  end

  def test_a_stream_is_written_read_and_closed
    on_machine do |machine|
      one, other = machine.socketpair.map { |socket| Ringspun::Stream.new(socket) }
      in_ensure do
        one.write("goodbye\n")
        one.close
      end
      in_ensure { assert_includes 1..8, other.read_partial(8).bytesize }
      in_ensure { other.close }
    end
  end

  # One that waited for the cancelled one is served as at any other time.
  def test_who_waited_for_it_gets_what_was_written
    on_machine do |machine|
      reader, writer = make_pipe
      waiter = waiting(/read/) { read_to_end(reader) }
      in_ensure do
        machine.write(writer, "goodbye")
        close(writer)
      end
      assert_equal "goodbye", waiter.await
    end
  end

  def test_a_file_is_made_and_looked_at
    on_machine do |machine|
      file = nil
      in_ensure do
        file = keep(machine.open(path("file"), "w+")).first
        assert_equal 5, machine.write(file, "hello")
        assert_equal 5, machine.pwrite(file, "HELLO", 0)
      end
      in_ensure do
        assert_includes 1..5, machine.pread(file, +"", 0)
        assert_equal 5, machine.statx(path("file"))[:size]
        assert_equal 5, machine.statx(file)[:size]
      end
    end
  end

  private

  ADDRESS = Socket.sockaddr_un("\0ringspun-ensure-#{Process.pid}")

  def make_listener
    make_socket(:UNIX, :STREAM).tap do |listener|
      @machine.bind(listener, ADDRESS)
      @machine.listen(listener, 1)
    end
  end

  # Runs the block in a strand that has been cancelled and is on its way out.
  def in_ensure
    done = false
    strand = waiting do
      @machine.sleep
    ensure
      yield
      done = true
    end
    @machine.terminate(strand)
    assert_raises(Ringspun::TerminatedError) { strand.join }
    assert done, "the ensure block was cut short"
  end
end

class EnsureTest < IOCase
  include EnsureTests
  include InFolder
end

class SimulatedEnsureTest < IOCase
  include Simulated
  include EnsureTests

  private

  def path(name) = "/#{name}"
end
