# frozen_string_literal: true

require_relative "hook_case"
require "pty"

# Files and what has a path, and IO objects that come to mean something else.
class SchedulerFilesTest < HookCase
  BIG = 10_000_000

  def test_small_files
    Ringspun.run do
      with_file do |path|
        assert_equal 5, File.write(path, "Hello")
        File.open(path, "a") { |file| file << " World" << "\n" }
        assert_equal "Hello World\n", File.read(path)
        assert_equal ["Hello World\n"], File.foreach(path).to_a
        File.open(path, "r+") do |file|
          file.seek(6)
          file.write("there")
          file.rewind
          assert_equal "Hello there", file.read(11)
          assert_equal [11, "\n", nil], [file.pos, file.getc, file.getc]
        end
        assert_equal "there", File.read(path, 5, 6)
        assert_equal "there", IO.binread(path, 5, 6)
      end
    end
  end

  def test_big_files_while_others_run
    Ringspun.run do
      with_file do |path|
        bytes = sample(amount(BIG))
        turns = 0
        others = machine.spin { (turns += 1) && machine.yield while turns }
        assert_equal bytes.bytesize, File.binwrite(path, bytes)
        written = turns
        assert_bytes bytes, File.binread(path)
        assert_operator turns, :>, written if bytes.bytesize > 1_000_000
        machine.terminate(others)
        error_of { others.join }
      end
    end
    assert_nothing_in_flight
  end

  # As one system call does it, and nobody expects less of a file.
  def test_one_call_on_a_file_is_whole
    Ringspun.run do
      with_file do |path|
        bytes = sample(BIG / 2 + 1)
        File.open(path, "w+b") do |file|
          assert_equal bytes.bytesize, file.syswrite(bytes)
          assert_equal bytes.bytesize, file.pwrite(bytes.reverse, 0)
          assert_bytes bytes.reverse, file.pread(bytes.bytesize + 10, 0)
          file.sysseek(0)
          assert_bytes bytes.reverse, file.sysread(bytes.bytesize + 10)
          file.sysseek(3)
          assert_bytes bytes.reverse[3..], file.readpartial(bytes.bytesize)
          assert_raises(EOFError) { file.pread(1, bytes.bytesize) }
        end
      end
    end
  end

  # CRuby calls this hook where the thread holds no GVL.
  def test_many_pwrites
    Ringspun.run do
      with_file do |path|
        File.open(path, "w+") do |file|
          amount(500).times { |i| assert_equal 4, file.pwrite(format("%04d", i), i * 4) }
          assert_equal((0...amount(500)).map { |i| format("%04d", i) }.join, file.read)
        end
        File.open(path) { |file| assert_raises(IOError) { file.pwrite("x", 0) } }
      end
    end
  end

  def test_buffers_of_our_own
    Ringspun.run do
      Tempfile.create do |file|
        source = IO::Buffer.for("Hello World!")
        assert_equal 12, pwrite_from(source, file, 1, 12)
        assert_operator pwrite_from(source, file, 20, 5, 6), :>=, 5
        target = IO::Buffer.new(12)
        assert_equal 12, pread_into(target, file, 1, 12)
        assert_equal "Hello World!", target.get_string
        assert_equal 5, pread_into(target, file, 20, 5, 7)
        assert_equal "Hello WWorld", target.get_string
        file.rewind
        assert_operator write_from(source, file, 4), :>=, 4
        file.rewind
        assert_operator read_into(target, file, 4), :>=, 4
      end
      reader, writer = pipe
      target = IO::Buffer.new(16)
      strand = waiting { read_into(target, reader, 6, 2) }
      IO::Buffer.for("abc").write(writer)
      settle
      write_from(IO::Buffer.for("xdefx"), writer, 3, 1)
      assert_includes 6..7, strand.await
      assert_equal "abcdef", target.get_string(2, 6)
    end
  end

  def test_virtual_files_and_devices
    Ringspun.run do
      assert_match(/^Pid:\t#{$$}$/, File.read("/proc/self/status"))
      assert_equal "\0" * 10, File.open("/dev/zero") { |file| file.read(10) }
      assert_equal 20_000, File.open("/dev/null", "w") { |file| file.syswrite("x" * 20_000) }
      assert_equal "", File.read("/dev/null")
    end
  end

  def test_a_fifo
    Ringspun.run do
      Dir.mktmpdir do |folder|
        path = File.join(folder, "fifo")
        File.mkfifo(path)
        both, = keep(File.open(path, "r+"))
        strand = waiting { both.gets }
        both.syswrite("through\n")
        assert_equal "through\n", strand.await
      end
    end
  end

  def test_a_terminal
    Ringspun.run do
      master, slave = keep(*PTY.open)
      strand = waiting { slave.gets }
      master.write("typed\n")
      assert_equal "typed\n", strand.await
      strand = waiting { [master.gets, master.gets] }
      slave.puts("printed")
      assert_equal %W[typed\r\n printed\r\n], strand.await
      bytes = "0123456789\n" * 2000
      slave.sync = true
      strand = waiting { slave.write(bytes) }
      assert_equal bytes, Array.new(2000) { master.gets.sub("\r", "") }.join
      assert_equal bytes.bytesize, strand.await
    end
  end

  # --- IO.copy_stream ---

  def test_copy_stream_from_file_to_socket_and_back
    Ringspun.run do
      with_file(bytes = sample(amount(LARGE))) do |path|
        reader, writer = pair
        strand = waiting { IO.copy_stream(path, writer).tap { writer.close } }
        Tempfile.create do |file|
          assert_equal bytes.bytesize, IO.copy_stream(reader, file)
          assert_bytes bytes, File.binread(file.path)
        end
        assert_equal bytes.bytesize, strand.await
      end
    end
    assert_nothing_in_flight
  end

  def test_copy_stream_from_pipe_to_pipe
    Ringspun.run do
      source, feed = pipe
      drain, target = pipe
      bytes = sample(amount(LARGE))
      copier = waiting { IO.copy_stream(source, target).tap { target.close } }
      feeder = machine.spin { feed.write(bytes).tap { feed.close } }
      assert_bytes bytes, drain.read
      assert_equal [bytes.bytesize] * 2, [copier.await, feeder.await]
    end
  end

  def test_copy_stream_to_what_only_writes
    Ringspun.run do
      reader, writer = pair
      target = StringIO.new
      strand = waiting { IO.copy_stream(reader, target, 8) }
      writer.write("four")
      settle
      writer.write("fourmore")
      assert_equal [8, "fourfour"], [strand.await, target.string]
    end
  end

  # --- an IO that comes to mean something else ---

  def test_a_file_reopened_as_a_pipe
    Ringspun.run do
      reader, writer = pipe
      with_file("content") do |path|
        file, = keep(File.open(path))
        file.sync = true
        assert_equal "content", file.read
        file.reopen(reader)
        assert_equal :wait_readable, file.read_nonblock(5, exception: false)
        strand = waiting { file.gets }
        writer.puts("line")
        assert_equal "line\n", strand.await
      end
    end
  end

  def test_a_pipe_reopened_as_a_file_and_as_a_socket
    Ringspun.run do
      reader, writer = pipe
      strand = waiting { reader.readpartial(10) }
      writer.write("pipe")
      assert_equal "pipe", strand.await
      one, other = pair
      reader.reopen(one)
      strand = waiting { reader.readpartial(10) }
      other.write("socket")
      assert_equal "socket", strand.await
      with_file("content") do |path|
        reader.reopen(path)
        assert_equal "content", reader.read
      end
    end
  end

  def test_a_number_that_is_closed_and_used_again
    Ringspun.run do
      number = nil
      with_file("file") do |path|
        [-> { pipe }, -> { pair }, -> { stream("blocking_pipe") }, -> { pipe }].each do |make|
          file = File.open(path)
          number ||= file.fileno
          assert_equal "file", file.sysread(10)
          file.close
          reader, writer = make.call
          assert_equal number, reader.fileno
          assert_equal :wait_readable, reader.read_nonblock(10, exception: false)
          strand = waiting { reader.readpartial(10) }
          writer.write("stream")
          assert_equal "stream", strand.await
          [reader, writer].each(&:close)
        end
      end
    end
  end

  # Behind the back of the objects that stand for it.
  def test_a_number_under_an_object_that_stays
    Ringspun.run do
      with_file("file") do |path|
        number = IO.sysopen(path)
        object = IO.for_fd(number, autoclose: false)
        assert_equal "file", object.sysread(10)
        machine.close(number)
        reader, writer = pipe
        assert_equal number, reader.fileno
        strand = waiting { object.sysread(10) }
        assert_equal :wait_readable, object.read_nonblock(10, exception: false)
        writer.write("stream")
        assert_equal "stream", strand.await
      end
    end
  end

  def test_copies_of_an_io
    Ringspun.run do
      reader, writer = pair
      writer.write("ab")
      assert_equal "a", reader.sysread(1)
      copy, = keep(reader.dup)
      assert_equal "b", copy.sysread(10)
      strand = waiting { copy.sysread(10) }
      reader.close
      writer.write("c")
      assert_equal "c", strand.await
    end
  end

  def test_a_frozen_io_is_refused_as_ever
    Ringspun.run do
      reader, writer = pipe
      writer.write("x")
      reader.dup.freeze.then { |frozen| assert_raises(FrozenError) { frozen.read(1) } && frozen.close }
      assert_equal "x", reader.read(1)
    end
  end
end
