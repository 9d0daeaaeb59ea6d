# frozen_string_literal: true

require "test_helper"
require "logger"
require "support/evaluations"

# Errors that conclude an evaluation, and who hears of them.
class EvaluationErrorsTest < Minitest::Test
  include Evaluations

  def setup
    super
    @handlers = []
  end

  def teardown
    @handlers.each(&:cancel)
    super
  end

  def on_class(owner = ConcurrentProc, &block) = owner.on(:error, &block).tap { |handler| @handlers << handler }

  [StandardError, ScriptError, NotImplementedError, SecurityError, SystemStackError].each do |kind|
    define_method("test_a_#{kind.name.downcase}_concludes_it_and_runs_the_handlers") do
      seen = []
      made = conproc { wait(0).then { raise kind, "mine" } }
      made.on(:error) { |error| seen << error }
      3.times { |i|
        assert_raises(kind) {
          i.zero? ? made.call : made.__send__(%i[call_nonblock call_detached][i - 1]).await_result
        }
      }
      made.call_and_forget
      settle
      assert_equal [kind] * 4, seen.map(&:class)
      assert_equal 4, log.string.scan("mine").size / seen.first.full_message(highlight: false).scan("mine").size
    end
  end

  # Errors of the Postgres client's `async` are reported when nobody gets them.
  class Telling < Evaluation
    attr_reader :times

    private

    def error_read = @times = @times.to_i + 1
  end

  WAYS = {
    await_result: ->(evaluation) { evaluation.await_result },
    await_result_with_a_block: ->(evaluation) { evaluation.await_result { |error| raise error } },
    select: ->(evaluation) { raise Ringspun.select(evaluation).last },
    call_of_concurrently: ->(evaluation) { ConcurrentProc.new { evaluation }.__send__(:call_and_await) }
  }.freeze

  WAYS.each do |name, get|
    define_method("test_a_subclass_is_told_when_somebody_gets_its_error_by_#{name}") do
      2.times do |turn|
        evaluation = conproc(Telling) { wait(0) && raise(Failure) }.call_detached
        settle if turn == 1
        assert_raises(Failure) { get.call(evaluation) }
        assert_equal 1, evaluation.times
      end
    end
  end

  def test_a_subclass_is_told_of_no_other_end_of_a_wait
    evaluation = conproc(Telling) { wait(60) }.call_detached
    assert_raises(Evaluation::TimeoutError) { evaluation.await_result(within: 0) }
    evaluation.conclude_to(:value)
    assert_equal [:value, nil], [evaluation.await_result, evaluation.times]
    settle
  end

  def test_handlers_of_the_class_first_and_then_of_the_proc
    order = []
    made = conproc { raise Failure }
    made.on(:error) { order << :proc }
    on_class { order << :class }
    made.on(:error) { order << :proc_again }
    error_of { made.call }
    assert_equal %i[class proc proc_again], order
  end

  def test_handlers_of_superclasses_first
    order = []
    subclass = Class.new(ConcurrentProc)
    on_class(subclass) { order << :subclass }
    on_class { order << :class }
    error_of { subclass.new { raise Failure }.call_nonblock }
    assert_equal %i[class subclass], order
    error_of { conproc { raise Failure }.call_nonblock }
    assert_equal %i[class subclass class], order
  end

  def test_a_handler_of_a_class_runs_as_a_method_of_the_proc_and_one_of_a_proc_does_not
    seen = []
    subclass = Class.new(ConcurrentProc)
    subclass.on(:error) { |error| seen << [self, error.class] }
    made = subclass.new { raise Failure }
    made.on(:error) { |error| seen << [self, error.class] }
    error_of { made.call }
    assert_equal [[made, Failure], [self, Failure]], seen
  end

  def test_a_handler_that_was_cancelled
    seen = []
    made = conproc { raise Failure }
    handlers = Array.new(2) { |i| made.on(:error) { seen << i } }
    assert_same handlers[0], handlers[0].cancel
    handlers[0].cancel
    error_of { made.call }
    assert_equal [1], seen
  end

  def test_a_copy_has_a_list_of_its_own_that_begins_with_the_same_handlers
    %i[dup clone].each do |way|
      seen = []
      made = conproc { raise Failure }
      kept, cancelled = %i[kept cancelled].map { |name| made.on(:error) { seen << name } }
      copy = made.__send__(way)
      copy.on(:error) { seen << :copys }
      made.on(:error) { seen << :originals }
      copy.on(:news) { seen << :news }
      error_of { made.call }
      error_of { copy.call }
      assert_equal %i[kept cancelled originals kept cancelled copys], seen, way
      refute made.trigger(:news), way
      seen.clear
      cancelled.cancel
      error_of { copy.call_detached.await_result }
      assert_equal %i[kept copys], seen, way
      assert_same kept, kept.cancel
    end
  end

  def test_a_copy_of_one_without_handlers_and_of_a_frozen_one
    copies = [conproc { raise Failure }.dup, conproc { raise Failure }.freeze.dup]
    copies.each do |copy|
      seen = []
      copy.on(:error) { seen << :told }
      error_of { copy.call }
      assert_equal [:told], seen
    end
    assert_predicate conproc {}.freeze.clone, :frozen?
    assert_predicate conproc {}.tap { |made| made.on(:error) {} }.freeze.clone, :frozen?
  end

  def test_trigger_is_found_dynamically
    seen = []
    made = conproc { raise Failure, "mine" }
    made.define_singleton_method(:trigger) { |event, error| seen << [event, error.message] }
    %i[call call_nonblock].each { |form| error_of { made.__send__(form) } }
    made.call_and_forget
    settle
    assert_equal [[:error, "mine"]] * 3, seen
    assert_empty log.string
  end

  def test_trigger_calls_the_handlers_of_an_event
    seen = []
    made = conproc {}
    made.on(:news) { |*news| seen << news }
    assert_equal true, made.trigger(:news, 1, 2)
    assert_equal false, made.trigger(:other)
    assert_equal [[1, 2]], seen
    assert_raises(Ringspun::UsageError) { made.on(:news) }
  end

  def test_a_handler_that_fails_does_not_take_the_errors_place
    made = conproc { raise Failure, "first" }
    made.on(:error) { raise ArgumentError, "second" }
    error = nil
    _, warned = capture_io { error = error_of { made.call_detached.await_result } }
    assert_equal "first", error.message
    assert_match(/an error handler failed with .*second/, warned)
  end

  # As where nobody reads the standard error, or an application raises for each warning.
  def test_a_warning_of_an_error_handler_that_fails_as_well
    made = conproc { raise Failure, "first" }
    made.on(:error) { raise "second" }
    kept, $stderr = $stderr, Object.new.tap { |io| io.define_singleton_method(:write) { |*| raise Errno::EPIPE } }
    begin
      assert_equal "first", error_of { made.call }.message
      assert_equal "first", error_of { made.call_nonblock.await_result }.message
    ensure
      $stderr = kept
    end
    assert_equal 1, conproc { 1 }.call
  end

  def test_an_exit_in_a_handler_ends_the_program
    %i[call call_nonblock].each do |form|
      made = conproc { raise Failure }
      made.on(:error) { exit 3 }
      error = assert_raises(SystemExit, form.to_s) { made.__send__(form) }
      assert_equal 3, error.status
    end
    made = conproc { raise Failure }
    made.on(:error) { exit 4 }
    evaluation = made.call_detached
    error = assert_raises(SystemExit) { Ringspun.wait(60) }
    assert_equal 4, error.status
    assert_raises(Failure) { evaluation.await_result }
    made.call_and_forget
    assert_raises(SystemExit) { Ringspun.wait(60) }
  end

  def test_a_throw_in_a_handler_of_a_call
    made = conproc { raise Failure }
    made.on(:error) { throw :out, :thrown }
    assert_equal :thrown, catch(:out) { made.call }
    evaluation = nil
    made = conproc { (evaluation = Evaluation.current) && raise(Failure) }
    made.on(:error) { throw :out, :thrown }
    assert_equal :thrown, catch(:out) { made.call }
    assert_raises(Failure) { evaluation.await_result }
  end

  def test_a_thread_that_a_handler_kills
    %i[call call_nonblock call_detached].each do |form|
      went_on = false
      thread = Thread.new do
        made = conproc { raise Failure }
        made.on(:error) { Thread.current.kill }
        begin
          made.__send__(form)
          Ringspun.wait(0)
        rescue Failure
          nil
        end
        went_on = true
      end
      assert_nil thread.value, form.to_s
      refute went_on, form.to_s
    end
  end

  def test_a_handler_may_wait
    seen = []
    made = conproc { raise Failure }
    made.on(:error) { Ringspun.wait(0.001).then { seen << :told } }
    assert_failed Failure, made.call_detached
    assert_equal [:told], seen
  end

  def test_handlers_are_told_before_the_waiters_go_on
    order = []
    made = conproc { raise Failure }
    made.on(:error) { order << :told }
    made.call_detached.await_result { order << :waiter && 1 }
    assert_equal %i[told waiter], order
  end

  def test_an_error_that_was_only_returned_is_not_told
    assert_raises(Failure) { conproc { Failure.new }.call }
    assert_failed Failure, conproc { Failure.new }.call_detached
    assert_empty log.string
  end

  # --- the log ---

  def error_of_forgotten
    conproc { raise Failure, "forgotten" }.call_and_forget
    settle
  end

  def test_stderr_by_default
    ConcurrentProc.error_log_output = Evaluations::Stderr.new
    _, written = capture_io { error_of_forgotten }
    assert_match(/Concurrent proc at #{Regexp.escape(__FILE__)}:\d+ ended with .*forgotten/m, written)
  end

  def test_stderr_is_what_it_starts_with
    answer = child("Ringspun.concurrent_proc { raise 'forgotten' }.call_and_forget\nRingspun.wait(0)")
    assert_match(/Concurrent proc at -e:\d+ ended with .*forgotten/, answer.err)
    assert_predicate answer.status, :success?
  end

  def test_a_logger
    ConcurrentProc.error_log_output = Logger.new(output = StringIO.new)
    error_of_forgotten
    assert_match(/ERROR.*forgotten/m, output.string)
  end

  def test_nowhere
    [nil, false].each do |nowhere|
      ConcurrentProc.error_log_output = nowhere
      assert_equal ["", ""], capture_io { error_of_forgotten }
    end
  end

  def test_another_output_takes_the_place_of_the_first
    first = log
    ConcurrentProc.error_log_output = second = StringIO.new
    error_of_forgotten
    assert_equal ["", true], [first.string, second.string.include?("forgotten")]
  end

  def test_anything_else_is_refused
    [1, Object.new, :stderr].each { |wrong| assert_raises(Ringspun::UsageError) { ConcurrentProc.error_log_output = wrong } }
  end

  # --- anything else leaves through the root's wait ---

  class Fatal < Exception # rubocop:disable Lint/InheritException
  end

  def test_anything_else_leaves_through_the_wait_of_the_root_and_the_loop_starts_afresh
    evaluation = conproc { wait(0).then { raise Fatal, "fatal" } }.call_detached
    other = conproc { wait(0.001).then { :other } }.call_detached
    assert_raises(Fatal) { wait(1) }
    assert_equal :other, other.await_result
    assert_failed Fatal, evaluation
    assert_empty log.string
    assert_equal true, wait(0.001)
  end

  def test_of_a_forgotten_one_as_well
    conproc { raise Fatal }.call_and_forget
    assert_raises(Fatal) { wait(1) }
  end

  def test_out_of_a_call_it_is_raised_to_the_caller
    assert_raises(Fatal) { conproc { wait(0).then { raise Fatal } }.call }
    assert_raises(Fatal) { conproc { current && raise(Fatal) }.call }
    assert_equal true, wait(0)
    assert_empty log.string
  end

  def test_out_of_a_nonblock_that_has_not_waited_it_is_raised_to_the_caller_only
    assert_raises(Fatal) { conproc { raise Fatal }.call_nonblock }
    assert_raises(Fatal) { conproc { current && raise(Fatal) }.call_nonblock }
    assert_equal true, wait(0)
  end

  # Nobody else would hear of it.
  def test_out_of_a_nonblock_that_has_concluded_itself_it_goes_to_the_root
    assert_equal 1, conproc { current.conclude_to(1).then { raise Fatal } }.call_nonblock
    assert_raises(Fatal) { wait(1) }
  end

  def test_out_of_a_nonblock_that_has_waited_it_goes_to_the_root
    evaluation = conproc { wait(0).then { raise Fatal } }.call_nonblock
    assert_raises(Fatal) { wait(1) }
    assert_failed Fatal, evaluation
  end
end

class SimulatedEvaluationErrorsTest < EvaluationErrorsTest
  include OnSimulation
end
