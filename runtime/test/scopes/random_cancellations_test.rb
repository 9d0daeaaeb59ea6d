# frozen_string_literal: true

# stream io: ring

require "test_helper"
require "random/cancellation_programs"
require "support/forked_programs"

# Random programs in which a strand is cancelled, on the backend of this process: see random/cancellation_programs.rb.
class RandomCancellationsTest < Minitest::Test
  include ForkedPrograms::Tests

  def generator = "cancellation"
  def path = "runtime/test/scopes/random_cancellations_test.rb"
  def programs = GCStress::WANTED ? 3 : 160
  def draw(seed) = CancellationPrograms.draw(seed)
end

# The same on simulated machines.
class RandomCancellationsSimulatedTest < RandomCancellationsTest
  include AnyBackend

  def programs = GCStress::WANTED ? 3 : 100
  def draw(seed) = CancellationPrograms.draw(seed, simulated: true)
end
