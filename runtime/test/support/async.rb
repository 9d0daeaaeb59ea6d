# frozen_string_literal: true

require_relative "stock"

# Its files are not written for -w.
begin
  verbose, $VERBOSE = $VERBOSE, nil
  require "ringspun/async"
  require "async/barrier"
  require "async/limited_queue"
  require "async/notification"
  require "async/semaphore"
  require "async/variable"
ensure
  $VERBOSE = verbose
end

# What tests of the gem async in a run share.
module StockAsync
  include Stock

  # What the block answers in a task on Async's own reactor, on a thread of its own, and in a run, must be the same.
  def assert_as_in_async(expected = nil, &block)
    native = Thread.new { Sync { |task| block.call(task) } }.value
    ours = Ringspun.run { Sync { |task| block.call(task) } }
    assert_equal native, ours
    assert_equal expected, ours if expected
  end
end
