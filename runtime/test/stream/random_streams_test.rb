# frozen_string_literal: true

require "test_helper"
require "socket"
require "random/stream_programs"
require "support/certificate"
require "support/forked_programs"
require "support/seeds"

# Random programs of streams on the backend of this process, against a String: see random/stream_programs.rb.
class RandomStreamsTest < Minitest::Test
  PROGRAMS = GCStress::WANTED ? 5 : 1000

  def test_random_programs
    name = self.class.name
    expected = ExpectedFailures.new(File.join(__dir__, "../random/expected_failures.yml"), "streams")
    programs = ForkedPrograms.new(again: "bin/test runtime/test/stream/random_streams_test.rb -n /#{name}/", expected:)
    failures = programs.failures(Seeds.of_the_day(PROGRAMS)) { |seed| draw(seed) }
    assert failures.empty?, failures.join("\n\n")
  ensure
    puts expected unless expected.to_s.empty?
  end

  def draw(seed) = StreamPrograms.draw(seed)
end

# The same on simulated machines.
class RandomStreamsSimulatedTest < RandomStreamsTest
  include AnyBackend

  def draw(seed) = StreamPrograms.draw(seed, simulated: true)
end
