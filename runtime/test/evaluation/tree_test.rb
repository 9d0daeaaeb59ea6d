# frozen_string_literal: true

require "test_helper"
require "random/evaluation_trees"
require "random/evaluation_trees/node"
require "support/evaluations"
require "support/expected_failures"
require "support/seeds"
require "support/shrink"

# Random trees of evaluations: each is concluded once, every ensure block runs once, all who wait are told, and no waiter and no
# strand is left.
class EvaluationTreeTest < Minitest::Test
  include Evaluations

  EXPECTED = ExpectedFailures.new("#{__dir__}/../random/expected_failures.yml", "evaluation_trees")
  NONE = ExpectedFailures.new("/nowhere.yml", "none")

  def test_random_trees_on_simulated_machines
    seeds = Seeds.of_the_day(300)
    assert_equal seeds.size, EvaluationTrees.explore(seeds, EXPECTED)
    puts EXPECTED unless EXPECTED.to_s.empty?
  end

  def test_random_trees_on_a_real_kernel
    seeds = Seeds.of_the_day(300).then { |all| all.first((all.size / 15.0).ceil) } # they take real time
    assert_equal seeds.size, EvaluationTrees.explore(seeds, EXPECTED, real: true)
  end

  def test_a_broken_rule_names_the_seed_and_the_steps_that_matter
    broken = Class.new(EvaluationTrees) do
      def conclude(node, other) = say(node, "would conclude #{other.name}") && broken("concluded")
    end
    message = assert_raises(EvaluationTrees::Broken) { broken.explore((1..100).to_a, NONE) }.message
    assert message.start_with?("seed 1: concluded\nonce more: RINGSPUN_SEED=1 bin/"), message
    left, of, _its, all = message.split("\n")[2].split
    assert_equal "of", of
    assert_operator Integer(left), :<, Integer(all) / 4
    assert_includes message, " would conclude "
  end
end
