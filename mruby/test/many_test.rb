# frozen_string_literal: true

# More than an Array of mruby's holds, which is 131,072 values.
class ManyTest < Minitest::Test
  include Strands

  def test_thirty_thousand_strands_that_wait_at_once
    done = 0
    in_scope do |scope|
      gate = Ringspun::Condition.new
      30_000.times { scope.spin { gate.wait and done += 1 } }
      machine.yield
      assert_equal 30_000, gate.broadcast
    end
    assert_equal 30_000, done
  end

  def test_fifty_thousand_runs_that_begin_at_once
    done = 0
    counts = concurrent_proc { done += 1 }
    50_000.times { counts.call_and_forget }
    last = counts.call_detached
    assert_equal [50_001, 50_001], [last.await_result, done]
  end

  def test_a_queue_of_more_than_an_array_holds
    queue = Ringspun::Queue.new
    2.times do
      140_000.times { |number| queue << number }
      assert_equal 140_000, queue.size
      in_order = 0
      140_000.times { |number| in_order += 1 if queue.pop == number }
      assert_equal [140_000, 0], [in_order, queue.size]
    end
    140_000.times { |number| queue << number }
    assert_equal [nil, 1], [queue.clear.pop(timeout: 0), queue.push(1).pop]
  end
end
