# frozen_string_literal: true

require "test_helper"
require "random/channel_storm"

# A short storm; channel_torture.rb is the long one.
class ChannelStormTest < Minitest::Test
  include ChannelStorm

  def seconds = 2
end
