# frozen_string_literal: true

require_relative "select_case"
require "socket"

# Selectors over descriptors, IOs and streams: an op for each waits beside the strands, and is gone with its branch.
class SelectDescriptorsTest < SelectCase
  def pair = machine.socketpair

  def with_pair
    ends = pair
    yield(*ends)
  ensure
    ends&.each { |fd| machine.close(fd) rescue Ringspun::ClosedError }
  end

  def with_stream
    with_pair do |fd, far|
      stream = Ringspun::Stream.new(fd)
      yield stream, far
    ensure
      stream&.close
    end
  end

  def bytes_of(fd, max) = (+"").tap { |buffer| machine.recv(fd, buffer, max) }

  def in_flight = machine.metrics[:ops_in_flight]

  # On io_uring a cancelled op ends when the machine looks next.
  def assert_no_op = yield_until("no op is left") { in_flight.zero? }

  def teardown
    assert_no_op
    super
  end

  # --- descriptors ---

  def test_the_one_that_can_be_read_from
    with_pair do |near, far|
      with_pair do |other, _|
        strand = parked { select(other, near) }
        assert_equal 2, in_flight
        machine.send(far, "x")
        assert_equal [near, true], strand.await
        assert_equal [near, true], select(near, queue), "nothing has been read"
        assert_no_op
        assert_equal "x", bytes_of(near, 10)
      end
    end
  end

  def test_one_that_is_ready_already_and_one_that_never_is
    with_pair do |near, far|
      machine.send(far, "x")
      assert_equal [near, true], select(near)
      assert_nil select(far, timeout: 0.000_1)
      assert_equal [near, true], select(near, far, timeout: 0)
      assert_equal(:nothing, select { |on| on.readable(far) && on.otherwise { :nothing } })
      assert_equal(near, select { |on| on.readable(near) && on.otherwise { :nothing } })
      assert_no_op
    end
  end

  def test_writable
    with_pair do |near, _|
      assert_equal(:written, select { |on| on.writable(near) { :written } && on.pop(queue) })
    end
  end

  def test_a_full_one_gets_room
    with_pair do |near, far|
      filled = 0
      Ringspun::Machine.current.timeout(1) { loop { filled += machine.send(near, "x" * 4096) } } rescue Ringspun::TimeoutError
      strand = parked { select { |on| on.writable(near) { :room } } }
      (filled -= bytes_of(far, 65_536).bytesize) while filled.positive?
      assert_equal :room, strand.await
    end
  end

  def test_the_end_of_the_other_side
    with_pair do |near, far|
      strand = parked { select(near, queue) }
      machine.close(far)
      assert_equal [near, true], strand.await
      assert_equal "", bytes_of(near, 1)
    end
  end

  def test_a_descriptor_that_is_closed_meanwhile
    with_pair do |near, _|
      strand = parked { select(near, queue) }
      machine.close(near)
      assert_ends_with Ringspun::ClosedError, strand
      assert_raises(Ringspun::ClosedError) { select(near) }
    end
  end

  def test_a_selector_whose_descriptor_is_closed_and_its_number_used_again
    with_pair do |near, far|
      with_selector do |selector|
        selector.readable(near)
        machine.send(far, "x")
        assert_equal near, selector.wait
        machine.close(near)
        with_pair do |*|
          assert_raises(Ringspun::ClosedError) { selector.wait }
          assert_raises(Ringspun::ClosedError) { selector.wait }
        end
        assert selector.delete(near)
      end
    end
  end

  def test_two_strands_select_the_same_descriptor
    with_pair do |near, far|
      strands = Array.new(2) { parked { select(near, queue) } }
      machine.send(far, "x")
      assert_equal [[near, true]] * 2, strands.map(&:await)
    end
  end

  # --- what is left ---

  def test_no_op_is_left_by_a_cancelled_one_or_one_that_times_out
    with_pair do |near, far|
      assert_nil select(near, far, timeout: 0.000_1)
      assert_no_op
      strand = parked { select(near, far) }
      machine.terminate(strand)
      error_of { strand.join }
      assert_no_op
    end
  end

  def test_an_op_stays_from_wait_to_wait_and_goes_with_its_branch
    with_pair do |near, _|
      one = queue
      with_selector do |selector|
        selector.readable(near).pop(one)
        started = nil
        5.times do |i|
          strand = parked { selector.wait }
          started ||= machine.metrics[:ops_started]
          one.push(i)
          assert_equal i, strand.await
        end
        assert_equal [1, started], machine.metrics.values_at(:ops_in_flight, :ops_started)
        selector.delete(near)
        assert_no_op
      end
    end
  end

  def test_a_selector_that_nobody_keeps_leaves_no_op
    with_pair do |near, _|
      Fiber.new { 10.times { Ringspun::Selector.new { |on| on.readable(near) }.wait(timeout: 0.000_1) } }.resume
      GC.start
      yield_until("those that were collected have let go of theirs") { in_flight < 3 }
    end
  end

  # --- turns ---

  def test_a_busy_descriptor_does_not_starve_a_queue
    with_pair do |near, far|
      machine.send(far, "x" * 100)
      one = queue(*(1..50))
      taken = with_selector do |selector|
        selector.readable(near) { bytes_of(near, 1) && :byte }.pop(one) { :item }
        Array.new(40) { selector.wait }
      end
      assert_operator taken.tally.values.min, :>, 5, taken.tally.to_s
    end
  end

  # --- streams ---

  def test_a_stream_with_bytes_in_its_buffer
    with_stream do |stream, far|
      machine.send(far, "one\ntwo\n")
      assert_equal [stream, true], select(stream, queue)
      assert_equal "one\n", stream.read_line(chomp: false)
      assert_equal [stream, true], select(stream, queue, timeout: 0), "the rest has come with it"
      assert_equal "two", stream.read_line(chomp: true).to_s
      assert_nil select(stream, timeout: 0)
    end
  end

  def test_a_stream_that_lost_has_read_nothing
    with_stream do |stream, far|
      one = queue
      strand = parked { select(stream, one) }
      one.push(1)
      machine.send(far, "abc")
      assert_equal [one, 1], strand.await
      assert_equal "abc", stream.read(3)
    end
  end

  def test_bytes_that_another_strand_has_left_in_the_buffer
    with_stream do |stream, far|
      strand = parked { select(stream, queue) }
      reader = machine.spin { stream.read(1) }
      machine.send(far, "abc")
      assert_equal "a", reader.await
      assert_equal [stream, true], strand.await
      assert_equal "bc", stream.read(2)
    end
  end

  def test_a_stream_that_ends_or_is_closed
    with_stream do |stream, far|
      machine.close(far)
      assert_equal [stream, true], select(stream)
      assert_nil stream.read_partial
      assert_equal [stream, true], select(stream, timeout: 0)
    end
    with_stream do |stream, _|
      strand = parked { select(stream, queue) }
      stream.close
      assert_ends_with Ringspun::ClosedError, strand
      assert_raises(Ringspun::ClosedError) { select(stream) }
    end
  end

  def test_a_stream_is_not_writable
    with_stream do |stream, _|
      assert_match(/waits in its write/, assert_raises(Ringspun::UsageError) { select { |on| on.writable(stream) } }.message)
    end
  end
end

class SelectDescriptorsOnSimulationTest < SelectDescriptorsTest
  include OnSimulation

  # Latencies are drawn there.
  def faults = false
end

# What a simulated machine does not know.
class SelectRealDescriptorsTest < SelectCase
  def test_ios
    reader, writer = IO.pipe
    strand = parked { select(reader, queue) }
    writer << "x\ny\n"
    assert_equal [reader, true], strand.await
    assert_equal "x\n", reader.gets
    assert_equal [reader, true], select(reader, timeout: 0), "its own buffer has the rest"
    assert_equal(:room, select { |on| on.writable(writer) { :room } })
  ensure
    [reader, writer].each(&:close)
  end

  def test_an_io_that_is_closed
    reader, writer = IO.pipe
    writer.close
    selector = Ringspun::Selector.new { |on| on.readable(reader) }
    assert_same reader, selector.wait
    reader.close
    assert_raises(Ringspun::ClosedError) { selector.wait }
    selector.close
  end

  # While the ops on it end, it is still open to whoever asks the system.
  def test_an_io_that_the_machine_closes_meanwhile
    reader, writer = IO.pipe
    strands = [parked { select(reader, queue) }, parked { Ringspun::Selector.new { |on| on.readable(reader) }.wait }]
    machine.close(reader)
    strands.each { |strand| assert_ends_with Ringspun::ClosedError, strand }
  ensure
    writer&.close
  end

  def test_a_selector_in_which_nobody_waits_hides_no_deadlock
    assert_child "[nil, Ringspun::DeadlockError]\ntrue\n", <<~RUBY
      reader, writer = IO.pipe
      selector = Ringspun::Selector.new { |on| on.readable(reader) }
      p [selector.wait(timeout: 0), (Ringspun::Queue.new.pop rescue $!.class)]
      strand = machine.spin { selector.wait }
      machine.yield
      writer << "x"
      p strand.await == reader
    RUBY
  end

  def test_a_listener
    server = TCPServer.new("127.0.0.1", 0)
    strand = parked { select(server, queue) }
    client = TCPSocket.new("127.0.0.1", server.local_address.ip_port)
    assert_equal [server, true], strand.await
    assert_equal [server, true], select(server)
  ensure
    [client, server].each(&:close)
  end

  def test_a_child_goes_on_with_its_selector
    assert_child "[:mine, 1]\n[:read, \"x\"]\n", <<~RUBY
      one, parent = Ringspun::Queue.new, Process.pid
      near, far = machine.socketpair # which the parent hears of as well
      selector = Ringspun::Selector.new do |on|
        on.pop(one) { |item| [:mine, item] }
        on.readable(near) { [:read, (+'').tap { |buffer| machine.recv(near, buffer, 1) }] unless Process.pid == parent }
      end
      other = machine.spin { selector.wait }
      machine.yield
      child = fork do
        one.push(1)
        p selector.wait
        machine.send(far, "x")
        p selector.wait
        exit!(0)
      end
      machine.waitid(child)
      machine.terminate(other)
    RUBY
  end

  # The parent's strand has an item on its way to it, and takes that in the parent.
  def test_a_child_waits_in_a_selector_whose_strand_was_being_served
    assert_child "[:mine, 2]\n[:mine, 3]\n[:parents, 1]\n", <<~RUBY
      one = Ringspun::Queue.new
      selector = Ringspun::Selector.new { |on| on.pop(one) }
      other = machine.spin { p [:parents, selector.wait] }
      machine.yield until other.state == :parked
      one.push(1)
      child = fork do
        mine = machine.spin { 2.times { p [:mine, selector.wait] } }
        [2, 3].each do |item|
          machine.yield until mine.state == :parked
          one.push(item)
        end
        mine.join
        exit!(0)
      end
      Process.wait(child)
      other.join
    RUBY
  end

  def test_descriptors_of_a_thread_that_ends_without_closing_its_machine
    assert_child "", <<~RUBY
      5.times do
        Thread.new do
          near, _far = machine.socketpair
          $kept = Ringspun::Selector.new { |on| on.readable(near) }
          $kept.wait(timeout: 0.0001)
        end.join
        GC.start
      end
    RUBY
  end
end
