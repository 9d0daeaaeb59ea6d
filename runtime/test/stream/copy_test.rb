# frozen_string_literal: true

require_relative "stream_case"

# Stream#copy_to: what comes here goes on there.
module StreamCopyTests
  def test_until_the_end
    on_machine do
      bytes = sample(amount(300_000))
      (source, from), (to, last) = make_streams, make_streams
      copy = spin { from.copy_to(to) }
      sender = spin { source.write(bytes) && source.close_write }
      assert_bytes bytes, last.read(bytes.size)
      assert_equal bytes.size, copy.await
      sender.await
      assert_equal 0, from.copy_to(to)
      assert_nil from.read(1)
      assert_nothing_in_flight
    end
  end

  def test_what_is_buffered_goes_first
    on_machine do
      (source, from), (to, last) = make_streams, make_streams
      to.write("zeroth ")
      source.write("line\nfirst second")
      assert_equal "line", from.read_line
      assert_equal 5, from.copy_to(to, 5)
      copy = spin { from.copy_to(to) }
      source.close
      assert_equal 7, copy.await
      to.close_write
      assert_equal "zeroth first second", last.read
    end
  end

  def test_somebody_peeks_before_it_splices
    on_machine do
      (source, from), (to, last) = make_streams, make_streams
      flush = to.method(:flush)
      to.define_singleton_method(:flush) do |**limits|
        source.write("more") && source.close unless source.closed?
        from.peek(2) unless from.eof?
        flush.call(**limits)
      end
      source.write("some ")
      source.flush
      assert_equal 9, from.copy_to(to)
      to.close
      assert_equal "some more", last.read
    end
  end

  def test_so_many_bytes
    on_machine do
      (source, from), (to, last) = make_streams, make_streams
      source.write("0123456789")
      assert_equal [0, 3, 4], [0, 3, 4].map { |length| from.copy_to(to, length) }
      assert_equal "0123456", last.read(7)
      source.close
      assert_equal "789", from.read
      assert_equal 0, from.copy_to(to, 5)
    end
  end

  def test_to_a_descriptor
    on_machine do
      source, from = make_streams
      to, last = make_socketpair
      source.write("line\nrest")
      source.close_write
      from.read_line
      assert_equal 4, from.copy_to(to)
      assert_equal "rest", read_exactly(last, 4)
    end
  end

  def test_a_cancelled_copy_leaves_the_rest
    on_machine do |machine|
      source, from = make_streams
      to, last = make_streams
      bytes = sample(amount(500_000))
      sender = spin { source.write(bytes) && source.close_write }
      received = spin { last.read }
      random = Random.new(3)
      done = false
      until done
        strand = spin { from.copy_to(to, random.rand(3).zero? ? random.rand(100_000) : nil) && done = from.eof? }
        random.rand(12).times { machine.yield }
        machine.sleep(0.0001) if random.rand(4).zero?
        machine.terminate(strand)
        error_of { strand.join }
      end
      to.close_write
      assert_bytes bytes, received.await
      sender.await
    end
  end

  # The other side takes nothing: what has left this one and is on its way comes back.
  def test_what_is_on_its_way_comes_back
    on_machine(faults: false) do |machine|
      source, from = make_streams
      to, last = make_streams
      bytes = sample(IOCase::LARGE)
      sender = spin { source.write(bytes) && source.close_write }
      copy = waiting(/poll/) { from.copy_to(to) }
      machine.terminate(copy)
      assert_raises(Ringspun::TerminatedError) { copy.await }
      first = spin { last.read }
      to.close_write
      assert_bytes bytes, first.await + from.read
      sender.await
    end
  end

  def test_the_time_is_up
    on_machine do
      (source, from), (to, last) = make_streams, make_streams
      error = assert_raises(Ringspun::TimeoutError) { from.copy_to(to, timeout: 0.01) }
      assert_match(/copy_to: timed out after 0.01 s/, error.message)
      from.timeout = 0.01
      assert_raises(Ringspun::TimeoutError) { from.copy_to(to) }
      source.write("later")
      assert_equal 5, from.copy_to(to, 5)
      assert_equal "later", last.read(5)
    end
  end

  def test_the_other_side_is_gone
    on_machine(faults: false) do
      source, from = make_streams
      to, other = make_stream
      close(other)
      source.write("bytes")
      source.close_write
      assert_raises(Errno::EPIPE) { from.copy_to(to) }
      assert_equal "bytes", from.read
    end
  end

  def test_closed_meanwhile
    on_machine do
      [0, 1].each do |which|
        (source, from), (to, last) = make_streams, make_streams
        copy = waiting(/poll/) { from.copy_to(to) }
        [from, to][which].close
        source.write("x") if which == 1
        assert_raises(Ringspun::ClosedError) { copy.await }
        assert_equal "x", from.read(1) if which == 1
        [source, last].each(&:close)
      end
    end
  end

  def test_nobody_else_reads_meanwhile
    on_machine do
      (source, from), (to,) = make_streams, make_streams
      copy = waiting(/poll/) { from.copy_to(to) }
      assert_raises(Ringspun::UsageError) { from.read(1) }
      source.close
      assert_equal 0, copy.await
      assert_equal "", from.read
    end
  end

  def test_bad_input
    on_machine do
      from, to = make_streams
      [-1, 1.5, "1"].each { |length| assert_raises(Ringspun::UsageError) { from.copy_to(to, length) } }
      [from, nil, "file", Object.new].each { |other| assert_raises(Ringspun::UsageError) { from.copy_to(other) } }
      to.close
      assert_raises(Ringspun::ClosedError) { from.copy_to(to) }
    end
  end
end

class StreamCopyTest < StreamCase
  include StreamCopyTests

  def test_no_byte_comes_into_the_program
    on_machine do |machine|
      bytes = sample(IOCase::LARGE)
      (source, from), (to, last) = make_streams, make_streams
      sender = spin { source.write(bytes) && source.close_write }
      received = spin { last.read(bytes.size) }
      before = machine.metrics[:bytes_spliced]
      assert_equal bytes.size, from.copy_to(to)
      assert_equal 2 * bytes.size, machine.metrics[:bytes_spliced] - before, "into the pipe, and out of it"
      assert_bytes bytes, received.await
      sender.await
    end
  end

  def test_with_files_and_pipes
    on_machine do |machine|
      Dir.mktmpdir do |folder|
        bytes = sample(200_000)
        File.binwrite("#{folder}/source", bytes)
        %w[w a].each do |mode|
          to = keep(machine.open("#{folder}/copy", mode)).first
          source = keep_stream(Ringspun::Stream.new(machine.open("#{folder}/source")))
          assert_equal bytes.size, source.copy_to(to)
          close(to)
        end
        assert_bytes bytes * 2, File.binread("#{folder}/copy")
        reader, writer = IO.pipe.each { |io| keep(io) }
        spin { keep_stream(Ringspun::Stream.new(machine.open("#{folder}/source"))).copy_to(writer) && writer.close }
        File.open("#{folder}/third", "wb") { |file| assert_equal bytes.size, keep_stream(Ringspun::Stream.new(reader)).copy_to(file) }
        assert_bytes bytes, File.binread("#{folder}/third")
      end
    end
  end

  def test_what_an_io_has_in_its_own_buffer_goes_first
    on_machine do
      source, from = make_streams
      reader, writer = IO.pipe.each { |io| keep(io) }
      writer.sync = false
      writer.print("first ")
      source.write("second")
      assert_equal 6, from.copy_to(writer, 6)
      assert_equal "first second", reader.readpartial(100)
    end
  end

  def test_the_target_s_number_means_something_else_meanwhile
    on_machine do
      source, from = make_streams
      to, = make_socketpair
      copy = waiting(/poll/) { from.copy_to(to) }
      close(to)
      fresh, peer = make_socketpair
      assert_equal to, fresh
      source.write("kept")
      assert_raises(Ringspun::ClosedError) { copy.await }
      assert_equal "kept", from.read(4)
      assert_raises(IO::WaitReadable) { Socket.for_fd(peer).tap { |io| io.autoclose = false }.recv_nonblock(10) }
    end
  end

  def test_a_forked_child_has_none_of_the_pipe
    on_machine do
      (source, from), (to, last) = make_streams, make_streams
      pipes = -> { Leaks.descriptors.fetch("pipe", 0) }
      before = pipes.call
      copy = waiting(/poll/) { from.copy_to(to, 4) }
      assert_equal before + 2, pipes.call
      assert_equal 0, Process.wait2(fork { exit!(pipes.call == before) }).last.exitstatus
      source.write("rest")
      assert_equal "rest", last.read(copy.await)
    end
  end

  # By a signal handler on top of the wait: then there the strand goes on that copied.
  def test_a_forked_child_takes_nothing_out_of_the_pipe
    on_machine(faults: false) do
      (from, source), (to, last) = Array.new(2) { UNIXSocket.pair.each { |io| keep(io) } }
      filled = 0
      filled += 1 while to.write_nonblock("x", exception: false) == 1
      parent, copier, child = Process.pid, Thread.current, nil
      before = trap(:USR1) { child = fork }
      source.write("kept")
      ends = [from, to].map { |io| keep_stream(Ringspun::Stream.new(io)) }
      reader = Thread.new do
        Thread.pass while from.wait_readable(0)
        Thread.pass until copier.stop?
        Process.kill(:USR1, parent)
        Thread.pass until child
        Process.wait(child)
        last.read(filled + 4)
      end
      assert_equal 4, copy_or_exit(ends, parent)
      assert_equal "kept", reader.value[filled..]
    ensure
      trap(:USR1, before)
    end
  end

  def copy_or_exit(ends, parent)
    ends.first.copy_to(ends.last, 4)
  rescue Ringspun::ClosedError
    exit!(0) if Process.pid != parent
    raise
  end

  # A splice to it would wait.
  def test_a_socket_in_blocking_mode
    on_machine do
      source, from = make_streams
      to, last = UNIXSocket.pair.each { |io| keep(io) }
      to.nonblock = false
      source.write("bytes")
      assert_equal 5, from.copy_to(to, 5)
      assert_equal "bytes", last.readpartial(10)
    end
  end
end

class SimulatedStreamCopyTest < StreamCase
  include StreamCopyTests
  include Simulated
end
