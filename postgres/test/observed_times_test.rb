# frozen_string_literal: true

require "postgres_helper"
require "support/on_scripted_pool"

# What an observer is told of times, on a clock that jumps: the parts are the whole.
class PostgresObservedTimesTest < Minitest::Test
  include OnScriptedPool

  def test_the_parts_are_the_whole
    told = []
    on_pool(on_statement: told.method(:<<), lanes: 1) do |pool, machine|
      machine.await(Array.new(20) { |number| machine.spin { pool.query("echo $1", "n#{number}") } })
      pool.batch { |batch| 2.times { |number| batch.query("echo $1", "b#{number}") } }
    end
    assert_equal 22, told.size
    told.each do |execution|
      assert_in_delta execution.duration, execution.queue + execution.wire + execution.decoding, 1e-6, execution.inspect
      assert_operator execution.wire, :>, 0
    end
  end

  def test_a_hook_that_waits_holds_up_nobody_else
    waiting = ->(execution) { sleep(3600) if execution.sql.start_with?("work") }
    on_pool(on_statement: waiting, lanes: 1) do |pool, machine|
      slow = machine.spin { pool.query("work $1, $2", "slow", "0.5") && machine.now }
      quick = Array.new(20) { |number| machine.spin { pool.query("echo $1", "n#{number}") && machine.now } }
      assert_operator quick.map(&:await).max, :<, slow.await - 3000
    end
  end
end
