# frozen_string_literal: true

require "test_helper"
require "socket"
require "tempfile"
require "ringspun/core_ext"

class CoreExtStreamsTest < Minitest::Test
  def setup
    super
    @reader, @writer = IO.pipe
  end

  def teardown
    [@reader, @writer].each(&:close)
    super
  end

  def test_await_readable_waits_for_the_other_side
    order = []
    evaluation = concurrently { order << @reader.await_readable << @reader.read_nonblock(5) }
    wait 0
    @writer << "hello"
    evaluation.await_result
    assert_equal [true, "hello"], order
  end

  def test_await_readable_with_a_limit
    assert_equal false, @reader.await_readable(within: 0.001, timeout_result: false)
    error = assert_raises(Ringspun::Evaluation::TimeoutError) { @reader.await_readable(within: 0) }
    assert_equal "evaluation timed out after 0 second(s)", error.message
  end

  def test_options_in_a_hash
    limit = { within: 0.001, timeout_result: :late }
    assert_equal :late, @reader.await_readable(limit)
    assert_raises(ArgumentError) { @reader.await_readable({ unknown: 1 }) }
    assert_raises(Ringspun::UsageError) { @reader.await_readable(1) }
    assert_raises(Ringspun::UsageError) { @reader.await_readable({}, {}) }
  end

  def test_await_writable_waits_for_room
    fill
    assert_equal :full, @writer.await_writable(within: 0.001, timeout_result: :full)
    evaluation = concurrently { @writer.await_writable }
    wait 0
    @reader.read_nonblock(1_000_000)
    assert_equal true, evaluation.await_result
  end

  # Its object has a descriptor for each direction.
  def test_a_child_process_is_written_to_where_it_reads
    IO.popen("cat", "r+") do |child|
      assert_equal true, child.await_writable(within: 10)
      assert_equal true, Ringspun.await_writable(child, within: 10)
      assert_equal 3, child.await_written("cat")
      assert_equal "cat", child.await_read(10)
    end
  end

  def test_several_wait_for_one_socket
    ours, theirs = Socket.pair(:UNIX, :STREAM)
    reading = Array.new(2) { concurrently { ours.await_readable } }
    writing = concurrently { ours.await_writable }
    assert_equal true, writing.await_result
    theirs << "x"
    assert_equal [true, true], reading.map(&:await_result)
  ensure
    [ours, theirs].each(&:close)
  end

  def test_await_read_and_its_buffer
    evaluation = concurrently { @reader.await_read(3) }
    wait 0
    @writer << "hello"
    assert_equal "hel", evaluation.await_result
    buffer = +"old"
    assert_same buffer, @reader.await_read(10, buffer)
    assert_equal "lo", buffer
    @writer.close
    assert_raises(EOFError) { @reader.await_read(1) }
  end

  def test_await_written_is_one_write
    fill(99_999)
    evaluation = concurrently { @writer.await_written("x" * 1_000_000) }
    wait 0
    refute_predicate evaluation, :concluded?
    @reader.read_nonblock(10_000)
    assert_includes 1..999_999, evaluation.await_result
  end

  def test_concurrently_read_and_write
    reading = @reader.concurrently_read(5)
    writing = @writer.concurrently_write("hello")
    assert_equal ["hello", 5], [reading, writing].map(&:await_result)
    assert_instance_of Ringspun::Evaluation, reading
  end

  WAYS = {
    await_readable: ->(reader, _) { reader.await_readable }, await_writable: ->(_, writer) { writer.await_writable },
    await_read: ->(reader, _) { reader.await_read(1) }, await_written: ->(_, writer) { writer.await_written("x") }
  }.freeze

  WAYS.each do |name, way|
    define_method("test_many_ready_ones_take_turns_by_#{name}") do
      @writer << "x" * 200
      turns = 0
      other = concurrently { loop { (turns += 1) && wait(0) } }
      100.times { way.call(@reader, @writer) }
      assert_includes 2..20, turns
      other.conclude_to nil
    end
  end

  def test_what_is_read_is_not_lost_to_a_cancellation
    @writer << "x" * 100
    read = 0
    evaluation = concurrent_proc { loop { @reader.await_read(1).then { read += 1 } } }.call_nonblock
    evaluation.conclude_to nil
    assert_equal 100 - read, @reader.read_nonblock(1000).size
  end

  def test_an_io_that_is_closed
    @reader.close
    assert_raises(IOError) { @reader.await_readable }
    assert_raises(Ringspun::ClosedError) { Ringspun.await_readable(@reader) }
  end

  # Which would be asked by a thread that does not hold Ruby's lock.
  def test_pwrite_goes_past_the_scheduler
    asked = []
    scheduler = Class.new(Ringspun::Scheduler) { define_method(:io_pwrite) { |*arguments| asked << arguments and super(*arguments) } }
    Tempfile.create("ringspun") do |file|
      Thread.new do
        Fiber.set_scheduler(scheduler.new)
        Fiber.schedule do
          assert_equal 2, file.pwrite(:yz, 1)
          assert_equal 1, file.pwrite("x", 0)
          refute_predicate Fiber.current, :blocking?
        end
      end.join
      assert_equal "xyz", file.read
      assert_raises(ArgumentError) { file.pwrite("x") }
    end
    assert_empty asked
  end

  private

  def fill(step = 65_536)
    loop { break if @writer.write_nonblock("x" * step, exception: false) == :wait_writable }
    loop { break if @writer.write_nonblock("x", exception: false) == :wait_writable }
  end
end
