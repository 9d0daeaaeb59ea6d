# frozen_string_literal: true

require_relative "../../../bin/support/changes"
require_relative "seeds"

# A share of what is tried, another one each day, for what need not all be tried with each change. After as many days as there
# are shares all has been tried. By night the share is all, and so it is where one of its inputs has changed.
class ShareOfTheDay
  ROOT = File.expand_path("../../..", __dir__)

  # @return [Integer] the index of the first thing in it
  attr_reader :first

  # @return [Integer] from one thing in it to the next
  attr_reader :step

  # @param parts [Integer, String] how many shares there are
  # @param inputs [Array<String>] files and folders, as {Changes} takes them
  # @param changes [Changes, nil] nil: this tree's
  # @param now [Time]
  def initialize(parts, inputs: [], changes: nil, env: ENV, now: Time.now)
    all = env["RINGSPUN_NIGHTLY"] == "1" || (inputs.any? && (changes || Changes.new(ROOT)).among(inputs)&.any?)
    @step = all ? 1 : Integer(parts)
    @first = Seeds.day(now) % @step
  end

  # @param index [Integer] of one of the things, among all of them
  def at?(index) = index % step == first

  # @param things [Array]
  # @return [Array]
  def of(things) = things.select.with_index { |_, index| at?(index) }
end
