# frozen_string_literal: true

require "test_helper"
require "random/odd_calls"
require "support/seeds"
require "tempfile"

# Whatever a user calls, with whatever arguments, is an error at worst, and never the end of the process by a signal.
module OddCallsTests
  SEEDS = 2
  # Higher than all numbers that calls may close.
  LOG = 900
  F_DUPFD = 0 # of fcntl(2); the library with its name is one that Bundler may hide

  def test_no_call_ends_the_process
    Seeds.of_the_day(GCStress::WANTED ? 1 : SEEDS).each do |seed|
      Supervised.tick
      Tempfile.create do |log|
        status = in_child(timeout: 60) { make_calls(seed, log) }
        lines = File.readlines(log.path, chomp: true)
        calls = lines.grep(/^\[/)
        assert_predicate status, :success?, "#{status} in the last of these calls; RINGSPUN_SEED=#{seed} makes them again:\n" \
                                            "#{calls.last(5).join("\n")}\n#{lines.grep(/broken invariant|\[BUG\]/).join("\n")}"
        assert_operator calls.size, :>, OddCalls::CALLS / 2, "few calls were made: #{calls.last}"
      end
    end
  end

  private

  def make_calls(seed, log)
    Warning[:experimental] = false
    [$stdin, $stdout].each { |io| io.reopen(File::NULL, "r+") }
    out_of_reach = IO.for_fd(log.fcntl(F_DUPFD, LOG), autoclose: false)
    $stderr.reopen(out_of_reach)
    log.close
    Ringspun::Machine.current.close
    OddCalls.new(seed, out_of_reach, simulated: simulated?).call
    exit!(0)
  end
end

class OddCallsTest < Minitest::Test
  include OddCallsTests

  def simulated? = false
end

class SimulatedOddCallsTest < Minitest::Test
  include OddCallsTests
  include AnyBackend

  def simulated? = true
end
