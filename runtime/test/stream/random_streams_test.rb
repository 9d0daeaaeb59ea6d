# frozen_string_literal: true

# stream io: ring

require "test_helper"
require "socket"
require "random/stream_programs"
require "support/certificate"
require "support/forked_programs"

# Random programs of streams on the backend of this process, against a String: see random/stream_programs.rb.
class RandomStreamsTest < Minitest::Test
  include ForkedPrograms::Tests

  def generator = "streams"
  def path = "runtime/test/stream/random_streams_test.rb"
  def programs = GCStress::WANTED ? 5 : 1000
  def draw(seed) = StreamPrograms.draw(seed)
end

# The same on simulated machines.
class RandomStreamsSimulatedTest < RandomStreamsTest
  include AnyBackend

  def draw(seed) = StreamPrograms.draw(seed, simulated: true)
end
