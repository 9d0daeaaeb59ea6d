# frozen_string_literal: true

require "jobs_helper"
require "torture/sqlite_fault_run"

# rubies: one

# A short fault run on a file. `rake jobs:torture` is the long one; SEED=n has the same faults in the same order.
class SqliteFaultRunTest < Minitest::Test
  include AnyBackend

  SECONDS = Integer(ENV.fetch("RINGSPUN_TORTURE_SECONDS", "30"))

  # Before the descriptors are counted.
  def before_setup
    FaultRun.prepare
    super
  end

  def test_nothing_is_lost_and_nothing_is_left
    # It has patience of its own with each of its steps.
    seed = Integer(ENV.fetch("SEED", rand(1_000_000).to_s))
    run = SqliteFaultRun.new(seconds: SECONDS, seed:, tick: Supervised.method(:tick))
    problems = run.run
    puts run
    assert_empty problems, "#{run}; SEED=#{run.seed} begins with the same faults\n#{problems.join("\n")}"
  end
end
