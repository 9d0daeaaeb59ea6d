# frozen_string_literal: true

require "jobs_helper"
require_relative "../../../runtime/test/support/killed_anywhere"

# The connections of the Redis storage: each is lent to one caller at a time, whatever becomes of the callers.
class PoolTest < Minitest::Test
  include AnyBackend
  include KilledAnywhere
  include Strands

  Connection = Struct.new(:closed) do
    def close = self.closed = true
  end

  def setup
    @pool = Ringspun::Jobs::Storage::Redis.const_get(:Pool).new(1) { Connection.new(false) }
  end

  # A caller that stays until the gate is closed.
  def caller_at(gate, before: nil)
    thread = Thread.new do
      @pool.lend do |connection|
        before&.call
        gate.pop
        connection
      end
    end
    Thread.pass until thread.stop?
    thread
  end

  def assert_lent(what)
    thread = Thread.new { @pool.lend(&:itself) }
    assert thread.join(SECONDS_MAX), what
    assert_instance_of Connection, thread.value
  ensure
    thread.kill
  end

  def test_as_many_as_it_has_and_the_others_wait
    gate = Thread::Queue.new
    inside = []
    callers = Array.new(3) { |number| caller_at(gate, before: -> { inside << number }) }
    assert_equal [0], inside
    gate.close
    assert_equal [callers.first.value], callers.map(&:value).uniq(&:object_id)
    assert_equal [0, 1, 2], inside
  end

  # A place has been handed to it, and it has not gone on yet.
  def test_of_two_that_wait_the_one_that_is_woken_is_killed
    gate = Thread::Queue.new.close
    first, second = @pool.lend { Array.new(2) { caller_at(gate) } }
    first.kill
    assert second.join(SECONDS_MAX), "the other waits for ever"
    assert_lent "the place is lost"
  end

  def test_a_caller_whose_thread_is_killed_anywhere_loses_no_place
    check = ->(number) { assert_lent "killed at line #{number}" }
    assert_operator killed_anywhere("redis/pool.rb", "jobs/lender.rb", check:) { @pool.lend { Thread.pass } }, :>, 10
  end
end
