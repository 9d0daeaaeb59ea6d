# frozen_string_literal: true

require "test_helper"
require "random/scope_storm"

# A short storm; storm_torture.rb is the long one. SEED=n runs that program and no other.
class StormTest < Minitest::Test
  include ScopeStorm

  def seconds = 1
end
