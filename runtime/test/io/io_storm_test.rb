# frozen_string_literal: true

require "test_helper"
require "random/io_storm"

# A short storm; io_torture.rb is the long one. SEED=n runs the rounds of that seed and no other.
class IOStormTest < Minitest::Test
  include IOStorm

  def seconds = 1
end
