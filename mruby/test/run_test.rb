# frozen_string_literal: true

# Ringspun.run, nested and from several strands at once: a strand belongs to the innermost run that its spinner is in.
class RunTest < Minitest::Test
  include Strands

  def test_a_nested_run_leaves_the_outer_one_its_strands
    assert_equal %i[late], (ended_with do |ended|
      Ringspun.run { nil }
      later(0.003) { ended << :late }
    end)
  end

  def test_a_nested_run_returns_when_its_own_have_ended
    assert_equal %i[inner left outer], (ended_with do |ended|
      gate = Ringspun::Queue.new
      machine.spin { gate.pop and ended << :outer }
      Ringspun.run { later(0.001) { ended << :inner } }
      ended << :left
      gate << true
    end)
  end

  def test_a_nested_run_that_fails
    assert_equal %i[inner failed late], (ended_with do |ended|
      Ringspun.run do
        machine.spin do
          wait(60)
        ensure
          ended << :inner
        end
        machine.yield
        raise ArgumentError
      end
    rescue ArgumentError
      ended << :failed
      later(0.001) { ended << :late }
    end)
  end

  def test_runs_of_two_strands_at_once
    assert_equal %i[short short_left long long_left late], (ended_with do |ended|
      gate = Ringspun::Queue.new
      machine.spin do
        Ringspun.run { later(0.001) { ended << :short } }
        ended << :short_left
        gate << true
      end
      machine.spin do
        Ringspun.run { machine.spin { gate.pop and ended << :long } }
        ended << :long_left
        later(0.001) { ended << :late }
      end
    end)
  end

  def test_what_a_strand_spins_belongs_to_the_run_of_the_strand
    assert_equal %i[grandchild left], (ended_with do |ended|
      Ringspun.run do
        machine.spin do
          wait(0.001)
          machine.scope { later(0.002) { ended << :grandchild } }
        end
      end
      ended << :left
    end)
  end

  def test_evaluations_of_a_nested_run
    %i[call_detached call_nonblock call_and_forget].each do |call|
      assert_equal %i[inner left late], (ended_with do |ended|
        Ringspun.run { concurrent_proc { wait(0.001) and ended << :inner }.__send__(call) }
        ended << :left
        concurrent_proc { wait(0.001) and ended << :late }.__send__(call)
      end), call.to_s
    end
  end

  def test_starts_of_two_runs_in_a_row
    assert_equal %i[first left second], (ended_with do |ended|
      gate = Ringspun::Queue.new
      concurrently { ended << :first and gate.pop and ended << :second }
      Ringspun.run { concurrently { nil } }
      ended << :left
      gate << true
    end)
  end

  def test_a_run_in_a_generator_that_is_left_for_a_while
    assert_equal %i[outer inner left], (ended_with do |ended|
      steps = Fiber.new do
        Ringspun.run do
          later(0.002) { ended << :inner }
          Fiber.yield
        end
        ended << :left
      end
      steps.resume
      Ringspun.run { later(0.001) { ended << :outer } }
      steps.resume
    end)
  end

  # Its strands belong to the run outside when nobody has the generator any more.
  def test_a_run_that_a_generator_has_left_for_ever
    assert_equal %i[left late], (ended_with do |ended|
      leave_for_ever { concurrently { wait(0.001) and ended << :late } }
      GC.start
      Ringspun.run { concurrently { nil } }
      ended << :left
    end)
  end

  def test_a_run_needs_a_block
    assert_equal "Ringspun.run needs a block", assert_raises(Ringspun::UsageError) { Ringspun.run }.message
  end

  private

  def later(seconds, &block) = machine.spin { wait(seconds) and block.call }

  def leave_for_ever
    Fiber.new { Ringspun.run { Fiber.yield(yield) } }.resume
    nil
  end

  # What has ended when a run of that block returns.
  def ended_with
    ended = []
    Ringspun.run do
      yield ended
      nil
    end
    ended.dup
  end
end

class SimulatedRunTest < RunTest
  include OnSimulation
end
