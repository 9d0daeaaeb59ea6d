# frozen_string_literal: true

require "test_helper"
require "random/nested_runs"
require "support/forked_programs"

# Random trees of runs, strands, forks and callbacks, on the backend of this process: see random/nested_runs.rb.
class RandomNestedRunsTest < Minitest::Test
  include ForkedPrograms::Tests

  def generator = "nested_runs"
  def path = "runtime/test/machine/random_nested_runs_test.rb"
  def programs = GCStress::WANTED ? 3 : 20
  def draw(seed) = NestedRuns.draw(seed)
end

# The same on simulated machines.
class RandomNestedRunsSimulatedTest < RandomNestedRunsTest
  include AnyBackend

  def programs = GCStress::WANTED ? 3 : 60
  def draw(seed) = NestedRuns.draw(seed, simulated: true)
end
