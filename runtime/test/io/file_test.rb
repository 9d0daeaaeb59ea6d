# frozen_string_literal: true

require_relative "io_case"
require "pathname"

module FileTests
  def test_what_is_written_is_read
    on_machine do |machine|
      file = open_file("notes", "w+")
      assert_equal 11, machine.write(file, "hello world")
      string = +""
      assert_equal 0, machine.read(file, string), "the position is behind what was written"
      assert_moved 11, count = machine.pread(file, string, 0)
      assert_equal "hello world"[0, count], string
      other = open_file("notes")
      assert_equal "hello world", read_to_end(other)
    end
  end

  def test_the_position_moves_with_reads_and_writes_and_not_with_pread_and_pwrite
    on_machine do |machine|
      file = open_file("position", "w+")
      machine.write(file, "0123456789")
      machine.pwrite(file, "ab", 2)
      machine.write(file, "X")
      assert_equal "01ab456789X", pread_exactly(file, 0, 100)
      reader = open_file("position")
      assert_equal "01", read_exactly(reader, 2)
      assert_equal "56", pread_exactly(reader, 5, 2)
      assert_equal "ab4", read_exactly(reader, 3)
    end
  end

  def test_pread_knows_both_the_place_in_the_file_and_in_the_buffer
    on_machine do |machine|
      file = open_file("places", "w+")
      machine.write(file, "0123456789")
      string = +"head"
      count = machine.pread(file, string, 3, 4, 2)
      assert_moved 4, count
      assert_equal "he" + "3456"[0, count], string
      buffer = IO::Buffer.new(8)
      buffer.set_string("-" * 8)
      count = machine.pread(file, buffer, 8, 4, 3)
      assert_moved 2, count
      assert_equal "---" + "89"[0, count], buffer.get_string(0, 3 + count)
      assert_equal 0, machine.pread(file, string, 10)
      assert_equal 0, machine.pread(file, string, 1_000_000_000_000), "far behind the end"
      assert_equal "", string
    end
  end

  def test_readv_and_writev_move_the_position
    on_machine do |machine|
      file = open_file("vector", "w+")
      assert_equal 6, machine.writev(file, %w[ab cd ef])
      assert_equal 2, machine.write(file, "gh")
      reader = open_file("vector")
      assert_equal "a", read_exactly(reader, 1)
      strings = [+"..", +"..."]
      count = machine.readv(reader, strings)
      assert_moved 5, count
      assert_equal "bcdef"[0, count], strings.join[0, count]
      assert_equal "bcdefgh"[count..], read_to_end(reader)
    end
  end

  def test_large_files_go_through_whole
    on_machine do |machine|
      file = open_file("large", "w+")
      bytes = sample(simulated? ? 400_000 : 8_000_000)
      assert_equal bytes.bytesize, machine.write(file, bytes)
      assert_equal bytes.bytesize, machine.pwrite(file, bytes, bytes.bytesize)
      assert_equal bytes.bytesize, machine.writev(file, [bytes[0, 100_000], bytes[100_000..]])
      assert_bytes bytes + bytes, pread_exactly(file, 0, 3 * bytes.bytesize)
    end
  end

  def test_an_io_buffer_goes_to_a_file_and_back
    on_machine do |machine|
      file = open_file("buffer", "w+")
      bytes = sample(200_000)
      source = IO::Buffer.new(200_000)
      source.set_string(bytes)
      assert_equal 200_000, machine.pwrite(file, source, 0)
      target = IO::Buffer.new(200_000)
      done = 0
      done += machine.pread(file, target, done, 200_000 - done, done) while done < 200_000
      assert_bytes bytes, target.get_string
    end
  end

  def test_append_mode_writes_at_the_end_whatever_the_position
    on_machine do |machine|
      machine.write(open_file("log", "w"), "one,")
      log = open_file("log", "a")
      machine.write(log, "two,")
      machine.pwrite(log, "three", 0)
      assert_equal "one,two,three", read_to_end(open_file("log"))
    end
  end

  def test_modes_do_what_they_say
    on_machine do |machine|
      error = assert_raises(Errno::ENOENT) { open_file("missing") }
      assert_match(/missing/, error.message)
      assert_raises(Errno::ENOENT) { open_file("missing", "r+") }
      machine.write(open_file("made", "wx"), "kept")
      assert_raises(Errno::EEXIST) { open_file("made", "wx") }
      assert_equal "kept", read_to_end(open_file("made", "a+"))
      changed = open_file("made", "r+")
      machine.write(changed, "K")
      assert_equal "ept", read_to_end(changed)
      assert_equal "", read_to_end(open_file("made", "w+"))
      assert_equal 0, machine.statx(open_file("made", File::RDONLY))[:size]
    end
  end

  def test_a_descriptor_is_for_what_it_was_opened_for
    on_machine do |machine|
      write_only = open_file("one_way", "w")
      read_only = open_file("one_way")
      errors = [-> { machine.read(write_only, +"") }, -> { machine.pread(write_only, +"", 0) },
                -> { machine.readv(write_only, [+"x"]) }, -> { machine.write(read_only, "x") },
                -> { machine.pwrite(read_only, "x", 0) }, -> { machine.writev(read_only, ["x"]) }].map { |call| error_of(&call) }
      errors.each { |error| assert_kind_of Ringspun::Error, error }
      assert_equal "", read_to_end(read_only)
    end
  end

  def test_a_hole_reads_as_zeros
    on_machine do |machine|
      file = open_file("hole", "w+")
      machine.pwrite(file, "x", 70_000)
      assert_bytes "\0" * 70_000 + "x", pread_exactly(file, 0, 80_000)
    end
  end

  def test_statx_tells_of_a_file_by_descriptor_and_by_name
    on_machine do |machine|
      file = open_file("stat", "w")
      machine.write(file, "12345")
      [file, path("stat"), Pathname(path("stat"))].each do |target|
        stat = machine.statx(target)
        assert_equal :file, stat[:type]
        assert_equal 5, stat[:size]
        assert_equal 1, stat[:links]
      end
      assert_raises(Errno::ENOENT) { machine.statx(path("nothing")) }
      reader, = make_pipe
      assert_equal :fifo, machine.statx(reader)[:type]
      assert_equal :socket, machine.statx(make_socketpair.first)[:type]
    end
  end

  def test_fsync
    on_machine do |machine|
      file = open_file("durable", "w")
      machine.write(file, "data")
      assert_nil machine.fsync(file)
      assert_nil machine.fsync(file, true)
      assert_raises(Errno::EINVAL) { machine.fsync(make_pipe.last) }
    end
  end

  def test_many_strands_on_one_file
    on_machine do |machine|
      file = open_file("shared", "w+")
      blocks = Array.new(30) { |i| sample(simulated? ? 5000 : 100_000, i) }
      size = blocks.first.bytesize
      await_all(blocks.each_with_index.map { |block, i| spin { machine.pwrite(file, block, i * size) } })
      read = await_all(Array.new(30) { |i| spin { pread_exactly(file, i * size, size) } })
      read.zip(blocks) { |actual, expected| assert_bytes expected, actual }
    end
  end

  def test_nothing_is_always_there
    on_machine do |machine|
      file = open_file("nothing", "w+")
      machine.write(file, "abc")
      assert_equal 0, machine.read(file, +"", 0)
      assert_equal 0, machine.pread(file, +"", 0, 0)
      assert_equal 0, machine.pwrite(file, "", 1)
      assert_equal 0, machine.write(file, "")
      assert_equal "abc", pread_exactly(file, 0, 10)
    end
  end

  def test_a_cancelled_strand_leaves_its_file_usable
    on_machine do |machine|
      file = open_file("cancelled", "w+")
      bytes = sample(300_000)
      strands = Array.new(8) { spin { machine.pwrite(file, bytes, 0) } }
      machine.yield
      strands.each { |strand| machine.terminate(strand) }
      strands.each { |strand| error_of { strand.join } }
      machine.pwrite(file, bytes, 0)
      assert_bytes bytes, pread_exactly(file, 0, 400_000)
      close(file)
    end
  end

  private

  def open_file(name, ...) = keep(@machine.open(path(name), ...)).first

  def path(name) = simulated? ? name : File.join(@folder ||= Dir.mktmpdir, name)

  def pread_exactly(io, from, size)
    bytes = String.new(capacity: size)
    while bytes.bytesize < size
      return bytes if @machine.pread(io, bytes, from + bytes.bytesize, size - bytes.bytesize, bytes.bytesize).zero?
    end
    bytes
  end
end

# What only a real file has.
module RealFileTests
  include FileTests

  O_DIRECTORY = 0o200000

  def teardown
    FileUtils.remove_entry(@folder) if @folder
    super
  end

  def test_places_beyond_4_gib
    on_machine do |machine|
      file = open_file("sparse", "w+")
      place = 5 * 1024**3 + 123
      assert_equal 4, machine.pwrite(file, "here", place)
      assert_equal place + 4, machine.statx(file)[:size]
      assert_operator machine.statx(file)[:blocks] * 512, :<, 100_000_000, "the file is sparse"
      assert_equal "here", pread_exactly(file, place, 10)
      assert_equal "\0\0he", pread_exactly(file, place - 2, 4)
      large = sample(200_000)
      assert_equal 200_000, machine.pwrite(file, large, place)
      assert_bytes large, pread_exactly(file, place, 300_000)
      assert_equal 0, machine.pread(file, +"", 2**62), "a place that is no Fixnum"
      assert_raises(Errno::EFBIG, Errno::EINVAL) { machine.pwrite(file, "x", 2**63 - 1) }
    end
  end

  def test_a_file_is_closed_on_exec
    on_machine do
      io = IO.for_fd(open_file("exec", "w"), autoclose: false)
      assert_predicate io, :close_on_exec?
    end
  end

  def test_open_takes_permissions_and_flags
    on_machine do |machine|
      open_file("private", "w", 0o600)
      assert_equal 0o600, machine.statx(path("private"))[:mode]
      umask = File.umask
      open_file("public", File::RDWR | File::CREAT | File::EXCL)
      assert_equal 0o666 & ~umask, machine.statx(path("public"))[:mode]
      folder = keep(machine.open(@folder, O_DIRECTORY)).first
      assert_equal :directory, machine.statx(folder)[:type]
      assert_raises(Errno::EISDIR) { machine.read(folder, +"") }
      assert_raises(Errno::ENOTDIR) { open_file("public", O_DIRECTORY) }
      assert_raises(Errno::EISDIR) { machine.open(@folder, "w") }
    end
  end

  def test_statx_tells_what_the_file_system_knows
    on_machine do |machine|
      before = Time.now - 2
      file = open_file("facts", "w")
      machine.write(file, "x")
      stat = machine.statx(file)
      ruby = File.stat(path("facts"))
      assert_equal [ruby.ino, ruby.uid, ruby.gid, ruby.blksize], stat.values_at(:inode, :uid, :gid, :block_size)
      assert_equal [ruby.mtime, ruby.ctime, ruby.atime], stat.values_at(:modified_at, :changed_at, :accessed_at)
      assert_operator stat.fetch(:created_at, ruby.ctime), :>, before
      File.symlink("facts", path("link"))
      assert_equal :file, machine.statx(path("link"))[:type], "links are followed"
      assert_equal :characterSpecial, machine.statx("/dev/null")[:type]
      File.open(path("facts")) { |io| assert_equal 1, machine.statx(io)[:size] }
    end
  end

  def test_file_objects_work_like_numbers
    on_machine do |machine|
      File.open(path("object"), "w+") do |io|
        large = sample(300_000)
        assert_equal 300_000, machine.write(io, large)
        assert_equal 5, machine.pwrite(io, "start", 0)
        assert_equal 2, machine.writev(io, %w[a b])
        machine.fsync(io)
        large[0, 5] = "start"
        assert_bytes large + "ab", pread_exactly(io, 0, 400_000)
        io.seek(299_999)
        assert_equal "ab", read_to_end(io)[1..]
      end
    end
  end

  # What a worker has begun is not undone: a cancellation or a close finds it done, or not begun.
  def test_a_worker_s_write_is_done_whole_or_not_at_all
    on_machine do |machine|
      bytes = sample(10_000_000)
      [->(strand, _) { machine.terminate(strand) }, ->(_, file) { close(file) }].each_with_index do |ending, i|
        file = open_file("whole#{i}", "w")
        written = nil
        strand = spin { written = machine.pwrite(file, bytes, 0) }
        machine.yield
        ending.call(strand, file)
        error_of { strand.await }
        assert_includes [nil, bytes.bytesize], written
        assert_bytes written ? bytes : "", File.binread(path("whole#{i}"))
      end
    end
  end

  def test_a_worker_s_read_gives_its_string_back
    on_machine do |machine|
      file = open_file("source", "w+")
      machine.pwrite(file, bytes = sample(10_000_000), 0)
      string = +""
      count = nil
      strand = spin { count = machine.pread(file, string, 0, 10_000_000) }
      machine.yield
      machine.terminate(strand)
      error_of { strand.await }
      assert_bytes bytes[0, count], string if count
      refute_locked(string)
    end
  end

  def test_special_files
    on_machine do |machine|
      zero, null, full = keep(*%w[/dev/zero /dev/null /dev/full].map { |name| machine.open(name, "r+") })
      assert_equal "\0" * 100_000, read_exactly(zero, 100_000)
      assert_equal 100_000, machine.write(null, "x" * 100_000)
      assert_equal 0, machine.read(null, +"")
      assert_raises(Errno::ENOSPC) { machine.write(full, "x") }
      assert_equal 2, machine.writev(null, %w[a b])
    end
  end

  def test_a_closed_file_is_refused
    on_machine do |machine|
      number = open_file("closed", "w+")
      close(number)
      object = File.open(path("closed"))
      object.close
      [number, object].each do |io|
        [-> { machine.read(io, +"") }, -> { machine.pread(io, +"", 0) }, -> { machine.pwrite(io, "x" * 100_000, 0) },
         -> { machine.write(io, "x") }, -> { machine.fsync(io) }, -> { machine.statx(io) },
         -> { machine.close(io) }].each do |call|
          error = assert_raises(Ringspun::ClosedError, &call)
          assert_match(/is not open \(any more\); pass/, error.message)
        end
      end
    end
  end

  # A number outlives its file; what the machine knew of it must not.
  def test_a_number_that_an_io_object_closed_can_be_anything_next
    on_machine do |machine|
      file = machine.open(path("before"), "w+")
      IO.for_fd(file).close
      one, other = UNIXSocket.pair
      assert_equal file, one.fileno
      strand = waiting(/read/) { read_exactly(one.fileno, 100_000) }
      writer = spin { machine.write(other.fileno, "x" * 100_000) }
      assert_equal 100_000, strand.await.size
      writer.await
      one.close
      other.close
    end
  end

  def test_the_number_of_a_stream_can_be_a_blocking_one_next
    on_machine do |machine|
      one, other = machine.pipe
      IO.for_fd(one).close
      machine.close(other)
      reader, writer = IO.pipe
      assert_equal one, reader.fileno
      reader.nonblock = false
      ran = false
      strand = waiting(/read/) { read_exactly(reader, 3) }
      spin { ran = true }.await
      machine.write(writer, "abc")
      assert_equal "abc", strand.await
      assert ran
    ensure
      [reader, writer].compact.each(&:close)
    end
  end
end

class RealFileTest < IOCase
  include RealFileTests

  def test_small_reads_and_writes_need_no_worker
    on_machine do |machine|
      file = open_file("small", "w+")
      before = machine.metrics[:ops_offloaded]
      machine.write(file, "x" * 60_000)
      machine.pread(file, +"", 0, 60_000)
      assert_equal before, machine.metrics[:ops_offloaded]
      machine.write(file, "x" * 70_000)
      machine.pread(file, +"", 0, 70_000)
      assert_equal before + 2, machine.metrics[:ops_offloaded]
      File.open(path("small")) do |io|
        machine.pread(io, +"", 0, 60_000)
        assert_equal before + 2, machine.metrics[:ops_offloaded]
        machine.pread(io, +"", 0, 70_000)
        assert_equal before + 3, machine.metrics[:ops_offloaded]
      end
    end
  end
end

# Everything by worker threads, on a machine of a thread of its own.
class OffloadedFileTest < IOCase
  include RealFileTests

  def test_the_wrong_direction
    on_machine do |machine|
      file, = keep(machine.open(path("file"), "w"))
      error = assert_raises(Ringspun::UsageError) { machine.pread(file, +"", 0) }
      assert_match(/pread: descriptor #{file} is open for writing only/, error.message)
    end
  end

  def on_machine(backend: nil)
    Thread.new do
      machine = Ringspun::Machine.new(backend:, file_io: :offload, workers_max: 2)
      Ringspun.run { with_machine(machine) { yield machine } }
      assert_operator machine.metrics[:ops_offloaded], :>, 0 if @folder
    ensure
      machine&.close
    end.tap { |thread| thread.report_on_exception = false }.value
  end

  # A worker may have the read by then, or have done it, and its strand may have gone on.
  def test_buffers_of_reads_that_are_given_up
    on_machine(backend: :epoll) do |machine|
      file = file_of("0123456789")
      string, part = +"kept", +"kept"
      strands = [spin { machine.pread(file, string, 0, 8) }, spin { machine.readv(file, [part]) }]
      machine.yield
      strands.each { |strand| machine.terminate(strand) }
      strands.each { |strand| assert_includes [NilClass, Ringspun::TerminatedError], error_of { strand.await }.class }
      assert_includes %w[kept 01234567], string
      assert_includes [%w[kept 0123456789], %w[0123 456789]], [part, read_to_end(file)]
      [string, part].each { |text| refute_locked(text) }
    end
  end

  private

  def file_of(text)
    @machine.write(open_file("source", "w"), text)
    open_file("source")
  end
end

class SimulatedFileTest < IOCase
  include Simulated
  include FileTests

  CHANGES = [->(string) { string.replace("other") }, ->(string) { string.clear }, ->(string) { string << "more" },
             ->(string) { string.freeze }].freeze

  # No real work on a file waits until a test lets it go on.
  def test_buffers_cannot_be_changed_while_a_file_is_read
    seen = 0
    on_machine do |machine|
      machine.write(open_file("source", "w"), "0123456789")
      file = open_file("source")
      string, part, buffer, last = +"kept", +"kept", IO::Buffer.new(4), IO::Buffer.new(3)
      strands = [spin { machine.pread(file, string, 0, 8) }, spin { machine.pread(file, buffer, 2) },
                 spin { machine.readv(file, [part, last]) }]
      machine.yield
      whole, some, parts = strands.map { |strand| strand.waits_for&.match?(/pread|readv/) }
      seen += 1 if whole && some && parts
      texts = [(string if whole), (part if parts)].compact
      texts.product(CHANGES) { |text, change| assert_raises(RuntimeError) { change.call(text) } }
      memory = [(buffer if some), (last if parts)].compact
      memory.each { |one| assert_raises(IO::Buffer::LockedError) { one.free } }
      await_all(strands)
      [string, part].each { |text| refute_locked(text) }
      [buffer, last].each(&:free)
    end
    assert_operator seen, :>, 0, "none of them waited"
  end
end
