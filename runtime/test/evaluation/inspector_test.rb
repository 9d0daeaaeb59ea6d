# frozen_string_literal: true

require "test_helper"
require "support/evaluations"

# Evaluations are strands like any other for the inspector.
class EvaluationInspectorTest < Minitest::Test
  include Evaluations

  def setup
    super
    machine.locate = true
  end

  def teardown
    machine.locate = false
    super
  end

  def tree = Ringspun::Inspector.new(machine).tree

  def strand_of(evaluation)
    (machine.strands - [machine.running]).tap { |all| assert_equal 1, all.size, evaluation.inspect }.first
  end

  FORMS = {
    call_nonblock: ->(made) { made.call_nonblock },
    call_detached: ->(made) { made.call_detached },
    call_and_forget: ->(made) { made.call_and_forget },
    concurrently: ->(made) { Ringspun.concurrently(&made) }
  }.freeze

  FORMS.each do |name, form|
    define_method("test_where_a_#{name}_was_spawned") do
      form.call(conproc { (@mine = current).then { wait(Float::INFINITY) } })
      wait(0)
      place = strand_of(@mine).spawned_at
      assert_equal __FILE__, place.path
      source = File.readlines(__FILE__)[place.lineno - 1]
      assert_match(/#{name}/, source)
      assert_match(/spun at #{Regexp.escape(__FILE__)}:#{place.lineno}.*: waits for a time to pass, for/, tree)
      @mine.conclude_to(1)
    end
  end

  def test_what_it_waits_for
    target = waiting
    waiter = begun { target.await_result }
    assert_equal 1, tree.scan("waits for an evaluation").size
    fastest = begun { Ringspun.await_fastest(target, waiter) }
    resume = begun { Ringspun.await_resume! }
    assert_equal 3, tree.scan("waits for an evaluation").size
    end_all fastest, resume, waiter, target
  end

  def test_each_of_a_batch_has_its_own_place
    evaluations = [conproc { current.proc && wait(0.001) }.call_detached,
                   conproc { current.proc && wait(0.001) }.call_detached]
    wait(0)
    lines = (machine.strands - [machine.running]).map { |strand| strand.spawned_at.lineno }
    assert_equal [__LINE__ - 4, __LINE__ - 3], lines.sort
    evaluations.each(&:await_result)
  end

  def test_the_one_that_concludes_waits_for_an_evaluation
    target = begun do
      wait(Float::INFINITY)
    ensure
      wait(0.001)
    end
    concluder = begun { target.conclude_to(1) }
    assert_equal 1, tree.scan("waits for an evaluation").size
    concluder.await_result
  end

  def test_in_a_scope_it_is_below_its_owner
    Ringspun.scope do |scope|
      evaluation = scope.concurrently { wait(Float::INFINITY) }
      wait(0)
      assert_same machine.running, strand_of(evaluation).owner
      evaluation.conclude_to(1)
    end
  end

  def test_the_handle_that_was_shown_stays_that_of_its_run
    evaluation = begun { wait(0.001) }
    strand = strand_of(evaluation)
    evaluation.await_result
    3.times { conproc { wait(0) }.call_detached.await_result }
    assert_equal [:done, false], [strand.state, strand.alive?]
  end
end

class SimulatedEvaluationInspectorTest < EvaluationInspectorTest
  include OnSimulation
end
