# frozen_string_literal: true

require "test_helper"
require "support/any_backend"
require "support/on_simulation"

# A strand that waits for another one, or for an evaluation, and is cancelled together with it hears that it is cancelled itself,
# whichever ends first: a scope that was merely cancelled ends by no TerminatedError.
class CancelledTogetherTest < Minitest::Test
  FOREVER = Float::INFINITY

  def test_the_end_of_a_strand_that_comes_first
    waits = [lambda(&:await), lambda(&:join), ->(strand) { machine.await(strand, strand) }, ->(strand) { machine.join([strand]) }]
    waits.each do |wait|
      assert_equal [Ringspun::Cancelled, nil], told(wait)
    end
  end

  def test_the_end_of_an_evaluation_that_comes_first
    begin_other = ->(scope, block) { scope.concurrently(&block) }
    wait = ->(evaluation) { evaluation.await_result }
    assert_equal [Ringspun::Cancelled, nil], told(wait, begin_other)
    wait = ->(evaluation) { evaluation.await_result { |error| error } }
    assert_equal [Ringspun::Cancelled, nil], told(wait, begin_other)
  end

  def test_one_that_has_ended_before
    machine.scope do |scope|
      ended = scope.spin { Ringspun.wait(FOREVER) }
      machine.yield
      ended.terminate
      machine.yield until ended.state == :done
      assert_raises(Ringspun::TerminatedError) { ended.await }
      scope.cancel
      assert_raises(Ringspun::Cancelled) { ended.await }
      assert_raises(Ringspun::TerminatedError) { Ringspun.shield { ended.await } }
    end
  end

  def test_values_and_errors_are_told_to_a_cancelled_strand
    machine.scope do |scope|
      value = scope.spin { :value }
      error = machine.spin { raise ArgumentError }
      machine.yield
      scope.cancel
      assert_equal :value, value.await
      assert_raises(ArgumentError) { error.await }
    end
  end

  def test_a_terminated_error_of_the_programs_own
    error = Ringspun::TerminatedError.new("mine")
    assert_same error, (assert_raises(Ringspun::TerminatedError) { machine.spin { raise error }.await })
  end

  private

  def machine = Ringspun::Machine.current

  # One waits for another, which is terminated. Before it goes on with that, their scope is cancelled.
  #
  # @return [Array] what its wait has raised, and what the scope returns
  def told(wait, begin_other = ->(scope, block) { scope.spin(&block) })
    raised = other_strand = nil
    ending = Ringspun::Queue.new
    value = machine.scope do |scope|
      forever = lambda do
        other_strand = machine.running
        Ringspun.wait(FOREVER)
      ensure
        ending.push(:now)
      end
      other = begin_other.call(scope, forever)
      scope.spin do
        wait.call(other)
      rescue Exception => raised
        raise
      end
      scope.spin { ending.pop and scope.cancel }
      machine.yield
      other_strand.terminate
      Ringspun.wait(FOREVER)
    end
    [raised.class, value]
  end
end

class SimulatedCancelledTogetherTest < CancelledTogetherTest
  include OnSimulation
end
