# frozen_string_literal: true

require "test_helper"
require "random/channel_storm"

# channel/storm_test.rb for longer: RINGSPUN_TORTURE_SECONDS for all tests together.
class ChannelTorture < Minitest::Test
  include ChannelStorm

  def seconds = Integer(ENV.fetch("RINGSPUN_TORTURE_SECONDS", "30"))
end
