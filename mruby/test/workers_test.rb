# frozen_string_literal: true

# The pool of fibers that wait for their next strand: it keeps those that were needed lately, and gives the others back.
class WorkersTest < Minitest::Test
  include Strands

  KEPT = 128

  def test_fibers_that_are_not_needed_are_given_back
    run_at_once(2000)
    assert_operator idle, :>=, 2000
    3.times { collect_and_wait }
    assert_operator idle, :<=, KEPT
    run_at_once(10)
    assert_operator idle, :<=, KEPT
  end

  def test_those_that_are_needed_between_two_collections_stay
    run_at_once(1000)
    3.times do
      collect_and_wait
      run_at_once(1000)
      assert_operator idle, :>=, 1000
    end
  end

  # Strands of evaluations are of the same pool.
  def test_fibers_of_evaluations
    Ringspun.run { 1000.times { concurrently { wait(0.001) } } }
    assert_operator idle, :>=, 1000
    3.times { collect_and_wait }
    assert_operator idle, :<=, KEPT
  end

  # Where strands end, and nobody waits.
  def test_a_machine_that_is_never_idle
    run_at_once(1000)
    3.times do
      GC.start
      in_scope { |scope| scope.spin { nil } }
    end
    assert_operator idle, :<=, KEPT
  end

  def test_a_simulation_ends_with_a_pool_that_is_not_shrunk
    Ringspun::Simulation.run(faults: false) { run_at_once(300) }
    GC.start
    run_at_once(10)
  end

  private

  def idle = machine.metrics[:idle_fibers]

  def run_at_once(count)
    in_scope { |scope| count.times { scope.spin { machine.yield } } }
  end

  def collect_and_wait
    GC.start
    wait(0.001)
  end
end
