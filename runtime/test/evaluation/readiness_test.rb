# frozen_string_literal: true

require "test_helper"
require "support/evaluations"

# Ringspun.await_readable and .await_writable.
class EvaluationReadinessTest < Minitest::Test
  include Evaluations

  def setup
    super
    @open = []
  end

  def teardown
    @open.each { |fd| machine.close(fd) }
    super
  end

  def pipe = machine.pipe.tap { |pair| @open.concat(pair) }

  def pair = machine.socketpair.tap { |sockets| @open.concat(sockets) }

  def fill(fd) = begun { machine.write(fd, "x" * 10_000_000) }

  def drain(fd) = machine.read(fd, +"")

  def test_waits_until_it_is
    reader, writer = pipe
    evaluation = begun { Ringspun.await_readable(reader) }
    refute_predicate evaluation, :concluded?
    assert_predicate evaluation, :waiting?
    machine.write(writer, "x")
    assert_equal true, evaluation.await_result
  end

  def test_without_looking_first
    reader, writer = pipe
    machine.write(writer, "x")
    ran = false
    other = machine.spin { machine.park.then { ran = true } }
    machine.yield until other.state == :parked
    machine.schedule(other) # and so it is ahead of whoever is woken later
    assert_equal true, Ringspun.await_readable(reader, poll_first: false)
    assert ran
    assert_equal true, Ringspun.await_writable(writer, poll_first: false)
  end

  def test_at_the_end_of_the_stream
    reader, writer = machine.pipe
    evaluation = begun { Ringspun.await_readable(reader) }
    machine.close(writer)
    assert_equal true, evaluation.await_result
    machine.close(reader)
  end

  def test_several_waiters
    reader, writer = pipe
    waiters = Array.new(3) { begun { Ringspun.await_readable(reader) } }
    machine.write(writer, "x")
    assert_equal [true] * 3, waiters.map(&:await_result)
  end

  def test_several_waiters_of_which_one_is_concluded
    reader, writer = pipe
    waiters = Array.new(3) { begun { Ringspun.await_readable(reader) } }
    waiters[1].conclude_to(:over)
    machine.write(writer, "x")
    assert_equal [true, :over, true], waiters.map(&:await_result)
  end

  def test_a_reader_and_a_writer_on_one_socket
    one, other = pair
    filler = fill(one)
    reader = begun { Ringspun.await_readable(one) }
    writer = begun { Ringspun.await_writable(one) }
    refute_predicate reader, :concluded?
    refute_predicate writer, :concluded?
    machine.write(other, "x")
    assert_equal true, reader.await_result
    refute_predicate writer, :concluded?
    drainer = begun { loop { drain(other) } }
    assert_equal true, writer.await_result
    end_all filler, drainer
  end

  def test_a_limit
    reader, writer = pipe
    error = assert_raises(Evaluation::TimeoutError) { Ringspun.await_readable(reader, within: 0.001) }
    assert_equal "evaluation timed out after 0.001 second(s)", error.message
    [:late, nil, false].each do |late|
      seen = Ringspun.await_readable(reader, within: 0, timeout_result: late)
      assert late.nil? ? seen.nil? : late == seen
    end
    assert_equal true, Ringspun.await_writable(writer, within: 10)
    assert_equal 0, machine.metrics[:ops_in_flight]
    machine.write(writer, "x")
    assert_equal true, Ringspun.await_readable(reader, within: 10)
    assert_equal 0, machine.metrics[:timers]
  end

  def test_resumed
    reader, writer = pipe
    evaluation = begun { Ringspun.await_readable(reader) }
    assert_equal :resumed, evaluation.resume!(5)
    assert_equal 5, evaluation.await_result
    machine.write(writer, "x")
    assert_equal true, Ringspun.await_readable(reader)
    assert_equal 0, machine.metrics[:ops_in_flight]
  end

  # A resume that came too late for its wait must not end another one.
  def test_resumed_and_cancelled_at_once
    reader, = pipe
    seen = []
    evaluation = begun do
      Ringspun.await_readable(reader)
    ensure
      seen << wait(0.001)
    end
    evaluation.resume!(:stale)
    evaluation.conclude_to(1)
    assert_equal [true], seen
  end

  def test_cancelled_by_its_scope_and_resumed
    reader, = pipe
    seen = []
    mine = nil
    Ringspun.scope do |scope|
      scope.spin do
        mine = current
        Ringspun.await_readable(reader)
      ensure
        Ringspun.shield { seen << wait(0.001) }
      end
      wait(0)
      scope.cancel
      error_of { mine.resume!(:stale) }
    end
    assert_equal [true], seen
  end

  def test_closed_meanwhile
    reader, writer = machine.pipe
    evaluation = begun { Ringspun.await_readable(reader) }
    machine.close(reader)
    assert_kind_of Ringspun::ClosedError, error_of { evaluation.await_result }
    machine.close(writer)
  end

  def test_wrong_arguments
    reader, = pipe
    assert_raises(Ringspun::UsageError) { Ringspun.await_readable }
    assert_raises(ArgumentError) { Ringspun.await_readable(reader, without: 1) }
    assert_raises(Ringspun::UsageError) { Ringspun.await_readable(reader, 1) }
    assert_raises(Ringspun::UsageError) { Ringspun.await_readable(Object.new) }
    assert_kind_of Ringspun::ClosedError, error_of { Ringspun.await_readable(9999) }
  end
end

# The look before the wait, which a simulated kernel has no answer to.
class EvaluationPollFirstTest < EvaluationReadinessTest
  instance_methods.grep(/\Atest_/).each { |name| undef_method(name) }

  def test_a_descriptor_that_is_ready_takes_no_turn
    reader, writer = pipe
    machine.write(writer, "x")
    ran = false
    machine.yield # its turn begins anew: one that has lasted for long ends at the next look
    conproc { ran = true }.call_and_forget
    assert_equal true, Ringspun.await_readable(reader)
    assert_equal true, Ringspun.await_writable(writer)
    refute ran
    settle
  end

  def test_after_many_such_returns_others_have_a_turn
    reader, writer = pipe
    machine.write(writer, "x")
    turns = 0
    other = begun { 20.times { (turns += 1).then { wait(0) } } }
    wait(0)
    before = turns
    7.times { Ringspun.await_readable(reader) }
    assert_equal before, turns
    80.times { Ringspun.await_readable(reader) }
    assert_includes 9..11, turns - before
    other.await_result
  end

  def test_calls_between_such_returns_are_no_turn_of_the_others
    reader, writer = pipe
    machine.write(writer, "x")
    turns = 0
    other = begun { loop { (turns += 1).then { wait(0) } } }
    before = turns
    80.times { Ringspun.await_readable(reader).then { conproc {}.call_nonblock } }
    assert_includes 8..12, turns - before
    other.conclude_to(nil)
  end
end

class SimulatedEvaluationReadinessTest < EvaluationReadinessTest
  include OnSimulation
end
