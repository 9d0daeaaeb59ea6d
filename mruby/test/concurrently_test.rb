# frozen_string_literal: true

# Programs that were written for the gem mruby-concurrently.
class ConcurrentlyTest < Minitest::Test
  include Evaluations

  def test_names
    assert_equal "1.2.0", Concurrently::VERSION
    assert_same Ringspun::Error, Concurrently::Error
    assert_kind_of Concurrently::Proc, concurrent_proc { nil }
    assert_kind_of Concurrently::Proc::Evaluation, concurrently { nil }
    assert_kind_of Concurrently::Evaluation, Concurrently::Evaluation.current
    assert_equal [true, true], [Concurrently::Evaluation::TimeoutError, Concurrently::Evaluation::Error].map { |error|
      error <= Concurrently::Error
    }
    assert_equal [true, false], [StandardError.new, Concurrently::Proc::Evaluation::Cancelled.new].map { |error|
      Concurrently::Proc::Evaluation::RescueableError === error
    }
  end

  class Answer < Concurrently::Proc::Evaluation
    def shout = await_result.upcase
  end

  def test_a_class_of_evaluations
    assert_equal "ANSWER", concurrent_proc(Answer) { wait(0.001) && "answer" }.call_detached.shout
    assert_equal "ANSWER", Concurrently::Proc.new(Answer) { "answer" }.call_detached.shout
  end

  def test_errors_and_handlers
    Concurrently::Proc.error_log_output = nil
    proc = Concurrently::Proc.new { raise "failed" }
    seen = []
    proc.on(:error) { |error| seen << error.message }
    proc.once_on(:error) { |error| seen << "once: #{error.message}" }
    assert_equal [true, false], [proc.on?(:error), proc.on?(:end)]
    2.times { assert_raises(RuntimeError) { proc.call_detached.await_result } }
    assert_equal ["failed", "once: failed", "failed"], seen
  end

  def test_once_for_all_of_a_class
    kind = Class.new(Concurrently::Proc)
    seen = []
    kind.once_on(:error) { |error| seen << [arity, error.message] }
    2.times { |number| assert_raises(RuntimeError) { kind.new { raise number.to_s }.call } }
    assert_equal [[0, "0"]], seen
  end

  def test_the_event_loop
    event_loop = Concurrently::EventLoop.current
    assert_same event_loop, event_loop.reinitialize!
    wait(0.01)
    assert_operator event_loop.lifetime, :>=, 0.01
    assert_operator event_loop.reinitialize!.lifetime, :<, 0.01 # must pass
  end

  def test_debug
    assert_raises(Concurrently::Error) { Concurrently::Debug.enable(nil) }
  end

  def test_procs_of_io
    reader, writer = IO.pipe
    assert_equal 5, IO::WRITE_PROC.call_detached(writer, "bytes").await_result
    assert_equal "bytes", IO::READ_PROC.call(reader, 10, nil)
  ensure
    [reader, writer].each(&:close)
  end
end
