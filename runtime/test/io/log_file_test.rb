# frozen_string_literal: true

require "test_helper"
require "logger"
require "pathname"
require "stringio"
require "tmpdir"
require "support/strands"

class LogFileTest < Minitest::Test
  include AnyBackend
  include Strands

  def setup
    @folder = Dir.mktmpdir("ringspun-log-")
    @path = File.join(@folder, "log")
  end

  def teardown
    @file&.close
    FileUtils.rm_r(@folder)
  end

  def file(**) = @file ||= Ringspun::LogFile.new(@path, **)

  def text(path = @path) = File.read(path)

  # The texts of its writes.
  def writes = @writes ||= [].tap { |all| io.define_singleton_method(:write) { |text| super(text).tap { all << text } } }

  def io = file.instance_variable_get(:@io)

  # --- when it is written ---

  def test_lines_of_a_tick_are_written_together
    writes
    Ringspun.run do |machine|
      machine.join(*Array.new(3) { |i| machine.spin { 2.times { file.write("#{i}\n") } } })
      yield_until("the lines are written") { text.lines.size == 6 }
    end
    assert_equal ["0\n0\n1\n1\n2\n2\n"], writes
  end

  def test_outside_of_strands_lines_are_written_at_once
    assert_equal 5, file.write("here\n")
    assert_equal "here\n", text
    Ringspun.run do
      file.write("in a strand\n")
      Thread.new { file.write("on a thread\n") }.join
      assert_equal "here\nin a strand\non a thread\n", text
    end
  end

  def test_a_run_that_ends_leaves_nothing_unwritten
    Ringspun.run { file.write("last words\n") }
    assert_equal "last words\n", text
  end

  # The strand that would have written is cancelled with the others.
  def test_after_a_cancelled_run_the_next_line_brings_all
    assert_raises(RuntimeError) do
      Ringspun.run do
        file.write("one\n")
        raise "no"
      end
    end
    Ringspun.run { file.write("two\n") }
    assert_equal "one\ntwo\n", text
  end

  def test_a_full_buffer_is_written
    Ringspun.run do
      300.times { file.write("#{"x" * 999}\n") }
      assert_operator text.bytesize, :>=, 256 * 1024
    end
  end

  def test_a_forked_child_does_not_write_what_is_its_parents
    Ringspun.run do |machine|
      file.write("parent\n")
      pid = fork do
        file.write("child\n")
        file.flush
        exit!(true)
      end
      machine.waitid(pid)
    end
    assert_equal %W[child\n parent\n], text.lines.sort
  end

  # Where several processes write into one pipe.
  def test_lines_in_a_pipe_stay_whole_and_in_order
    File.mkfifo(@path)
    reader = File.open(@path, File::RDONLY | File::NONBLOCK)
    writes
    lines = [*(1..100).map { |number| "#{"x" * number}\n" }, "#{"y" * 5000}\n"]
    Ringspun.run { lines[...-1].each { |line| file.write(line) } }
    file.write(lines.last)
    assert_equal [lines.join] * 2, [writes.join, reader.readpartial(100_000)]
    assert(writes[...-1].all? { |piece| piece.end_with?("\n") && piece.bytesize <= 4096 })
    assert_operator writes.size, :<, 10
    assert_equal lines.last, writes.last
  ensure
    reader.close
  end

  # Its reader gets all of it while the writers wait.
  def test_more_lines_than_a_pipe_holds
    reader, writer = IO.pipe
    read = Thread.new { reader.read }
    lines = (1..1000).map { |number| "#{number} #{"x" * 1000}\n" }
    given = Ringspun::LogFile.new(writer)
    Ringspun.run { lines.each { |line| given.write(line) } }
    given.close
    refute_predicate writer, :closed?, "it was given"
    writer.close
    assert_equal lines, read.value.lines
  ensure
    reader.close
  end

  # The strand that writes is cancelled, and what it had not written comes after all, once: also from the IO's own buffer.
  def test_a_cancellation_while_a_pipe_is_full
    [true, false].each { |sync| assert_all_come_through_a_full_pipe(sync) }
  end

  def test_lines_of_several_encodings
    lines = ["\u00e4\n", "\xff\n".b, "a\n", "\u00e4\n".encode("ISO-8859-1")]
    Ringspun.run { lines.each { |line| file.write(line) } }
    assert_equal lines.map(&:b).join, File.binread(@path)
  end

  # --- where it is written ---

  def test_what_it_can_write_to
    @file = Ringspun::LogFile.new(Pathname(@path))
    Logger.new(@file, formatter: ->(_, _, _, message) { "#{message}\n" }).info("of a Logger")
    Ringspun::LogFile.new(out = StringIO.new).write("of any IO\n")
    assert_equal "of a Logger\nof any IO\n", text + out.string
  end

  def test_what_it_cannot_write_to
    { 5 => /\Athe access log goes to a path or an IO, got 5\z/,
      "/nowhere/log" => %r{\Athe access log /nowhere/log cannot be opened: No such file} }.each do |target, message|
      error = assert_raises(Ringspun::UsageError) { Ringspun::LogFile.new(target, name: "the access log") }
      assert_match message, error.message
    end
  end

  def test_a_file_that_was_moved_away_and_a_signal_that_says_so
    before = trap("USR1") { file.reopen }
    file.write("1\n")
    File.rename(@path, "#{@path}.1")
    file.write("2\n")
    Process.kill(:USR1, Process.pid)
    Thread.pass until file.instance_variable_get(:@moved)
    file.flush
    assert_path_exists @path
    file.write("3\n")
    assert_equal %W[1\n2\n 3\n], [text("#{@path}.1"), text]
  ensure
    trap("USR1", before)
  end

  # Nobody has said so.
  def test_a_file_that_another_process_has_moved_away
    file(look_seconds: 0).write("1\n")
    File.rename(@path, "#{@path}.1")
    file.write("2\n")
    File.unlink(@path)
    file.write("3\n")
    assert_equal %W[1\n 3\n], [text("#{@path}.1"), text]
  end

  # The folder of the process is another one meanwhile.
  def test_a_relative_path
    Dir.chdir(@folder) { @file = Ringspun::LogFile.new("log", look_seconds: 0) }
    @file.write("1\n")
    assert_equal "1\n", text
  end

  # --- what goes wrong ---

  def test_a_file_that_cannot_be_opened_anew
    file(look_seconds: 0)
    kept = File.open(@path)
    File.unlink(@path)
    Dir.mkdir(@path)
    _, told = capture_io { 2.times { file.write("goes on\n") } }
    assert_match(/\Aringspun: the log #{@path} cannot be opened: Is a directory.*; what is open is written on\n\z/, told)
    file.reopen
    _, again = capture_io { file.write("goes on\n") }
    assert_equal [told, "goes on\n" * 3], [again, kept.read]
  ensure
    kept&.close
  end

  def test_a_full_disk_is_told_once_and_ends_nothing
    @path = "/dev/full"
    _, told = capture_io { 3.times { file.write("lost\n") } }
    assert_match(%r{\Aringspun: the log /dev/full cannot be written: No space left on device[^\n]*\n\z}, told)
  end

  # As long as it lasts, they find a strand that writes.
  def test_lines_that_come_during_a_write_that_fails
    out = StringIO.new
    fails = true
    out.define_singleton_method(:write) do |text|
      next super(text) unless fails

      fails = false
      Ringspun::Machine.current.yield
      raise Errno::ENOSPC
    end
    given = Ringspun::LogFile.new(out)
    capture_io do
      Ringspun.run do |machine|
        given.write("lost\n")
        machine.yield while fails
        given.write("kept\n")
        yield_until("the line is written") { out.string == "kept\n" }
      end
    end
  end

  def test_where_there_is_no_place_for_a_strand
    Ringspun.run do |machine|
      machine.define_singleton_method(:spin_shared) { raise Ringspun::LimitError, "no strand" }
      assert_equal 5, file.write("line\n")
      assert_equal "line\n", text
    ensure
      machine.singleton_class.remove_method(:spin_shared)
    end
  end

  def test_a_full_disk_that_the_standard_error_is_on_as_well
    @path = "/dev/full"
    errors = $stderr
    File.open(@path, "w") do |full|
      full.sync = true
      $stderr = full
      assert_equal 5, file.write("lost\n")
    end
  ensure
    $stderr = errors
  end

  private

  def assert_all_come_through_a_full_pipe(sync)
    reader, writer = IO.pipe
    writer.sync = sync
    filled = fill(writer)
    given = Ringspun::LogFile.new(writer)
    lines = Array.new(1000) { |i| "line #{i}\n" }
    assert_raises(ZeroDivisionError) do
      Ringspun.run do |machine|
        lines.each { |line| given.write(line) }
        3.times { machine.yield }
        raise ZeroDivisionError
      end
    end
    written = Thread.new { given.close.then { writer.close } }
    assert_equal lines.join, reader.read.delete_prefix(" " * filled)
    written.join
  ensure
    [reader, writer].each(&:close)
  end

  # @return [Integer] how many bytes it has taken
  def fill(writer)
    filled = 0
    filled += writer.write_nonblock(" " * 4096) while true
  rescue IO::WaitWritable
    filled
  end
end
