# frozen_string_literal: true

require "test_helper"
require "random/io_storm"

# io_storm_test.rb for longer: RINGSPUN_TORTURE_SECONDS for all tests together.
class IOTorture < Minitest::Test
  include IOStorm

  def seconds = Integer(ENV.fetch("RINGSPUN_TORTURE_SECONDS", "30"))
end
