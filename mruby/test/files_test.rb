# frozen_string_literal: true

# Files.
class FilesTest < Minitest::Test
  include Strands
  include Descriptors

  def test_what_is_written_is_read
    with_path do |path|
      assert_equal 5, machine.open(path, "w") { |file| file.write("first") }
      machine.open(path, "a") { |file| file.write_line(" second") }
      assert_equal "first second\n", machine.open(path, &:read)
    end
  end

  def test_a_place_in_a_file
    with_path do |path|
      machine.open(path, "w+") do |file|
        file.write("0123456789")
        assert_equal 5, file.pwrite("THREE", 3)
        assert_nil file.fsync
        assert_equal "2THR", file.pread(4, 2)
        assert_equal "89", file.pread(10, 8)
        assert_nil file.pread(1, 10)
        assert_equal "", file.pread(0, 0)
      end
    end
  end

  def test_a_large_file
    bytes = "0123456789abcdef" * 100_000
    with_path do |path|
      machine.open(path, "w+") do |file|
        assert_equal bytes.bytesize, file.write(bytes)
        assert_same true, file.pread(bytes.bytesize, 0) == bytes
      end
      assert_same true, machine.open(path) { |file| file.read(bytes.bytesize) } == bytes
    end
  end

  def test_others_run_while_files_are_read
    with_path do |path|
      machine.open(path, "w") { |file| file.write("x" * 1_000_000) }
      turns = 0
      in_scope do |scope|
        scope.spin { 100.times { turns += 1 and machine.yield } }
        machine.open(path, &:read)
        assert_operator turns, :>, 1
      end
    end
  end

  def test_a_file_that_is_not_there
    error = assert_raises(Errno::ENOENT) { machine.open("/nonexistent/file") }
    assert_equal "No such file or directory - open /nonexistent/file", error.message
    assert_equal 2, error.errno
  end

  def test_a_file_is_closed_after_the_block
    leaving_none do
      with_path do |path|
        assert_raises(ArgumentError) { machine.open(path, "w") { raise ArgumentError } }
        cancelled_in_wait { machine.open(path) { wait(10) } }
      end
    end
  end

  def test_what_is_cancelled_leaves_no_descriptor
    leaving_none do
      with_path do |path|
        machine.open(path, "w") { |file| file.write("x") }
        in_scope do |scope|
          20.times { scope.spin { machine.open(path) { |file| file.fsync } } }
          machine.yield
          scope.cancel
        end
      end
    end
  end

  def test_a_name_is_removed
    with_path do |path|
      machine.open(path, "wx").close
      assert_raises(Errno::EEXIST) { machine.open(path, "wx") }
      assert_nil machine.unlink(path)
      refute File.exist?(path)
      assert_raises(Errno::ENOENT) { machine.unlink(path) }
    end
  end

  def test_on_a_simulated_kernel
    Ringspun::Simulation.explore(50) do |simulated|
      simulated.open("/file", "w+") do |file|
        assert_equal 10, file.write("0123456789")
        file.pwrite("THREE", 3)
        file.fsync
        assert_equal "2THR", file.pread(4, 2)
      end
      assert_equal "012THREE89", simulated.open("/file", &:read)
    end
  end

  def test_bad_arguments
    assert_usage_error("mode", "\"rw\"") { machine.open("/dev/null", "rw") }
    assert_usage_error("mode", "1") { machine.open("/dev/null", 1) }
    assert_usage_error("path", "nil") { machine.open(nil) }
    assert_usage_error("path", "NUL") { machine.open("a\0b") }
    assert_usage_error("permissions") { machine.open("/dev/null", "r", -1) }
    machine.open("/dev/null", "r+") do |file|
      assert_usage_error("offset") { file.pread(1, -1) }
      assert_usage_error("pread", "nil") { file.pread(nil, 0) }
      assert_usage_error("String") { file.pwrite(1, 0) }
    end
  end
end
