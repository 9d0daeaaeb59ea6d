# frozen_string_literal: true

require_relative "io_case"

# Names and sizes of files, and copies of them.
module PathsTests
  def test_unlink
    on_machine do |machine|
      put("gone", "text")
      file = open_file("gone")
      machine.unlink(path("gone"))
      assert_equal "text", read_to_end(file), "it lives while it is open"
      assert_raises(Errno::ENOENT) { machine.unlink(path("gone")) }
      assert_raises(Errno::ENOENT) { machine.open(path("gone")) }
    end
  end

  def test_rename
    on_machine do |machine|
      put("one", "first")
      put("other", "second")
      machine.rename(path("one"), path("other"))
      assert_equal "first", contents("other")
      assert_raises(Errno::ENOENT) { machine.statx(path("one")) }
      error = assert_raises(Errno::ENOENT) { machine.rename(path("one"), path("new")) }
      assert_match(/one.*new/, error.message)
    end
  end

  def test_ftruncate
    on_machine do |machine|
      put("file", "0123456789")
      file = open_file("file", "r+")
      machine.ftruncate(file, 4)
      assert_equal "0123", contents("file")
      machine.ftruncate(file, 6)
      assert_equal "0123\0\0", contents("file")
      assert_raises(Errno::EINVAL) { machine.ftruncate(open_file("file"), 1) }
      assert_raises(Errno::EINVAL) { machine.ftruncate(make_pipe.last, 1) }
      [-1, nil, "1"].each { |size| assert_raises(Ringspun::UsageError) { machine.ftruncate(file, size) } }
      close(file)
      assert_raises(Ringspun::ClosedError) { machine.ftruncate(file, 1) }
    end
  end

  def test_fallocate
    on_machine do |machine|
      put("file", "text")
      file = open_file("file", "r+")
      machine.fallocate(file, 100, 1000)
      assert_equal 1100, machine.statx(file)[:size]
      machine.fallocate(file, 10)
      assert_equal "text", contents("file")[0, 4]
      assert_equal 1100, machine.statx(file)[:size]
      [[0], [-1], [10, -1], [nil]].each { |given| assert_raises(Ringspun::UsageError) { machine.fallocate(file, *given) } }
      assert_raises(Ringspun::UsageError) { machine.fallocate(open_file("file"), 10) }
    end
  end

  def test_copy_file
    on_machine do |machine|
      bytes = sample(300_000)
      put("source", bytes)
      put("copy", "old")
      assert_equal bytes.size, machine.copy_file(path("source"), path("copy"))
      assert_bytes bytes, contents("copy")
      assert_equal bytes.size, machine.copy_file(path("copy"), path("copy"))
      assert_bytes bytes, contents("copy")
      assert_raises(Errno::ENOENT) { machine.copy_file(path("missing"), path("copy")) }
      assert_bytes bytes, contents("copy")
    end
  end

  def test_paths_that_are_none
    on_machine do |machine|
      [nil, 1, "with\0zero"].each do |given|
        [[:unlink, given], [:mkdir, given], [:rename, given, "x"], [:rename, "x", given]].each do |call|
          assert_raises(Ringspun::UsageError, call.inspect) { machine.__send__(*call) }
        end
      end
      put("file", "text")
      [nil, 1, "with\0zero"].each { |given| assert_raises(Ringspun::UsageError) { machine.copy_file(path("file"), given) } }
      [-1, 0o10000, "0777"].each { |mode| assert_raises(Ringspun::UsageError) { machine.mkdir("folder", mode) } }
    end
  end

  # What an object's own to_path does (a timeout in it, a throw, an exit) is no wrong argument.
  def test_what_ends_a_to_path_passes_through
    on_machine do |machine|
      put("file", "text")
      calls = lambda do |path|
        [[:unlink, path], [:mkdir, path], [:open, path], [:statx, path], [:rename, path, "x"], [:copy_file, path, "x"]]
      end
      each_call(calls, -> { machine.sleep(60) }) do |call|
        assert_raises(Ringspun::TimeoutError, call.inspect) { machine.timeout(0.001) { machine.__send__(*call) } } # must pass
      end
      each_call(calls, -> { throw :out, :thrown }) do |call|
        assert_equal :thrown, catch(:out) { machine.__send__(*call) }, call.inspect
      end
      each_call(calls, -> { raise Errno::EIO }) do |call|
        assert_raises(Errno::EIO, call.inspect) { machine.__send__(*call) }
      end
    end
  end

  def test_paths_that_are_not_ascii
    on_machine do |machine|
      wide = "path".encode("UTF-16LE")
      put("file", "text")
      [[:unlink, wide], [:open, wide], [:rename, path("file"), wide], [:copy_file, path("file"), wide]].each do |call|
        assert_raises(Ringspun::UsageError, call.inspect) { machine.__send__(*call) }
      end
    end
  end

  private

  def each_call(calls, body, &)
    object = Object.new
    object.define_singleton_method(:to_path, &body)
    object.define_singleton_method(:inspect) { "a path" }
    calls.call(object).each(&)
  end

  def put(name, text)
    file = open_file(name, "w")
    @machine.write(file, text)
    close(file)
  end

  def contents(name)
    file = open_file(name)
    read_to_end(file).tap { close(file) }
  end

  def open_file(name, mode = "r") = keep(@machine.open(path(name), mode)).first
end

module RealPathsTests
  include PathsTests
  include InFolder

  def test_mkdir
    on_machine do |machine|
      machine.mkdir(path("folder"), 0o750)
      assert_equal 0o750 & ~File.umask, File.stat(path("folder")).mode & 0o777
      assert_raises(Errno::EEXIST) { machine.mkdir(path("folder")) }
      assert_raises(Errno::EISDIR) { machine.unlink(path("folder")) }
    end
  end

  def test_a_copy_has_the_permissions
    on_machine do |machine|
      File.write(path("source"), "x")
      File.chmod(0o751, path("source"))
      machine.copy_file(path("source"), path("copy"))
      assert_equal 0o751, File.stat(path("copy")).mode & 0o777
    end
  end

  # It has a size of 0, and more bytes than that.
  def test_a_copy_of_what_has_no_size
    on_machine do |machine|
      assert_operator machine.copy_file("/proc/self/status", path("copy")), :>, 100
      assert_match(/\AName:/, File.read(path("copy")))
    end
  end

  def test_what_is_no_file_is_not_copied
    on_machine do |machine|
      File.mkfifo(path("fifo"))
      [@folder, path("fifo")].each do |given|
        error = assert_raises(Ringspun::UsageError) { machine.copy_file(given, path("copy")) }
        assert_match(/no file but a (?:directory|fifo)/, error.message)
      end
      File.write(path("source"), "x")
      assert_raises(Errno::EISDIR) { machine.copy_file(path("source"), @folder) }
      assert_equal %w[fifo source], Dir.children(@folder).sort
    end
  end

  def test_a_copy_replaces_no_device
    on_machine do |machine|
      File.mkfifo(path("fifo"))
      File.symlink("/dev/null", path("link"))
      UNIXServer.open(path("socket")).close
      File.write(path("source"), "x")
      { "fifo" => :fifo, "link" => :characterSpecial, "socket" => :socket }.each do |name, type|
        error = assert_raises(Ringspun::UsageError) { machine.copy_file(path("source"), path(name)) }
        assert_match(/#{name} is a #{type}, .*write to it/, error.message)
      end
      assert_equal %w[fifo link socket source], Dir.children(@folder).sort
      assert File.symlink?(path("link"))
    end
  end

  def test_a_copy_replaces_a_link
    on_machine do |machine|
      File.write(path("source"), "new")
      File.write(path("file"), "old")
      File.symlink(path("file"), path("link"))
      File.symlink(path("nothing"), path("dangling"))
      %w[link dangling].each do |name|
        machine.copy_file(path("source"), path(name))
        assert_equal ["file", "new"], [File.ftype(path(name)), File.read(path(name))]
      end
      assert_equal "old", File.read(path("file"))
    end
  end

  def test_a_cancelled_copy_leaves_what_was_there
    on_machine do |machine|
      File.write(path("source"), sample(amount(10_000_000)))
      12.times do |turns|
        File.write(path("copy"), "old")
        strand = spin { machine.copy_file(path("source"), path("copy")) }
        turns.times { machine.yield }
        machine.terminate(strand)
        kept = error_of { strand.join } ? "old" : File.binread(path("source"))
        assert_equal kept.hash, File.binread(path("copy")).hash
        settle until machine.metrics[:ops_in_flight].zero?
        assert_equal %w[copy source], Dir.children(@folder).sort
      end
    end
  end

  # What has changed a name has changed it, and says so.
  def test_cancelled_before_and_meanwhile
    on_machine do |machine|
      20.times do |round|
        File.write(path("file"), "")
        strand = spin { machine.unlink(path("file")) }
        (round % 4).times { machine.yield }
        machine.terminate(strand)
        done = error_of { strand.join }.nil?
        assert_equal !done, File.exist?(path("file"))
        assert_nothing_in_flight
      end
    end
  end
end

class PathsTest < IOCase
  include RealPathsTests
end

# As on a kernel that has no such ops, or a program that asked for it.
class OffloadedPathsTest < IOCase
  include RealPathsTests
  include OffloadsFiles
end

class SimulatedPathsTest < IOCase
  include Simulated
  include PathsTests

  def test_there_are_no_folders
    on_machine { |machine| assert_raises(Ringspun::UnsupportedError) { machine.mkdir("folder") } }
  end

  private

  def path(name) = name
end
