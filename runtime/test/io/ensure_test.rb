# frozen_string_literal: true

require_relative "io_case"
require "tempfile"

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

  # These go to a worker or into the ring, but wait for nobody.
  def test_a_file_is_changed_however_long_it_takes
    on_machine do |machine|
      file = keep(machine.open(path("file"), "w+")).first
      in_ensure { assert_equal MANY, machine.write(file, "x" * MANY) }
      in_ensure do
        machine.fsync(file)
        machine.ftruncate(file, MANY - 1)
        machine.fallocate(file, MANY)
        assert_equal MANY, machine.statx(file)[:size]
      end
      in_ensure { assert_includes 1..MANY, machine.pread(file, +"", 0, MANY) }
      in_ensure do
        machine.rename(path("file"), path("other"))
        machine.unlink(path("other"))
      end
      assert_raises(Errno::ENOENT) { machine.statx(path("other")) }
      assert_nothing_in_flight
    end
  end

  # A strand that copies file after file is cancelled like any other.
  def test_a_cancelled_strand_is_told_so_before_it_waits_for_a_file
    on_machine do |machine|
      machine.close(machine.open(path("file"), "w"))
      errors = []
      machine.scope do |scope|
        scope.cancel
        2.times { errors << error_of { machine.unlink(path("file")) }.class }
        machine.yield
      end
      assert_equal [Ringspun::Cancelled, NilClass], errors
      machine.close(machine.open(path("file"), "w"))
      machine.scope do |scope|
        scope.cancel
        assert_raises(Ringspun::Cancelled) { machine.unlink(path("file")) } # the first has met another cancellation
        machine.yield
      end
      machine.unlink(path("file"))
    end
  end

  private

  MANY = 200_000
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

module RealEnsureTests
  include EnsureTests
  include InFolder

  STOCK_FILES = {
    write: ->(path) { File.write(path, "x" * MANY) == MANY },
    append: ->(path) { File.open(path, "a") { |file| file.write("x" * MANY) && file.fsync } },
    read: ->(path) { File.write(path, "x" * MANY) && File.read(path).size == MANY },
    pread: ->(path) { File.write(path, "x" * MANY) && File.open(path) { |file| file.pread(MANY, 0) }.size == MANY },
    copy: ->(path) { File.write(path, "x" * MANY) && IO.copy_stream(path, "#{path} copied") == MANY },
    tempfile: ->(_) { Tempfile.create { |file| file.write("x" * MANY) == MANY } }
  }.freeze

  def test_files_of_ruby_are_written_and_read
    on_machine do
      STOCK_FILES.each { |name, call| in_ensure { assert call.call(path(name.to_s)), name } }
    end
  end

  def test_an_io_that_is_ready_is_found_so
    reader, writer = IO.pipe
    writer.write("x")
    on_machine do
      in_ensure do
        assert reader.wait_readable
        assert writer.wait_writable(1)
        assert IO.select([reader])
        assert_equal "x", reader.readpartial(1)
      end
      in_ensure { assert_raises(Ringspun::Cancelled) { reader.wait_readable } }
    end
  ensure
    [reader, writer].each(&:close)
  end

  # A connect of Ruby's waits for the socket in any case.
  def test_a_connection_within_this_computer_is_made
    TCPServer.open("127.0.0.1", 0) do |server|
      on_machine do
        in_ensure do
          client = TCPSocket.new("127.0.0.1", server.addr[1])
          server.accept.close
          client.close
        end
      end
    end
  end
end

class EnsureTest < IOCase
  include RealEnsureTests
end

class OffloadedEnsureTest < IOCase
  include RealEnsureTests
  include OffloadsFiles
end

class SimulatedEnsureTest < IOCase
  include Simulated
  include EnsureTests

  private

  def path(name) = "/#{name}"
end
