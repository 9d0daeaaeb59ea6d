# frozen_string_literal: true

require "test_helper"
require "support/evaluations"

# Many evaluations one after the other leave nothing behind: no memory, no mappings, no strands.
class EvaluationGrowthTest < Minitest::Test
  include Evaluations

  COUNT = 1_000_000

  # Long enough for what grows by a word an evaluation to show: 8 MB.
  KILOBYTES_MAX = 4_096

  def resident = Integer(File.read("/proc/self/status")[/^VmRSS:\s+(\d+)/, 1])

  def test_a_million_in_a_row
    made = conproc { |x| x }
    waits = conproc { |x| wait(0).then { x } }
    batch = lambda do |count|
      (count / 100).times do
        40.times { |i| made.call_detached(i).await_result }
        20.times { |i| made.call_and_forget(i) }
        10.times { |i| made.call_nonblock(i) }
        10.times { |i| made.call(i) }
        Array.new(20) { |i| waits.call_detached(i) }.each(&:await_result)
      end
    end
    batch.call(COUNT / 5)
    GC.start
    before = [resident, mappings, machine.strands.size]
    batch.call(COUNT)
    GC.start
    after = [resident, mappings, machine.strands.size]
    assert_operator after[0] - before[0], :<, KILOBYTES_MAX
    assert_operator after[1] - before[1], :<, 200
    assert_equal before[2], after[2]
  end

  def test_many_that_are_concluded_resumed_and_timed_out
    made = conproc { Ringspun.await_resume! }
    batch = lambda do |count|
      count.times do |i|
        evaluation = made.call_nonblock
        evaluation.await_result(within: 0, timeout_result: :late)
        i.even? ? evaluation.conclude_to(i) : evaluation.resume!(i).then { evaluation.await_result }
      end
    end
    batch.call(5_000)
    GC.start
    before = [resident, mappings]
    batch.call(50_000)
    GC.start
    assert_operator resident - before[0], :<, KILOBYTES_MAX
    assert_operator mappings - before[1], :<, 200
  end

  def test_a_queue_of_many_is_given_back
    evaluations = Array.new(100_000) { |i| conproc { i }.call_detached }
    assert_equal 99_999, evaluations.last.await_result
    assert_equal 1, machine.strands.size
  end
end
