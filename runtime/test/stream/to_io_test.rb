# frozen_string_literal: true

require_relative "stream_case"

# A stream where an IO is wanted.
class StreamToIOTest < StreamCase
  def test_one_io_for_each
    on_machine do
      stream, = make_stream
      io = stream.to_io
      assert_kind_of IO, io
      assert_same io, stream.to_io
      refute_predicate io, :autoclose?
    end
  end

  def test_of_an_io_it_is_that
    on_machine do
      reader, writer = IO.pipe
      stream = keep_stream(Ringspun::Stream.new(reader))
      assert_same reader, stream.to_io
      stream.close
      assert_predicate reader, :closed?
      writer.close
    end
  end

  def test_the_descriptor_is_the_stream_s_to_close
    on_machine do
      stream, other = make_stream
      stream.to_io.close
      @machine.send(other, "x\n")
      assert_equal "x", stream.read_line
    end
  end

  def test_another_when_it_was_closed
    on_machine do
      stream, other = make_stream
      stream.to_io.close
      @machine.send(other, "x")
      assert_equal [[stream], [], []], IO.select([stream], nil, nil, 60)
      assert_same stream.to_io, stream.to_io
    end
  end

  def test_after_its_end
    on_machine do
      stream, = make_stream
      io = stream.to_io
      stream.close
      assert_raises(Ringspun::UsageError) { stream.to_io }
      assert_predicate io, :closed?
    end
  end

  def test_collected_before_the_stream
    on_machine do
      stream, other = make_stream
      Array.new(50) { Ringspun::Stream.new(@machine.pipe.tap { |pair| keep(*pair) }.first).to_io }
      GC.start
      @machine.send(other, "x\n")
      assert_equal "x", stream.read_line
    end
  end

  def test_io_select
    on_machine do
      stream, other = make_stream
      assert_nil IO.select([stream], nil, nil, 0)
      strand = waiting { IO.select([stream], [], nil, 60) }
      @machine.send(other, "one\ntwo\n")
      assert_equal [[stream], [], []], strand.await
    end
  end

  # The kernel has none of them any more.
  def test_ready_while_it_holds_bytes
    on_machine do
      stream, other = make_stream
      @machine.send(other, "one\ntwo\n")
      assert_equal "one", stream.read_line
      [stream, stream.to_io].each do |one|
        assert_equal [[one], [], []], IO.select([one], nil, nil, 0)
        assert_equal [[one], [], []], IO.select([one], nil, nil, 60)
      end
      assert_same stream.to_io, stream.to_io.wait_readable(0)
      assert_equal IO::READABLE, stream.to_io.wait(IO::READABLE, 60)
      assert_equal "two", stream.read_line
      assert_nil IO.select([stream], nil, nil, 0)
      assert_nil stream.to_io.wait_readable(0)
    end
  end

  def test_ready_at_its_end
    on_machine do
      stream, other = make_stream
      end_sending(other)
      assert_nil stream.read_line
      assert_equal [[stream], [], []], IO.select([stream], nil, nil, 0)
    end
  end

  def test_writable
    on_machine do
      stream, = make_stream
      assert_equal [[], [stream], []], IO.select(nil, [stream], nil, 60)
    end
  end

  def test_a_simulated_one
    Ringspun::Simulation.run(faults: false) do |machine|
      reader, writer = machine.pipe
      stream = Ringspun::Stream.new(reader)
      assert_raises(Ringspun::UnsupportedError) { stream.to_io }
      assert_match(/over #{reader}/, stream.inspect)
      stream.close
      machine.close(writer)
    end
  end
end
