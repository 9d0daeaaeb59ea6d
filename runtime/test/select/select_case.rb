# frozen_string_literal: true

require "test_helper"
require "support/evaluations"
require "support/on_simulation"
require "support/strands"

# What the tests of selectors share.
class SelectCase < Minitest::Test
  include Evaluations

  # With those items inside.
  def queue(*items) = Ringspun::Queue.new(items)

  def select(...) = Ringspun.select(...)

  # Runs the block once on a selector of its own, which is closed behind it.
  def with_selector
    selector = Ringspun::Selector.new
    yield selector
  ensure
    selector&.close
  end
end
