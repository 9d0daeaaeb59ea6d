# frozen_string_literal: true

require "test_helper"
require "random/cancellation_programs"
require "support/forked_programs"
require "support/seeds"

# Random programs in which a strand is cancelled, on the backend of this process: see random/cancellation_programs.rb.
class RandomCancellationsTest < Minitest::Test
  PROGRAMS = GCStress::WANTED ? 3 : 160

  def programs = PROGRAMS

  def test_random_programs
    name = self.class.name
    expected = ExpectedFailures.new(File.join(__dir__, "../random/expected_failures.yml"), "cancellation")
    forked = ForkedPrograms.new(again: "bin/test runtime/test/scopes/random_cancellations_test.rb -n /#{name}/", expected:)
    failures = forked.failures(Seeds.of_the_day(programs)) { |seed| draw(seed) }
    assert failures.empty?, failures.join("\n\n")
  ensure
    puts expected unless expected.to_s.empty?
  end

  def draw(seed) = CancellationPrograms.draw(seed)
end

# The same on simulated machines.
class RandomCancellationsSimulatedTest < RandomCancellationsTest
  include AnyBackend

  PROGRAMS = GCStress::WANTED ? 3 : 100

  def programs = PROGRAMS
  def draw(seed) = CancellationPrograms.draw(seed, simulated: true)
end
