# frozen_string_literal: true

require "test_helper"
require "random/evaluation_trees"
require "support/evaluations"

# Random trees of evaluations: each is concluded once, every ensure block runs once, and no waiter and no strand is left. The
# message of a failure names the seed; `rake test:evaluations SEED=n` runs it again.
class EvaluationTreeTest < Minitest::Test
  include AnyBackend
  include Evaluations

  def test_random_trees
    seed = ENV["RINGSPUN_SEED"]
    seeds = seed ? 1 : Integer(ENV.fetch("RINGSPUN_SEEDS", "300"))
    assert_equal seeds, EvaluationTrees.explore(seeds, from: Integer(seed || 0))
  end

  def test_a_broken_rule_names_the_seed
    broken = Class.new(EvaluationTrees) { def check(_) = raise("broken") }
    assert_match(/\Aseed 7: broken/, assert_raises(RuntimeError) { broken.explore(1, from: 7) }.message)
  end
end
