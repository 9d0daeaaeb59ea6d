# frozen_string_literal: true

require "test_helper"
require "support/children"
require "support/evaluations"

# Many evaluations one after the other leave nothing behind: no memory, no mappings, no strands.
class EvaluationGrowthTest < Minitest::Test
  include Children
  include Evaluations

  # In a process of its own: what other tests have left in this one comes and goes. A fresh one, whose memory is all its own.
  def assert_no_growth(runs, warm_up, program)
    answer = ruby_child("require \"ringspun\"\n#{<<~RUBY}", timeout: 120, fresh: true)
      machine = Ringspun::Machine.current
      look = lambda do
        GC.start
        resident = Integer(File.read("/proc/self/status")[/^VmRSS:\\s+(\\d+)/, 1])
        [resident, File.foreach("/proc/self/maps").count, machine.strands.size]
      end
      #{program}
      batch.call(#{warm_up})
      before = look.call
      batch.call(#{runs})
      p(*look.call.zip(before).map { |now, earlier| now - earlier })
    RUBY
    kilobytes, mappings, strands = answer.out.lines.map(&:to_i)
    assert_empty answer.err
    # Long enough for what grows by a word a run to show.
    assert_operator kilobytes, :<, runs * 8 / 2048
    assert_operator mappings, :<, 200
    assert_equal 0, strands
  end

  def test_a_million_in_a_row
    assert_no_growth(1_000_000, 200_000, <<~'RUBY')
      made = Ringspun.concurrent_proc { |x| x }
      waits = Ringspun.concurrent_proc { |x| Ringspun.wait(0).then { x } }
      batch = lambda do |count|
        (count / 100).times do
          40.times { |i| made.call_detached(i).await_result }
          20.times { |i| made.call_and_forget(i) }
          10.times { |i| made.call_nonblock(i) }
          10.times { |i| made.call(i) }
          Array.new(20) { |i| waits.call_detached(i) }.each(&:await_result)
        end
      end
    RUBY
  end

  def test_many_that_are_concluded_resumed_and_timed_out
    assert_no_growth(500_000, 50_000, <<~'RUBY')
      made = Ringspun.concurrent_proc { Ringspun.await_resume! }
      batch = lambda do |count|
        count.times do |i|
          evaluation = made.call_nonblock
          evaluation.await_result(within: 0, timeout_result: :late)
          i.even? ? evaluation.conclude_to(i) : evaluation.resume!(i).then { evaluation.await_result }
        end
      end
    RUBY
  end

  def test_the_last_of_many_that_were_started_in_a_row_does_not_keep_their_queue
    answer = ruby_child("require \"ringspun\"\n#{<<~'RUBY'}", timeout: 60, fresh: true)
      resident = -> { GC.start.then { Integer(File.read("/proc/self/status")[/^VmRSS:\s+(\d+)/, 1]) } }
      nothing = Ringspun.concurrent_proc {}
      last = Ringspun.concurrent_proc { Ringspun.wait(Float::INFINITY) }
      last.call_and_forget.then { Ringspun.wait(0) }
      before = resident.call
      300_000.times { nothing.call_and_forget }
      last.call_and_forget
      Ringspun.wait(0)
      p resident.call - before
    RUBY
    assert_empty answer.err
    assert_operator Integer(answer.out), :<, 6000 # it takes 16 MB
  end

  def test_a_queue_of_many_is_given_back
    evaluations = Array.new(100_000) { |i| conproc { i }.call_detached }
    assert_equal 99_999, evaluations.last.await_result
    assert_equal 1, machine.strands.size
  end
end
