# frozen_string_literal: true

require_relative "hook_case"

# `file_io: :offload`: what stock code reads from and writes to files goes to other threads, however little it is.
class SchedulerOffloadedFilesTest < HookCase
  # Runs the block in a run on a machine with that option.
  def offloading(&)
    on_thread do
      machine = Ringspun::Machine.new(file_io: :offload)
      Ringspun.run(&)
      assert_nothing_in_flight
      assert_equal 0, machine.metrics[:file_writes_inline]
    end
  end

  # The block's value. Others go on while it waits, and at least so many of its calls are done elsewhere.
  def elsewhere(calls = 1, &)
    before = machine.metrics[:ops_offloaded]
    while_others_run(&).tap { assert_operator machine.metrics[:ops_offloaded] - before, :>=, calls }
  end

  # What an IO has kept in its buffer, CRuby writes out past the hooks.
  def test_small_files
    offloading do
      with_file do |path|
        assert_equal 5, File.write(path, "Hello")
        assert_equal "Hello", elsewhere { File.read(path) }
        assert_equal "ell", elsewhere { File.read(path, 3, 1) }
        File.open(path, "a") { |file| file << " World" }
        assert_equal "Hello World", elsewhere { IO.binread(path) }
        assert_equal ["Hello World"], elsewhere { File.foreach(path).to_a }
      end
    end
  end

  def test_a_file_that_is_open
    offloading do
      with_file("0123456789\n") do |path|
        File.open(path, "r+") do |file|
          assert_equal "012", elsewhere { file.sysread(3) }
          assert_equal 2, elsewhere { file.syswrite("ab") }
          assert_equal 5, file.sysseek(0, IO::SEEK_CUR)
          assert_equal "567", elsewhere { file.pread(3, 5) }
          file.sync = true
          file.rewind
          assert_equal "012ab56789\n", elsewhere { file.gets }
          assert_nil(elsewhere { file.gets })
          assert_equal 5, elsewhere { file.write("more\n") }
          assert_equal "0", elsewhere { file.pread(1, 0) }
          assert_equal "012ab56789\nmore\n", elsewhere { File.read(path) }
        end
      end
    end
  end

  # Its hook blocks the thread whatever the option says, for CRuby calls it where no strand can wait.
  def test_pwrite
    offloading do
      with_file("0123456789") do |path|
        File.open(path, "r+") do |file|
          assert_equal 3, file.pwrite("abc", 4)
          assert_equal "0123abc789", elsewhere { file.pread(20, 0) }
        end
      end
    end
  end

  def test_buffers
    offloading do
      Tempfile.create do |file|
        assert_equal 12, elsewhere { pwrite_from(IO::Buffer.for("Hello World!"), file, 1, 12) }
        target = IO::Buffer.new(12)
        assert_operator elsewhere { pread_into(target, file, 7, 5) }, :>=, 5
        assert_equal "World", target.get_string(0, 5)
      end
    end
  end

  def test_a_big_file
    bytes = sample(amount(LARGE))
    offloading do
      with_file do |path|
        assert_equal bytes.bytesize, elsewhere { File.binwrite(path, bytes) }
        assert_bytes bytes, elsewhere { File.binread(path) }
        assert_bytes bytes, File.open(path, "rb") { |file| elsewhere { file.pread(bytes.bytesize, 0) } }
        Tempfile.create do |copy|
          assert_equal bytes.bytesize, IO.copy_stream(path, copy)
          assert_bytes bytes, elsewhere { File.binread(copy.path) }
        end
      end
    end
  end

  def test_errors
    offloading do
      with_file("content") do |path|
        File.open(path) do |file|
          assert_raises(IOError) { file.write("x") }
          assert_raises(EOFError) { elsewhere { file.pread(1, 100) } }
        end
        assert_raises(Errno::EISDIR) { File.open("/") { |folder| folder.sysread(1) } }
        File.open("/dev/full", "w") { |full| assert_raises(Errno::ENOSPC) { full.syswrite("x") } }
      end
    end
  end

  # One file each, all of them at once.
  def test_many_strands
    offloading do
      Dir.mktmpdir do |folder|
        strands = Array.new(amount(40)) do |i|
          machine.spin do
            path = File.join(folder, i.to_s)
            File.write(path, "strand #{i}\n" * i)
            File.read(path)
          end
        end
        assert_equal(Array.new(amount(40)) { |i| "strand #{i}\n" * i }, strands.map(&:await))
      end
    end
  end

  def test_streams_are_tried_at_once_as_ever
    offloading do
      reader, writer = pipe
      before = machine.metrics[:ops_offloaded]
      writer.write("line\n")
      assert_equal "line\n", reader.gets
      assert_equal before, machine.metrics[:ops_offloaded]
    end
  end
end
