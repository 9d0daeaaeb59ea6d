# frozen_string_literal: true

require "test_helper"
require "random/scope_storm"

# storm_test.rb for longer: RINGSPUN_TORTURE_SECONDS for all tests together.
class StormTorture < Minitest::Test
  include ScopeStorm

  def seconds = Integer(ENV.fetch("RINGSPUN_TORTURE_SECONDS", "30"))
end
