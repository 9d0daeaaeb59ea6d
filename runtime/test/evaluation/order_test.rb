# frozen_string_literal: true

require "test_helper"
require "support/evaluations"

# The order in a pass: ready I/O, then starts and resumes in the order in which they came, then due times by time; what is added
# during a pass is for the next.
class EvaluationOrderTest < Minitest::Test
  include Evaluations

  def setup
    super
    @order = []
  end

  def note(what) = @order << what

  def test_starts_and_resumes_first_come_first_served
    resumed = Array.new(2) { |i| begun { Ringspun.await_resume!.then { note :"resume #{i}" } } }
    conproc { note :"start 0" }.call_and_forget
    resumed[1].resume!
    conproc { note :"start 1" }.call_detached
    machine.spin { note :"spin 0" }
    resumed[0].resume!
    conproc { note :"start 2" }.call_and_forget
    settle
    assert_equal ["start 0", "resume 1", "start 1", "spin 0", "resume 0", "start 2"], @order.map(&:to_s)
  end

  def test_in_a_row_and_between_others
    conproc { note 0 }.call_and_forget
    conproc { note 1 }.call_and_forget
    machine.spin { note 2 }
    conproc { note 3 }.call_and_forget
    conproc { note 4 }.call_and_forget
    settle
    assert_equal [0, 1, 2, 3, 4], @order
  end

  def test_what_is_added_in_a_pass_is_for_the_next
    2.times do |i|
      conproc do
        note :"#{i} pass 1"
        conproc do
          note :"#{i} pass 2"
          conproc { note :"#{i} pass 3" }.call_and_forget
        end.call_and_forget
      end.call_and_forget
    end
    settle
    assert_equal ["0 pass 1", "1 pass 1", "0 pass 2", "1 pass 2", "0 pass 3", "1 pass 3"], @order.map(&:to_s)
  end

  def test_those_that_wait_for_their_next_turn_and_those_that_start
    3.times { |i| conproc { note([i, 1]).then { wait(0) }.then { note([i, 2]) } }.call_and_forget }
    wait(0)
    conproc { note :start }.call_and_forget
    wait(0)
    assert_equal [[0, 1], [1, 1], [2, 1], [0, 2], [1, 2], [2, 2], :start], @order
  end

  def test_waiters_go_on_where_the_result_became_known
    evaluation = conproc { wait(0).then { note :concluded } }.call_detached
    begun { evaluation.await_result.then { note :waiter } }
    conproc { note :later }.call_and_forget
    settle
    assert_equal %i[concluded later waiter], @order
  end

  # The byte is there before the time begins: a look that finds the time due finds the byte as well, however busy the
  # computer is. This thread sleeps, and not only this strand, so that one look finds both.
  def test_ready_io_comes_before_due_times_and_after_what_is_ready
    reader, writer = machine.pipe
    conproc { note :start }.call_and_forget
    begun { machine.read(reader, +"").then { note :io } }
    machine.write(writer, "x")
    begun { wait(0.001).then { note :time } }
    sleep(0.003)
    wait(0.001)
    assert_equal %i[start io time], @order
  ensure
    [reader, writer].each { |fd| machine.close(fd) } if reader
  end

  def test_nonblock_and_call_run_at_once
    conproc { note :later }.call_and_forget
    conproc { note :nonblock }.call_nonblock
    conproc { note :call }.call
    note :caller
    settle
    assert_equal %i[nonblock call caller later], @order
  end
end

# On a clock that stands still while strands run, so that times tie.
class SimulatedEvaluationOrderTest < EvaluationOrderTest
  include OnSimulation

  def faults = false

  # A stall while they start would be longer than some of them.
  def test_due_times_by_time
    times = [0.16, 0.04, 0.12, 0.08]
    times.each { |seconds| conproc { wait(seconds).then { note seconds } }.call_and_forget }
    wait(0.2)
    assert_equal times.sort, @order
  end

  def test_ties_first_come_first_served
    20.times { |i| conproc { wait(0.001).then { note i } }.call_and_forget }
    wait(0.002)
    assert_equal (0..19).to_a, @order
  end

  def test_times_that_are_due_come_after_those_that_are_ready
    conproc { wait(0.001).then { note :time } }.call_and_forget
    wait(0)
    machine.sleep(0.001) # due together with it, and set later
    note :root
    conproc { note :start }.call_and_forget
    settle
    assert_equal %i[time root start], @order
  end
end
