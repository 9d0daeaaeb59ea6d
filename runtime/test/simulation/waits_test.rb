# frozen_string_literal: true

require "test_helper"
require "socket"
require "random/random_waits"

# Random programs of every waiting call, on simulated machines: all end, in little time, and one seed is one run. The message of a
# failure names the seed; `rake test:waits SEED=n` runs it again.
class WaitsTest < Minitest::Test
  def test_random_waits
    seed = ENV["RINGSPUN_SEED"]
    seeds = seed ? 1 : Integer(ENV.fetch("RINGSPUN_SEEDS", "300"))
    assert_equal seeds, RandomWaits.explore(seeds, from: Integer(seed || 0))
  end
end
