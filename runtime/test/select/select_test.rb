# frozen_string_literal: true

require_relative "select_case"

# Ringspun.select over what needs no descriptor: one winner, and nothing lost for the others.
class SelectTest < SelectCase
  # --- the plain form ---

  def test_sources_and_what_they_answer
    one, two = queue, queue(:item)
    assert_equal [two, :item], select(one, two)
    assert_nil select(one, timeout: 0)
    evaluation = conproc { 7 }.call_nonblock
    done = machine.spin { 8 }.join
    assert_equal 7, evaluation
    assert_equal [done, 8], select(one, done)
    semaphore = Ringspun::Semaphore.new(1)
    assert_equal [semaphore, true], select(semaphore, one)
    assert_equal 0, semaphore.available
  end

  def test_it_waits_for_the_first
    one, two = queue, queue
    strand = parked { select(one, two) }
    assert_equal "the first of a select", strand.waits_for
    two.push(:item)
    one.push(:other)
    assert_equal [two, :item], strand.await
    assert_equal [1, 0], [one.size, two.size]
  end

  def test_a_time_that_passes
    assert_nil select(queue, timeout: 0.000_1)
    assert_equal :late, select { |on| on.pop(queue) && on.after(0.000_1) { :late } }
    assert_nil select(timeout: 0.000_1) { |on| on.after(60) { :late } }
    assert_equal(:late, select(timeout: 60) { |on| on.after(0.000_1) { :late } && on.after(50) { :later } })
  end

  # --- branches ---

  def test_the_value_of_the_block_of_the_winner
    one = queue(20)
    assert_equal 21, select { |on| on.pop(one) { |item| item + 1 } }
    assert_equal :other, select { |on| on.pop(one) { :item } && on.otherwise { :other } }
    assert_nil select { |on| on.pop(one) && on.otherwise }
    assert_equal 5, select { |on| on.pop(queue(5)) }
  end

  def test_blocks_run_when_the_wait_is_over
    one, two = queue(1), queue
    inner = select { |on| on.pop(one) { select { |again| again.pop(two) && again.otherwise { one.push(2) && one.pop } } } }
    assert_equal 2, inner
  end

  def test_a_push_that_wins_and_one_that_does_not
    full, free = Ringspun::SizedQueue.new(1), Ringspun::SizedQueue.new(1)
    full.push(0)
    assert_same free, select { |on| on.push(full, :full) && on.push(free, :free) { |it| it } }
    assert_equal [[0], [:free]], [full, free].map { |one| Array.new(one.size) { one.pop } }
  end

  def test_a_push_waits_for_a_place
    sized = Ringspun::SizedQueue.new(1)
    sized.push(1)
    strand = parked { select { |on| on.push(sized, 2) { :pushed } && on.pop(queue) } }
    assert_equal 1, sized.pop
    assert_equal [:pushed, 2, 0], [strand.await, sized.pop, sized.size]
  end

  def test_a_place_that_comes_of_clear_or_of_a_new_max
    sized = Ringspun::SizedQueue.new(1)
    sized.push(1)
    strands = Array.new(2) { |i| parked { select { |on| on.push(sized, i) { i } } } }
    sized.clear
    assert_equal [0, 1], [strands.first.await, sized.size]
    sized.max = 2
    assert_equal [1, 2], [strands.last.await, sized.size]
  end

  def test_a_queue_that_never_is_full
    one = queue
    assert_same one, select { |on| on.push(one, 1) }
    assert_equal 1, one.pop
  end

  # --- closed queues ---

  def test_a_closed_queue
    one = queue(1)
    one.close
    assert_equal [[one, 1], [one, nil]], Array.new(2) { select(one, queue) }
    assert_raises(Ringspun::ClosedError) { select { |on| on.push(one, 1) } }
  end

  def test_a_queue_that_is_closed_meanwhile
    one, sized = queue, Ringspun::SizedQueue.new(1).push(0)
    popper = parked { select(one, queue) }
    pusher = parked { select { |on| on.push(sized, 1) } }
    [one, sized].each(&:close)
    assert_equal [one, nil], popper.await
    assert_ends_with Ringspun::ClosedError, pusher
  end

  # --- results ---

  def test_a_result_stays_for_others
    gate = queue
    evaluation = conproc { gate.pop }.call_detached
    strands = Array.new(2) { parked { select(evaluation, queue) } }
    awaiting = parked { evaluation.await_result }
    gate.push(:result)
    assert_equal [[evaluation, :result]] * 2, strands.map(&:await)
    assert_equal [:result] * 2, [awaiting.await, evaluation.await_result]
  end

  def test_an_evaluation_that_failed
    gate = queue
    evaluation = conproc { gate.pop && raise(Failure, "so") }.call_detached
    failed = parked { select { |on| on.result(evaluation) } }
    told = parked { select { |on| on.result(evaluation) { |error| error.message } } }
    plain = parked { select(evaluation) }
    gate.push(true)
    assert_ends_with Failure, failed, /so/
    assert_equal "so", told.await
    assert_kind_of Failure, plain.await.last
  end

  def test_a_strand_that_ends_or_fails
    gate = queue
    strand, failing = parked { gate.pop }, parked { gate.pop && raise(Failure, "so") }
    waiting = parked { select(strand, failing) }
    gate.push(3)
    assert_equal [strand, 3], waiting.await
    gate.push(4)
    assert_equal "so", select { |on| on.result(failing) { |error| error.message } }
    assert_raises(Failure) { select { |on| on.result(failing) } }
    ended = machine.spin { machine.sleep }
    machine.terminate(ended)
    assert_kind_of Ringspun::TerminatedError, select(ended).last
  end

  def test_what_is_concluded_from_outside
    evaluation = conproc { machine.sleep }.call_detached
    strand = parked { select(evaluation) }
    evaluation.conclude_to(:so)
    assert_equal [evaluation, :so], strand.await
  end

  # --- semaphores ---

  def test_who_selects_is_counted_among_those_who_wait
    one, full = queue, Ringspun::SizedQueue.new(1).push(0)
    semaphore = Ringspun::Semaphore.new(1).acquire
    strand = parked { select { |on| on.pop(one).pop(one).push(full, 1).acquire(semaphore) && on.after(60) } }
    other = parked { select(one, semaphore) }
    popper = parked { one.pop }
    assert_equal [3, 1, 2], [one.num_waiting, full.num_waiting, semaphore.waiting]
    3.times { |item| one.push(item) }
    assert_equal [0, 0, 0], [one.num_waiting, full.num_waiting, semaphore.waiting]
    assert_equal [0, [one, 1], 2], [strand.await, other.await, popper.await]
    with_selector { |idle| assert_equal [nil, 0], [idle.pop(one).wait(timeout: 0), one.num_waiting] }
  end

  def test_a_permit_goes_to_who_has_waited_longest
    semaphore = Ringspun::Semaphore.new(1).acquire
    order = []
    strands = [parked { select(semaphore) && order << :select }, parked { semaphore.acquire && order << :acquire },
               parked { select(semaphore) && order << :again }]
    3.times { semaphore.release && strands.shift.join }
    assert_equal %i[select acquire again], order
    assert_equal 0, semaphore.available
    semaphore.release
    assert_equal 1, semaphore.available
  end

  def test_who_lost_holds_no_permit
    semaphore, one = Ringspun::Semaphore.new(1).acquire, queue
    strand = parked { select(semaphore, one) }
    one.push(1)
    semaphore.release
    assert_equal [one, 1], strand.await
    assert_equal 1, semaphore.available
  end

  # --- mistakes ---

  def test_an_empty_select
    [-> { select }, -> { select { nil } }, -> { select(timeout: 1) }, -> { Ringspun::Selector.new.wait }].each do |empty|
      assert_match(/nothing to wait for/, assert_raises(Ringspun::UsageError, &empty).message)
    end
  end

  def test_what_is_no_source
    assert_raises(Ringspun::UsageError) { select(:symbol) }
    assert_raises(Ringspun::UsageError) { select(nil) }
    assert_raises(Ringspun::UsageError) { select(queue) { nil } }
    %i[pop acquire result].each do |name|
      assert_raises(Ringspun::UsageError) { select { |on| on.__send__(name, Object.new) } }
    end
    assert_raises(Ringspun::UsageError) { select { |on| on.push(1, 2) } }
    assert_raises(Ringspun::UsageError) { select { |on| on.after("1") } }
    assert_raises(ArgumentError) { select(queue, wait: 1) }
    assert_raises(Ringspun::UsageError) { select(queue, timeout: "soon") }
  end

  def test_sources_of_another_machine
    theirs, strand, evaluation = on_thread do
      [Ringspun::Queue.new([1]), Ringspun::Machine.current.spin { 1 }.join, 1].tap { |all| all.first.pop }
    end
    assert_equal [strand, 1], select(strand), "what has ended is known everywhere"
    assert_equal 1, evaluation
    assert_nil select(theirs, timeout: 0), "that of a machine which is gone is anybody's"
    hold, go = Thread::Queue.new, Thread::Queue.new
    thread = Thread.new { on_thread_that_stays(hold, go) }
    foreign, alive = hold.pop
    [foreign, alive].each do |source|
      assert_match(/thread|machine/, assert_raises(Ringspun::UsageError) { select(source) }.message)
    end
    assert_match(/Channel/, assert_raises(Ringspun::UsageError) { select(foreign) }.message)
  ensure
    go&.push(true)
    thread&.join
  end

  def on_thread_that_stays(hold, go)
    mine = Ringspun::Queue.new([1])
    mine.push(mine.pop)
    strand = Ringspun::Machine.current.spin { mine.pop }
    hold.push([mine, strand])
    go.pop
    strand.join
    Ringspun::Machine.current.close
  end
end

class SelectOnSimulationTest < SelectTest
  include OnSimulation
end
