# frozen_string_literal: true

require "test_helper"
require "support/evaluations"

# Evaluation#conclude_to while the target waits for input or output: the op is cancelled and the descriptor is free.
class EvaluationConcludeIOTest < Minitest::Test
  include Evaluations

  def with_pipe
    pipe = machine.pipe
    yield(*pipe)
  ensure
    pipe.each { |fd| machine.close(fd) }
  end

  # Whether another reads what is written now.
  def assert_free(reader, writer)
    assert_equal 0, machine.metrics[:ops_in_flight]
    machine.write(writer, "for another")
    assert_equal "for another", conproc { (+"").tap { |bytes| machine.read(reader, bytes) } }.call_detached.await_result
  end

  def conclude_and_check(ensured, evaluation)
    wait(0)
    assert_equal :concluded, evaluation.conclude_to(:over)
    assert_equal [:ensured], ensured
    assert_equal :over, evaluation.await_result
  end

  def test_a_read
    with_pipe do |reader, writer|
      ensured = []
      evaluation = begun do
        machine.read(reader, +"")
      ensure
        ensured << :ensured
      end
      conclude_and_check(ensured, evaluation)
      assert_free(reader, writer)
    end
  end

  def test_a_read_in_a_call
    with_pipe do |reader, writer|
      inner = nil
      outer = begun { conproc { (inner = current).then { machine.read(reader, +"") } }.call.then { |value| [:outer, value] } }
      inner.conclude_to(:over)
      assert_equal [:outer, :over], outer.await_result
      assert_free(reader, writer)
    end
  end

  def test_a_write
    with_pipe do |_, writer|
      ensured = []
      evaluation = begun do
        machine.write(writer, "x" * 1_000_000)
      ensure
        ensured << :ensured
      end
      conclude_and_check(ensured, evaluation)
      assert_equal 0, machine.metrics[:ops_in_flight]
    end
  end

  %i[await_readable await_writable].each do |name|
    define_method("test_#{name}") do
      with_pipe do |reader, writer|
        writes = name == :await_writable
        machine.write(writer, "x" * 65_536) if writes
        ensured = []
        evaluation = begun do
          Ringspun.__send__(name, writes ? writer : reader)
        ensure
          ensured << :ensured
        end
        conclude_and_check(ensured, evaluation)
        assert_equal 0, machine.metrics[:ops_in_flight]
        assert_free(reader, writer) unless writes
      end
    end
  end

  # What has come is not lost: the read delivers it, and the next wait is cancelled.
  def test_a_read_that_has_its_bytes_already
    with_pipe do |reader, writer|
      seen = []
      evaluation = begun do
        seen << (+"").tap { |bytes| machine.read(reader, bytes) }
        wait(0)
        seen << :never
      end
      machine.write(writer, "bytes")
      evaluation.conclude_to(:over)
      taken = seen.first || (+"").tap { |bytes| machine.read(reader, bytes) }
      assert_equal "bytes", taken
      refute_includes seen, :never
      assert_equal :over, evaluation.await_result
    end
  end

  def test_a_descriptor_can_be_closed_in_its_ensure_block
    reader, writer = machine.pipe
    evaluation = begun do
      machine.read(reader, +"")
    ensure
      machine.close(reader)
    end
    evaluation.conclude_to(:over)
    assert_raises(Ringspun::ClosedError) { machine.read(reader, +"") }
    machine.close(writer)
  end
end

class SimulatedEvaluationConcludeIOTest < EvaluationConcludeIOTest
  include OnSimulation
end

# The waits of Ruby's own IO, by the scheduler's hooks.
class EvaluationConcludeStockIOTest < Minitest::Test
  include Evaluations

  def with_pipe
    pipe = IO.pipe
    yield(*pipe)
  ensure
    pipe.each(&:close)
  end

  READS = {
    read: ->(io) { io.read(5) },
    readpartial: ->(io) { io.readpartial(5) },
    gets: :gets.to_proc,
    wait_readable: ->(io) { io.wait_readable(100) && io.readpartial(5) },
    select: ->(io) { IO.select([io], nil, nil, 100) && io.readpartial(5) }
  }.freeze

  READS.each do |name, read|
    define_method("test_#{name}") do
      with_pipe do |reader, writer|
        Ringspun.run do
          ensured = []
          evaluation = begun do
            read.call(reader)
          ensure
            ensured << :ensured
          end
          evaluation.conclude_to(:over)
          assert_equal [[:ensured], :over], [ensured, evaluation.await_result]
          assert_equal 0, machine.metrics[:ops_in_flight]
          writer.write("next\n")
          assert_equal "next\n", conproc { read.call(reader) }.call_detached.await_result
        end
      end
    end
  end

  def test_in_a_call
    with_pipe do |reader, writer|
      Ringspun.run do
        inner = nil
        outer = begun { conproc { (inner = current).then { reader.gets } }.call.then { |value| [:outer, value] } }
        inner.conclude_to(:over)
        assert_equal [:outer, :over], outer.await_result
        writer.puts("next")
        assert_equal "next\n", reader.gets
      end
    end
  end

  def test_sleep_queue_mutex_and_process
    children = []
    Ringspun.run do
      lock = Thread::Mutex.new
      holder = begun { lock.synchronize { wait(Float::INFINITY) } }
      [-> { sleep }, -> { Thread::Queue.new.pop }, -> { lock.synchronize {} }, -> {
        Process.wait(children.push(spawn("sleep", "60")).last)
      }].each do |wait|
        ensured = []
        evaluation = begun do
          wait.call
        ensure
          ensured << :ensured
        end
        evaluation.conclude_to(:over)
        assert_equal [[:ensured], :over], [ensured, evaluation.await_result]
      end
      holder.conclude_to(1)
      assert_equal 2, lock.synchronize { 2 }
    end
  ensure
    children.each { |pid| Process.kill(:KILL, pid) }
    Process.waitall
  end
end
