# frozen_string_literal: true

require "test_helper"

# `require "concurrently"` beside the gem of that name: both run the same programs, each in one process, and say the same.
class ConcurrentlyGemTest < Minitest::Test
  PROGRAMS = File.expand_path("../support/concurrently_programs.rb", __dir__)
  # With what Ruby 3 takes from it.
  GEM = File.expand_path("../../../bench/peers/concurrently.rb", __dir__)

  def setup = GC.stress = false

  def said_with(file)
    # Fresh, for the gem does not go together with what a forked one has loaded.
    answer = ruby_child("$VERBOSE = nil; require ARGV.shift; $PROGRAM_NAME = ARGV.first; load ARGV.shift", file, PROGRAMS,
                        env: { "RUBYOPT" => "-rbundler/setup", "RINGSPUN_GC_STRESS" => nil }, fresh: true)
    assert_predicate answer.status, :success?, answer.err
    assert_empty answer.err
    answer.out
  end

  def test_the_same_programs
    of_gem, ours = [GEM, "concurrently"].map { |file| said_with(file).lines }
    assert_operator of_gem.size, :>, 50
    assert_equal [], of_gem.zip(ours).reject { |line, own| line == own }
    assert_equal of_gem.size, ours.size
  end
end
