# frozen_string_literal: true

require_relative "io_case"

# Bytes that go from one descriptor to another and never come into the program.
module SpliceTests
  def test_from_a_socket_to_a_socket_by_way_of_a_pipe
    on_machine do |machine|
      (source, from), (to, last), (reader, writer) = make_socketpair, make_socketpair, make_pipe
      bytes = sample(300_000)
      before = machine.metrics[:bytes_spliced]
      forwarder = spin { forward(from, to, reader, writer) }
      sender = spin { machine.send(source, bytes) && machine.shutdown(source, :WR) }
      assert_bytes bytes, read_exactly(last, bytes.size)
      await_all([forwarder, sender])
      assert_equal 2 * bytes.size, machine.metrics[:bytes_spliced] - before
    end
  end

  def test_it_moves_what_is_there_and_no_more_than_asked_for
    on_machine do |machine|
      (reader, writer), (last, target) = make_pipe, make_pipe
      machine.write(writer, "0123456789")
      assert_moved 4, (first = machine.splice(reader, target, 4))
      assert_moved 10 - first, (second = machine.splice(reader, target, 1000))
      assert_equal "0123456789"[0, first + second], read_exactly(last, first + second)
      assert_equal 0, machine.splice(reader, target, 0)
    end
  end

  def test_it_waits_for_bytes_and_for_room
    on_machine do |machine|
      (reader, writer), (last, target) = make_pipe, make_pipe
      strand = waiting(/poll/) { machine.splice(reader, target, 100) }
      machine.write(writer, "x")
      assert_equal 1, strand.await
      fill(target)
      machine.write(writer, "y")
      strand = waiting(/poll/) { machine.splice(reader, target, 100) }
      read_exactly(last, 30_000)
      assert_equal 1, strand.await
    end
  end

  def test_its_end
    on_machine do |machine|
      (reader, writer), (_, target) = make_pipe, make_pipe
      strand = waiting(/poll/) { machine.splice(reader, target, 100) }
      close(writer)
      assert_equal 0, strand.await
      assert_equal 0, machine.splice(reader, target, 100)
    end
  end

  def test_nobody_reads_at_the_other_end
    on_machine do |machine|
      (reader, writer), (last, target) = make_pipe, make_pipe
      machine.write(writer, "bytes")
      close(last)
      assert_raises(Errno::EPIPE) { machine.splice(reader, target, 100) }
      assert_equal "bytes", read_exactly(reader, 5)
    end
  end

  def test_a_tee_leaves_it_there
    on_machine do |machine|
      (reader, writer), (last, target) = make_pipe, make_pipe
      machine.write(writer, "twice")
      copied = machine.tee(reader, target, 100)
      assert_moved 5, copied
      assert_equal ["twice"[0, copied], "twice"], [read_exactly(last, copied), read_exactly(reader, 5)]
      strand = waiting(/poll/) { machine.tee(reader, target, 100) }
      machine.write(writer, "a")
      assert_equal 1, strand.await
    end
  end

  def test_what_cannot_be_spliced
    on_machine do |machine|
      one, other = make_socketpair
      reader, writer = make_pipe
      error = assert_raises(Ringspun::UsageError) { machine.splice(one, other, 1) }
      assert_match(/must be a pipe/, error.message)
      assert_raises(Ringspun::UsageError) { machine.tee(reader, one, 1) }
      [[writer, one], [one, reader]].each do |from, to|
        error = assert_raises(Ringspun::UsageError) { machine.splice(from, to, 1) }
        assert_match(/is open for (?:reading|writing) only/, error.message)
      end
      [-1, 1.5, nil, "1"].each { |length| assert_raises(Ringspun::UsageError) { machine.splice(reader, one, length) } }
      assert_raises(Ringspun::ClosedError) { machine.splice(reader, 999_999, 1) }
      assert_raises(Ringspun::ClosedError) { machine.splice(999_999, writer, 1) }
    end
  end

  def test_a_cancelled_splice_has_moved_nothing
    on_machine do |machine|
      (reader, writer), (_, target) = make_pipe, make_pipe
      strand = waiting(/poll/) { machine.splice(reader, target, 100) }
      machine.terminate(strand)
      machine.write(writer, "kept")
      assert_raises(Ringspun::TerminatedError) { strand.await }
      assert_equal "kept", read_exactly(reader, 4)
      assert_nothing_in_flight
    end
  end

  def test_closing_either_side_ends_it
    on_machine do |machine|
      (reader, _writer), (_last, target) = make_pipe, make_pipe
      strand = waiting(/poll/) { machine.splice(reader, target, 100) }
      close(reader)
      assert_raises(Ringspun::ClosedError) { strand.await }
    end
  end

  # The wait is one for bytes; the number of the target means something else by then.
  def test_the_target_was_closed_meanwhile
    on_machine do |machine|
      (reader, writer), (_last, target) = make_pipe, make_pipe
      strand = waiting(/poll/) { machine.splice(reader, target, 100) }
      close(target)
      fresh = make_pipe
      assert_includes fresh, target unless simulated?
      machine.write(writer, "kept")
      assert_raises(Ringspun::ClosedError) { strand.await }
      assert_equal "kept", read_exactly(reader, 4)
    end
  end

  def test_with_files
    on_machine do |machine|
      bytes = sample(200_000)
      file, copy = open_file("source"), open_file("copy")
      machine.write(file, bytes)
      source = open_file("source", "r")
      reader, writer = make_pipe
      feeder = spin do
        nil until machine.splice(source, writer, 1_000_000).zero?
        close(writer)
      end
      nil until machine.splice(reader, copy, 1_000_000).zero?
      feeder.await
      assert_bytes bytes, read_to_end(open_file("copy", "r"))
    end
  end

  # Random pieces, cancelled and taken up again, by way of a pipe.
  def test_nothing_is_lost_on_the_way
    on_machine do |machine|
      random = Random.new(7)
      from, source = make_socketpair
      target, last = make_socketpair
      reader, writer = make_pipe
      bytes = sample(amount(400_000))
      spin { machine.send(source, bytes) }
      held = moved = 0
      work = lambda do
        while moved < bytes.size
          held += machine.splice(from, writer, random.rand(1..60_000)) if held.zero?
          gone = machine.splice(reader, target, held)
          held -= gone
          moved += gone
          machine.yield if random.rand(3).zero?
        end
      end
      received = spin { read_exactly(last, bytes.size) }
      until moved == bytes.size
        strand = spin(&work)
        random.rand(20).times { machine.yield }
        machine.terminate(strand)
        error_of { strand.join }
      end
      assert_bytes bytes, received.await
    end
  end

  private

  def forward(from, to, reader, writer)
    until (held = @machine.splice(from, writer, 100_000)).zero?
      held -= @machine.splice(reader, to, held) while held.positive?
    end
  end
end

class SpliceTest < IOCase
  include SpliceTests

  def test_a_socket_in_blocking_mode
    on_machine do |machine|
      reader, = make_pipe
      socket, = UNIXSocket.pair.each { |io| keep(io) }
      socket.nonblock = false
      error = assert_raises(Ringspun::UnsupportedError) { machine.splice(reader, socket, 1) }
      assert_match(/blocking mode/, error.message)
    end
  end

  def test_a_pipe_in_blocking_mode
    on_machine do |machine|
      (reader, writer), (last, target) = IO.pipe.each { |io| keep(io) }, make_pipe
      [reader, writer].each { |io| io.nonblock = false }
      strand = waiting(/poll/) { machine.splice(reader, target, 100) }
      machine.write(writer, "x")
      assert_equal 1, strand.await
      assert_equal "x", read_exactly(last, 1)
    end
  end

  def test_an_io_that_was_closed_meanwhile
    on_machine do |machine|
      (reader, writer), (_, target) = IO.pipe.each { |io| keep(io) }, make_pipe
      strand = waiting(/poll/) { machine.splice(reader, target, 100) }
      keep(reader.dup)
      reader.close
      writer.write("x")
      assert_raises(Ringspun::ClosedError) { strand.await }
    end
  end

  private

  def open_file(name, mode = "w+")
    @folder ||= Dir.mktmpdir
    keep(@machine.open(File.join(@folder, name), mode)).first
  end

  def teardown
    FileUtils.rm_rf(@folder) if @folder
    super
  end
end

class SimulatedSpliceTest < IOCase
  include Simulated
  include SpliceTests

  private

  def open_file(name, mode = "w+") = keep(@machine.open(name, mode)).first
end
