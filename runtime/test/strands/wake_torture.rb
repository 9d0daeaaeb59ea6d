# frozen_string_literal: true

require "test_helper"
require "random/wake_storm"

# wake_test.rb for longer: RINGSPUN_TORTURE_SECONDS for all tests together.
class WakeTorture < Minitest::Test
  include WakeStorm

  def seconds = Integer(ENV.fetch("RINGSPUN_TORTURE_SECONDS", "30"))
end
