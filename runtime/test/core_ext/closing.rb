# frozen_string_literal: true

require "test_helper"
require "socket"
require "ringspun/core_ext"

# IO#close ends the waits of this thread's strands, as Machine#close does.
class CoreExtClosingTest < Minitest::Test
  # Runs the block in a strand until it waits; the answer is how it ends.
  def waiting
    strand = Ringspun.spin do
      yield
    rescue StandardError => error
      error
    end
    Ringspun.wait(0) while %i[new ready].include?(strand.state)
    assert_equal :parked, strand.state
    strand
  end

  def assert_closed(error) = assert_instance_of(IOError, error)

  def test_who_waits_gets_an_io_error
    Ringspun.run do
      reader, writer = IO.pipe
      strands = [waiting { reader.gets }, waiting { reader.wait_readable }, waiting { reader.await_readable },
                 waiting { reader.await_read(1) }]
      assert_nil reader.close
      assert_predicate reader, :closed?
      strands.each { |strand| assert_closed strand.await }
      writer.close
    end
  end

  # As threads do: what they wait for is another file from then on.
  def test_who_waits_for_an_io_that_is_reopened_gets_an_io_error
    Ringspun.run do
      reader, writer = IO.pipe
      other, others = IO.pipe
      strands = [waiting { reader.gets }, waiting { reader.await_readable }, waiting { IO.select([reader]) }]
      assert_same reader, reader.reopen(other)
      strands.each { |strand| assert_closed strand.await }
      strand = waiting { reader.gets }
      others.puts "from the other"
      assert_equal "from the other\n", strand.await
      [reader, other, others].each(&:close)
      assert_raises(Errno::EPIPE) { writer.write("nobody has it") }
      writer.close
    end
  end

  def test_an_io_is_reopened_by_a_path_with_options
    Ringspun.run do
      reader, writer = IO.pipe
      strand = waiting { reader.gets }
      reader.reopen(__FILE__, "r", external_encoding: "BINARY")
      assert_closed strand.await
      assert_equal ["# frozen_string_literal: true\n", Encoding::BINARY], [reader.gets, reader.external_encoding]
      [reader, writer].each(&:close)
    end
  end

  # It is open, and so is what waits for it.
  def test_an_io_is_not_reopened_by_what_is_no_io
    Ringspun.run do
      reader, writer = IO.pipe
      assert_raises(TypeError) { reader.reopen(nil) }
      assert_raises(Errno::ENOENT) { reader.reopen("/no such file") }
      strand = waiting { reader.gets }
      writer.puts "still there"
      assert_equal "still there\n", strand.await
      [reader, writer].each(&:close)
    end
  end

  def test_methods_of_the_machine_tell_their_own_error
    reader, writer = IO.pipe
    machine = Ringspun::Machine.current
    strands = [waiting { machine.read(reader, +"") }, waiting { Ringspun.await_readable(reader) }]
    reader.close
    strands.each { |strand| assert_instance_of Ringspun::ClosedError, strand.await }
    writer.close
  end

  # They wait for a descriptor that stands for all of theirs.
  def test_who_waits_for_several_gets_an_io_error
    Ringspun.run do
      reader, writer = IO.pipe
      other, full = IO.pipe
      full.write_nonblock("x" * 65_536)
      strands = [waiting { IO.select([reader]) }, waiting { IO.select([reader], [full], nil, 60) },
                 waiting { IO.select(nil, [full]) }]
      assert_nil reader.close
      strands.first(2).each { |strand| assert_closed strand.await }
      assert_equal :parked, strands.last.state
      assert_nil full.close
      assert_closed strands.last.await
      [writer, other].each(&:close)
    end
  end

  # As `ensure` blocks do.
  def test_who_waited_may_close_as_well
    sockets = Socket.pair(:UNIX, :STREAM)
    strands = Array.new(3) do
      waiting do
        sockets.first.await_read(1)
      ensure
        sockets.first.close
      end
    end
    sockets.each(&:close)
    strands.each { |strand| assert_closed strand.await }
  end

  def test_both_descriptors_of_a_child_process
    child = IO.popen("cat", "r+")
    strand = waiting { child.await_read(1) }
    assert_nil child.close
    assert_predicate $?, :success?
    assert_closed strand.await
  end

  def test_a_number_that_is_used_again
    reader, writer = IO.pipe
    strand = waiting { reader.await_readable }
    number = reader.fileno
    reader.close
    other, = others = IO.pipe
    assert_equal number, other.fileno
    others.last << "x"
    assert_closed strand.await
    [writer, *others].each(&:close)
  end

  def test_with_nobody_waiting_it_is_the_stock_one
    reader, writer = IO.pipe
    other, = others = IO.pipe
    strand = waiting { other.await_read(1) }
    metrics = Ringspun::Machine.current.metrics
    assert_nil reader.close
    assert_nil reader.close
    writer.close
    assert_equal metrics, Ringspun::Machine.current.metrics
    others.last << "x"
    assert_equal "x", strand.await
    others.each(&:close)
  end

  def test_a_thread_without_a_machine
    assert_equal [true, false], Thread.new { [IO.pipe.each(&:close).all?(&:closed?), Ringspun::Machine.current?] }.value
  end

  class Counted < IO
    attr_reader :closes

    def close
      @closes = @closes.to_i + 1
      super
    end
  end

  def test_what_its_class_makes_of_close_is_done_once
    reader, writer = IO.pipe
    counted = Counted.new(reader.fileno, autoclose: false)
    strand = waiting { counted.await_readable }
    counted.close
    assert_closed strand.await
    assert_equal [1, true], [counted.closes, counted.closed?]
    reader.close
    writer.close
  end

  def test_a_forked_child
    reader, writer = IO.pipe
    strand = waiting { reader.await_readable }
    status = in_child do
      reader.close
      raise "still open" unless reader.closed?
    end
    assert_predicate status, :success?
    writer << "x"
    assert_equal true, strand.await
    [reader, writer].each(&:close)
  end

  def test_an_object_that_was_never_opened
    assert_raises(IOError) { IO.allocate.close }
    reader, writer = IO.pipe
    strand = waiting { reader.await_readable }
    assert_raises(IOError) { IO.allocate.close }
    reader.close
    assert_closed strand.await
    writer.close
  end
end
