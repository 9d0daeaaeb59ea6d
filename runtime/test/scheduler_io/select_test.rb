# frozen_string_literal: true

require_relative "hook_case"

# IO.select in strands.
class SchedulerSelectTest < HookCase
  def test_what_is_ready
    Ringspun.run do
      one, other = pair
      assert_equal [[], [other], []], IO.select([one], [other])
      other.write("Hello World")
      assert_equal [[one], [other], []], IO.select([one], [other])
      assert_equal [[one], [], []], IO.select([one])
      assert_equal [[], [other], []], IO.select(nil, [other])
      assert_equal [[one], [], []], IO.select([one], nil, nil, 0)
      assert_equal [[one, one], [one], []], IO.select([one, one], [one], [one])
    end
  end

  def test_it_waits_for_the_first
    Ringspun.run do
      pipes = Array.new(5) { pipe }
      strand = waiting { IO.select(pipes.map(&:first)) }
      pipes[3].last.write("x")
      assert_equal [[pipes[3].first], [], []], strand.await
    end
    assert_nothing_in_flight
  end

  def test_it_waits_for_room
    Ringspun.run do
      reader, writer = pipe
      fill(writer)
      strand = waiting { IO.select([], [writer]) }
      reader.read(65_536)
      assert_equal [[], [writer], []], strand.await
    end
  end

  def test_an_io_in_several_lists
    Ringspun.run do
      one, other = pair
      fill(one)
      strand = waiting { IO.select([one], [one], [one]) }
      other.write("x")
      assert_equal [[one], [], []], strand.await
      one.read(1)
      strand = waiting { IO.select([one], [one], [one]) }
      other.readpartial(LARGE)
      assert_equal [[], [one], []], strand.await
    end
  end

  def test_bytes_that_were_read_already
    Ringspun.run do
      reader, writer = pipe
      empty, = pipe
      writer.write("two\nlines\n")
      assert_equal "two\n", reader.gets
      assert_equal [[reader], [], []], IO.select([empty, reader])
      assert_equal "lines\n", reader.gets
      assert_nil IO.select([empty, reader], nil, nil, 0)
      reader.ungetc("x")
      assert_equal [[reader], [], []], IO.select([empty, reader], nil, nil, 10)
    end
  end

  def test_timeouts
    Ringspun.run do
      reader, = pipe
      turns = 0
      machine.spin { turns += 1 }
      assert_nil IO.select([reader], nil, nil, 0)
      assert_nil IO.select([reader], nil, nil, 0.001)
      assert_equal 1, turns
      assert_nil IO.select(nil, nil, nil, 0.001)
      assert_nil IO.select([], [], [], 0)
      assert_nil IO.select([reader], [], [reader], Rational(1, 1000))
      assert_raises(ArgumentError) { IO.select([reader], nil, nil, -1) }
      assert_raises(TypeError) { IO.select([reader], nil, nil, "soon") }
    end
    assert_equal 0, machine.metrics[:timers]
  end

  def test_without_end
    Ringspun.run do
      strand = waiting { IO.select(nil, nil, nil) }
      machine.terminate(strand)
      assert_ends_with(Ringspun::TerminatedError, strand)
    end
  end

  def test_ends_and_files_are_ready
    Ringspun.run do
      reader, writer = pipe
      strand = waiting { IO.select([reader]) }
      writer.close
      assert_equal [[reader], [], []], strand.await
      File.open(__FILE__) { |file| assert_equal [[file], [], []], IO.select([file], nil, [file]) }
      reader, writer = pipe
      fill(writer)
      strand = waiting { IO.select(nil, [writer]) }
      reader.close
      assert_equal [[], [writer], []], strand.await
    end
  end

  # The end of the other side is told for ever, and is none of what is waited for.
  def test_only_exceptions_and_a_peer_that_hangs_up
    Ringspun.run do
      one, other = pair
      strand = waiting { IO.select(nil, nil, [one]) }
      other.close
      assert_no_spin
      assert_equal :parked, strand.state
      machine.terminate(strand)
      assert_ends_with(Ringspun::TerminatedError, strand)
      assert_nil IO.select(nil, nil, [one], 0.001)
      File.open(__FILE__) { |file| assert_nil IO.select(nil, nil, [file], 0.001) }
    end
  end

  def test_urgent_bytes
    Ringspun.run do
      one, other = stream("tcp")
      strand = waiting { IO.select([], [], [one]) }
      other.send("!", Socket::MSG_OOB)
      assert_equal [[], [], [one]], strand.await
    end
  end

  def test_what_cannot_be_waited_for
    Ringspun.run do
      reader, writer = pipe
      reader.close
      assert_raises(IOError) { IO.select([reader]) }
      assert_raises(IOError) { IO.select([], [writer, reader]) }
      assert_raises(TypeError) { IO.select([Object.new]) }
      assert_raises(TypeError) { IO.select(writer) }
    end
  end

  def test_objects_that_stand_for_an_io
    Ringspun.run do
      reader, writer = pipe
      likeness = Struct.new(:to_io).new(reader)
      strand = waiting { IO.select([likeness]) }
      writer.write("x")
      assert_same likeness, strand.await.first.first
    end
  end

  # --- closing ---

  def test_machine_close
    Ringspun.run do
      [pipe, pair].each do |closed, _|
        other, = pipe
        strands = [waiting { IO.select([other, closed]) }, waiting { IO.select([closed], nil, [closed, other], 1000) }]
        writing, = pair.each { |io| fill(io) }
        strands << waiting { IO.select([closed], [writing]) }
        machine.close(closed)
        strands.each { |strand| assert_ends_with(IOError, strand, "stream closed in another strand") }
        strand = waiting { IO.select(nil, [writing], nil) }
        machine.close(writing)
        assert_ends_with(IOError, strand, "stream closed in another strand")
      end
    end
    assert_nothing_in_flight
    assert_equal 0, machine.metrics[:timers]
  end

  # Of the ready ones there may be more than the one that is closed, and more strands than that of the IO.select.
  def test_machine_close_of_one_that_is_ready_as_well
    Ringspun.run do
      (one, other), (closed, writer) = pipe, pipe
      strand = waiting { IO.select([one, closed]) }
      bystander = waiting { IO.select([one]) }
      writer.write("x")
      other.write("x")
      machine.close(closed)
      assert_ends_with(IOError, strand, "stream closed in another strand")
      assert_equal [[one], [], []], bystander.await
    end
  end

  # What waits on the descriptor keeps the closing strand waiting: whoever comes meanwhile comes too late.
  def test_while_the_machine_closes
    Ringspun.run do
      reader, = pipe
      reading = waiting { reader.read(1) }
      closing = machine.spin { machine.close(reader) }
      selecting = machine.spin { IO.select([reader]) }
      [selecting, reading].each { |strand| assert_kind_of IOError, error_of { strand.join } }
      closing.join
    end
  end

  def test_close_of_ruby_s_own
    Ringspun.run do
      (one, other), (_, closed) = pipe, pipe
      fill(closed)
      strand = waiting { IO.select([one], [closed]) }
      closed.close
      keep(other.dup) # which takes the number, if it is the lowest that is free
      other.write("x")
      assert_ends_with(IOError, strand)
    end
  end

  # Of the strands that it does not have the child must keep no selection.
  def test_fork
    Ringspun.run do
      reader, = pipe
      strands = Array.new(3) { waiting { IO.select([reader]) } }
      status = in_child do
        copy, = IO.pipe
        machine.spin { IO.select([copy], nil, nil, 0.001) }.await
        [reader, copy].each { |io| machine.close(io) }
      end
      assert_predicate status, :success?
      machine.close(reader)
      strands.each { |strand| assert_ends_with(IOError, strand, "stream closed in another strand") }
    end
  end

  def test_no_descriptor_is_left_by_those_that_are_cancelled
    Ringspun.run do
      reader, = pipe
      strands = Array.new(20) { waiting { IO.select([reader]) } }
      strands.each { |strand| machine.terminate(strand) }
      strands.each { |strand| assert_ends_with(Ringspun::TerminatedError, strand) }
    end
    assert_nothing_in_flight
  end

  def test_many_at_once
    Ringspun.run do
      pipes = Array.new(amount(100)) { pipe }
      strands = pipes.map { |reader, _| waiting { IO.select([reader], nil, nil, 60) && reader.read(1) } }
      pipes.each { |_, writer| writer.write("x") }
      assert_equal ["x"] * pipes.size, strands.map(&:await)
    end
    assert_equal 0, machine.metrics[:timers]
  end
end
