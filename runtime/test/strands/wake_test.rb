# frozen_string_literal: true

require "test_helper"
require "random/wake_storm"

# A short storm; wake_torture.rb is the long one.
class WakeTest < Minitest::Test
  include WakeStorm

  def seconds = 1
end
