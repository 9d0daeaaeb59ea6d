# frozen_string_literal: true

# A short fault run, on what the class has as `fault_run`. `rake jobs:torture` is the long one; SEED=n has the same faults in the
# same order.
module FaultRunSuite
  # Before the descriptors are counted.
  def before_setup
    FaultRun.prepare
    super
  end

  def test_nothing_is_lost_and_nothing_is_left
    # It has patience of its own with each of its steps.
    seed = Integer(ENV.fetch("SEED", rand(1_000_000).to_s))
    run = fault_run(seed:, tick: Supervised.method(:tick))
    problems = run.run
    puts run
    assert_empty problems, "#{run}; SEED=#{run.seed} begins with the same faults\n#{problems.join("\n")}"
  end

  # @param usual [Integer] seconds, where the environment does not say
  def seconds(usual) = Integer(ENV.fetch("RINGSPUN_TORTURE_SECONDS", usual))
end
