# frozen_string_literal: true

# Programs on a simulated kernel.
class SimulationTest < Minitest::Test
  include Strands

  def test_time_is_virtual
    result = Ringspun::Simulation.run { wait(3600) and :value }
    assert_equal :value, result.value
    assert_operator result.elapsed, :>=, 3600
  end

  def test_the_same_seed_gives_the_same_run
    runs = (0...2).map { Ringspun::Simulation.run(seed: 1) { |machine| race(machine) } }
    assert_equal runs[0].trace_hash, runs[1].trace_hash
    assert_equal runs[0].elapsed, runs[1].elapsed
  end

  def test_strands_of_the_machine_before_stand_still
    seen = []
    in_scope do |scope|
      scope.spin { 3.times { seen << :outer and machine.yield } }
      Ringspun::Simulation.run { |simulated| 3.times { seen << simulated.backend and simulated.yield } }
      seen << :after
    end
    assert_equal [:sim, :sim, :sim, :after, :outer, :outer, :outer], seen
  end

  def test_strands_and_scopes_of_another_machine_are_refused
    in_scope do |scope|
      outer = scope.spin { wait(0.001) and :value }
      inner = Ringspun::Simulation.run do |simulated|
        assert_raises(Ringspun::UsageError) { outer.await }
        assert_raises(Ringspun::ClosedError) { scope.spin { 1 } }
        simulated.terminate(outer)
        simulated.spin { wait(1) }
      end.value
      assert_raises(Ringspun::UsageError) { inner.await } unless inner.done?
      assert_equal :value, outer.await
    end
  end

  def test_in_a_strand_and_in_a_simulation
    inner = nil
    in_scope { |scope| scope.spin { Ringspun::Simulation.run { inner = Ringspun::Simulation.run { wait(5) and 1 } } } }
    assert_equal 1, inner.value
    refute_equal :sim, machine.backend
  end

  def test_an_error_ends_it
    seen = []
    error = assert_raises(ArgumentError) do
      Ringspun::Simulation.run do |machine|
        machine.spin do
          wait(60)
        ensure
          seen << :ended
        end
        machine.yield
        raise ArgumentError, "mine"
      end
    end
    assert_equal ["mine", [:ended]], [error.message, seen]
    refute_equal :sim, machine.backend
  end

  def test_a_deadlock_is_found_at_once
    assert_raises(Ringspun::DeadlockError) do
      Ringspun::Simulation.run do |machine|
        strands = []
        strands << machine.spin { machine.yield and strands[1].await }
        strands << machine.spin { strands[0].await }
        strands[0].await
      end
    end
  end

  def test_who_reads_sees_the_end_of_a_stream_also_when_the_kernel_is_late
    result = Ringspun::Simulation.run(faults: { late_wake: 1 }) do |machine|
      reader, writer = machine.pipe
      reading = machine.spin { reader.read.tap { reader.close } }
      wait(0.001)
      writer.close
      reading.await
    end
    assert_equal "", result.value
  end

  def test_explore_names_the_seed_that_fails
    assert_equal 20, Ringspun::Simulation.explore(20) { |machine| race(machine) }
    error = assert_raises(RuntimeError) do
      Ringspun::Simulation.explore(5, from: 7) { raise "late" if (@count = (@count || 0) + 1) == 3 }
    end
    assert_equal "seed 9: late", error.message
  end

  def test_bad_options
    [{ seed: -1 }, { seed: nil }, { faults: nil }, { faults: { rain: 0.5 } }, { faults: { delay: 2 } }].each do |options|
      assert_raises(Ringspun::UsageError) { Ringspun::Simulation.run(**options) { nil } }
    end
    assert_raises(Ringspun::UsageError) { Ringspun::Simulation.run }
    assert_includes Ringspun::Simulation::FAULTS, :late_cancel
  end

  def test_metrics
    before = machine.metrics
    in_scope { |scope| 3.times { scope.spin { wait(0.001) } } }
    after = machine.metrics
    assert_equal [3, 3], %i[strands_spawned timers_fired].map { |name| after[name] - before[name] }
    assert_equal [1, 0], [after[:strands_live], after[:ops_in_flight]]
  end

  private

  def race(machine)
    3.times { |step| machine.spin { wait(0.001 * step) and machine.yield } }
    machine.timeout(0.002) { wait(60) }
  rescue Ringspun::TimeoutError
    nil
  end
end
