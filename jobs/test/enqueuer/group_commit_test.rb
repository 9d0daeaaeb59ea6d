# frozen_string_literal: true

require "jobs_helper"
require_relative "../support/held_storage"

# Group commit of the strands of one machine.
class GroupCommitTest < Minitest::Test
  include Strands

  Jobs = Ringspun::Jobs

  def setup
    @storage = HeldStorage.new
    @enqueuer = Jobs::Enqueuer.new(@storage)
  end

  def push(jid, bytes: 10, lock: nil) = @enqueuer.push(Jobs::Storage::Push.new("q", "x" * bytes, jid, nil, nil, lock, lock && 5))

  def pusher(jid, **options) = machine.spin { push(jid, **options) }

  def calls(count)
    yield_until("there are #{count} calls") { @storage.calls.size >= count }
    @storage.calls
  end

  def test_who_is_alone_sends_it_without_another_strand
    Ringspun.run do
      strands = [machine.strands.size]
      callers = [parked { push("a") }]
      calls(1)
      strands << machine.strands.size
      callers += %w[b c].map { |jid| parked { push(jid) } }
      calls(2)
      strands << machine.strands.size
      @storage.open
      assert_equal %w[a b c], machine.await(*callers)
      assert_equal [%w[a], %w[b c]], @storage.calls
      assert_equal [1, 2 + 1], strands.each_cons(2).map { |before, after| after - before }
    end
  end

  # On a clock that jumps nobody runs out of time before the storage was called.
  def test_who_is_alone_and_leaves_is_in_nobodys_way
    simulate do
      alone = parked { push("a") }
      calls(1)
      machine.terminate(alone)
      assert_raises(Ringspun::TerminatedError) { alone.join }
      late = assert_raises(Ringspun::TimeoutError) { machine.timeout(0.001) { push("b") } }
      assert_nil late.cause
      bulk = Array.new(3) { |number| Jobs::Storage::Push.new("q", "x", "c#{number}") }
      assert_raises(Ringspun::TimeoutError) { machine.timeout(0.001) { @enqueuer.push_all(bulk) } }
      @storage.open
      assert_equal %w[d e], machine.await(pusher("d"), pusher("e"))
      assert_equal [%w[a], %w[b], %w[c0 c1 c2], %w[d e]], @storage.calls
    end
  end

  def test_all_that_are_ready_go_in_one_batch
    Ringspun.run do
      pushers = %w[a b c].map { |jid| pusher(jid) }
      assert_equal [%w[a b c]], calls(1)
      until_parked(*pushers)
      @storage.answer
      assert_equal %w[a b c], machine.await(*pushers)
    end
  end

  # Each comes when those before it wait.
  def one_by_one(*jids) = one_by_one_then(*jids) { |jid| push(jid) }

  def one_by_one_then(*jids)
    jids.map do |jid|
      pusher = parked { yield jid }
      5.times { machine.yield }
      pusher
    end
  end

  # What a thread or another strand has for a caller is the caller's own, to be taken when its jobs are stored.
  def test_what_is_scheduled_for_those_who_wait_is_theirs
    Ringspun.run do
      callers = one_by_one_then(*%w[a b c d]) { |jid| [push(jid), machine.park] }
      callers.each_with_index { |caller, number| machine.schedule(caller, number) }
      5.times { machine.yield }
      @storage.open
      assert_equal [["a", 0], ["b", 1], ["c", 2], ["d", 3]], machine.await(*callers)
    end
  end

  # A flight that has ended leaves nothing behind for the next wait of those that it has carried, or that have left it.
  def test_nothing_is_left_for_a_later_wait
    Ringspun.run do
      callers = one_by_one_then(*%w[a b c d e f]) { |jid| [late_or_not(jid), nothing_is_there?] }
      machine.terminate(callers[1])
      yield_until("one is late") { !callers[4].alive? }
      @storage.open
      answers = machine.await(*(callers - [callers[1]]))
      assert_equal ["a", "c", "d", :late, "f"].map { |answer| [answer, true] }, answers
    end
  end

  def late_or_not(jid)
    machine.timeout(jid == "e" ? 0.001 : 60) { push(jid) } # must pass
  rescue Ringspun::TimeoutError
    :late
  end

  def nothing_is_there?
    machine.park(0.001) # must pass
    false
  rescue Ringspun::TimeoutError
    true
  end

  def test_two_flights_are_under_way_and_the_rest_goes_together
    Ringspun.run do
      pushers = one_by_one(*%w[a b c d e f g h])
      assert_equal [%w[a], %w[b c]], @storage.calls
      @storage.answer
      assert_equal "a", pushers.first.await
      assert_equal [%w[a], %w[b c], %w[d e f g h]], calls(3)
      @storage.open
      assert_equal %w[a b c d e f g h], machine.await(*pushers)
    end
  end

  def test_the_second_waits_until_it_carries_more_than_the_first
    Ringspun.run do
      first = %w[a b c].map { |jid| pusher(jid) }
      calls(1)
      rest = one_by_one(*%w[d e f])
      assert_equal [%w[a b c]], @storage.calls
      rest += one_by_one("g")
      assert_equal [%w[a b c], %w[d e f g]], @storage.calls
      @storage.open
      machine.join(*first, *rest)
    end
  end

  def test_who_come_again_and_again_end_up_in_one_batch
    Ringspun.run do
      callers = Array.new(5) do |number|
        caller = parked { 20.times { |turn| push("#{number}/#{turn}") } }
        5.times { machine.yield }
        caller
      end
      assert_equal [1, 2], @storage.calls.map(&:size)
      8.times do
        @storage.answer
        10.times { machine.yield }
      end
      assert_equal [5] * 3, @storage.calls.last(3).map(&:size)
      @storage.open
      machine.join(*callers)
    end
  end

  def test_a_full_one_does_not_wait
    Ringspun.run do
      pushers = Array.new(256) { |number| pusher("a#{number}") }
      calls(1)
      pushers += Array.new(256) { |number| pusher("b#{number}") }
      assert_equal [256, 256], calls(2).map(&:size)
      @storage.open
      machine.join(*pushers)
    end
  end

  def test_one_with_many_jobs_is_one_caller
    Ringspun.run do
      bulk = machine.spin { @enqueuer.push_all(%w[a b c].map { |jid| Jobs::Storage::Push.new("q", "x", jid) }) }
      calls(1)
      others = one_by_one("d", "e")
      assert_equal [%w[a b c], %w[d e]], @storage.calls
      @storage.open
      machine.join(bulk, *others)
    end
  end

  def test_a_batch_has_an_end
    Ringspun.run do
      pushers = Array.new(600) { |number| pusher(number.to_s) }
      calls(2)
      @storage.open
      assert_equal Array.new(600, &:to_s), machine.await(*pushers)
      assert_equal [256, 256, 88], @storage.calls.map(&:size)
      assert_equal Array.new(600, &:to_s), @storage.calls.flatten
    end
  end

  def test_a_batch_has_an_end_in_bytes
    Ringspun.run do
      pushers = Array.new(5) { |number| pusher(number.to_s, bytes: 40_000) }
      calls(2)
      @storage.open
      machine.join(*pushers)
      assert_equal [%w[0 1], %w[2 3], %w[4]], @storage.calls
    end
  end

  def test_each_caller_gets_its_own_answer
    Ringspun.run do
      pushers = %w[a b c d].map { |jid| pusher(jid) }
      @storage.answer([nil, "other", Jobs::StorageError.new("full"), nil])
      assert_equal ["a", nil], machine.await(*pushers.first(2))
      assert_ends_with Jobs::StorageError, pushers[2], /full/
      assert_equal "d", pushers[3].await
    end
  end

  def test_an_error_is_everybodys_own
    Ringspun.run do
      pushers = %w[a b].map { |jid| pusher(jid) }
      @storage.answer(Jobs::UnknownOutcomeError.new("cut"))
      errors = pushers.map { |pusher| assert_ends_with Jobs::UnknownOutcomeError, pusher, /cut/ }
      refute_same(*errors)
      assert_equal 1, @storage.calls.size
    end
  end

  def test_a_bug_of_the_storage_is_raised_in_the_callers
    Ringspun.run do
      pushers = %w[a b].map { |jid| pusher(jid) }
      @storage.answer(NoMethodError.new("bug"))
      pushers.each { |pusher| assert_ends_with NoMethodError, pusher, /bug/ }
    end
  end

  def test_what_was_not_sent_is_sent_again
    simulate do
      2.times { @storage.answer(Jobs::UnavailableError.new("down")) }
      @storage.answer
      assert_equal "a", push("a")
      assert_equal [%w[a]] * 3, @storage.calls
      assert_operator machine.now, :>=, 0.25
    end
  end

  def test_a_server_that_is_not_there_yet_is_asked_again
    simulate do
      pushers = %w[a b c].map { |jid| pusher(jid) }
      @storage.answer([nil, Jobs::UnavailableError.new("loading"), Jobs::StorageError.new("full")])
      @storage.answer
      assert_equal %w[a b], machine.await(*pushers.first(2))
      assert_ends_with Jobs::StorageError, pushers.last
      assert_equal [%w[a b c], %w[b]], @storage.calls
    end
  end

  def test_it_gives_up
    simulate do
      4.times { @storage.answer(Jobs::UnavailableError.new("down")) }
      assert_match(/down/, assert_raises(Jobs::UnavailableError) { push("a") }.message)
      assert_equal 4, @storage.calls.size
    end
  end

  def test_what_has_a_lock_is_sent_again_when_no_answer_came
    simulate do
      pushers = [pusher("a"), pusher("b", lock: "l"), pusher("c", lock: "m"), pusher("d")]
      @storage.answer(Jobs::UnknownOutcomeError.new("cut"))
      @storage.answer(Jobs::StorageError.new("full, which says nothing of the first time"))
      @storage.answer([nil, "other"])
      assert_ends_with Jobs::UnknownOutcomeError, pushers[0], /\Acut\z/
      assert_equal "b", pushers[1].await
      assert_nil pushers[2].await
      assert_ends_with Jobs::UnknownOutcomeError, pushers[3]
      assert_equal [%w[a b c d], %w[b c], %w[b c]], @storage.calls
    end
  end

  # The storage would not know the first attempt any more.
  def test_a_lock_does_not_help_when_an_answer_is_waited_for_too_long
    simulate do
      delivery = Jobs::Enqueuer.const_get(:Delivery).new(@storage)
      seconds = 0
      delivery.define_singleton_method(:now) { seconds += Jobs::Storage::AGAIN_SECONDS / 2 }
      @storage.answer(Jobs::UnknownOutcomeError.new("cut"))
      assert_kind_of Jobs::UnknownOutcomeError, delivery.deliver([Jobs::Storage::Push.new("q", "x", "a", nil, nil, "l", 5)])
      assert_equal [%w[a]], @storage.calls
    end
  end

  def test_a_lock_does_not_help_when_no_answer_ever_comes
    simulate do
      pushers = [pusher("a"), pusher("b", lock: "l")]
      3.times { @storage.answer(Jobs::UnknownOutcomeError.new("cut")) }
      @storage.answer(Jobs::UnavailableError.new("down"))
      pushers.each { |pusher| assert_ends_with Jobs::UnknownOutcomeError, pusher, /\Acut\z/ }
      assert_equal 4, @storage.calls.size
    end
  end

  # That is no exception.
  def test_a_leader_whose_fiber_is_killed
    Ringspun.run do
      first = %w[a b].map { |jid| pusher(jid) }
      calls(1)
      leader = Fiber.schedule { push("c") }
      other, = one_by_one("d")
      leader.kill
      @storage.open
      assert_equal %w[a b d e], machine.await(*first, other, pusher("e"))
      assert_equal %w[a b d e], @storage.calls.flatten
    end
  end

  def test_many_at_once
    Ringspun.run do
      pushes = %w[a b c].map { |jid| Jobs::Storage::Push.new("q", "x", jid) }
      bulk = machine.spin { @enqueuer.push_all(pushes) }
      @storage.answer([nil, "other", Jobs::StorageError.new("full")])
      a, b, c = bulk.await
      assert_equal ["a", nil, "full"], [a, b, c.message]
      @storage.answer
      assert_equal %w[a b c], @enqueuer.push_all(pushes)
      @storage.answer(Jobs::UnknownOutcomeError.new("cut"))
      assert_raises(Jobs::UnknownOutcomeError) { @enqueuer.push_all(pushes) }
      assert_empty @enqueuer.push_all([])
    end
  end

  # --- callers that do not wait to the end ---

  # Both flights are under way, so that others wait.
  def both_under_way
    senders = one_by_one("x", "y", "z")
    assert_equal [%w[x], %w[y z]], @storage.calls
    senders
  end

  def test_who_is_cancelled_before_it_is_sent_takes_its_job_out
    %w[a b c].each do |gone|
      setup
      Ringspun.run do
        senders = both_under_way
        pushers = %w[a b c].to_h { |jid| [jid, parked { push(jid) }] }
        machine.terminate(pushers[gone])
        assert_raises(Ringspun::TerminatedError) { pushers[gone].join }
        @storage.open
        machine.join(*senders, *pushers.except(gone).values)
        assert_equal [%w[x], %w[y z], %w[a b c] - [gone]], @storage.calls
      end
    end
  end

  def test_answers_find_their_callers_when_one_has_left
    Ringspun.run do
      senders = both_under_way
      pushers = %w[a b c d].map { |jid| parked { push(jid) } }
      machine.terminate(pushers[1])
      assert_raises(Ringspun::TerminatedError) { pushers[1].join }
      2.times { @storage.answer }
      @storage.answer([nil, "other", nil])
      assert_equal ["a", nil, "d"], machine.await(*pushers.values_at(0, 2, 3))
      machine.join(*senders)
    end
  end

  def test_nothing_is_sent_when_all_have_left
    Ringspun.run do
      senders = both_under_way
      bulk = [Jobs::Storage::Push.new("q", "x", "c")]
      pushers = [parked { push("a") }, parked { push("b") }, parked { @enqueuer.push_all(bulk) }]
      pushers.each { |pusher| machine.terminate(pusher) }
      pushers.each { |pusher| assert_raises(Ringspun::TerminatedError) { pusher.join } }
      @storage.open
      machine.join(*senders)
      # Both flights are free again.
      assert_equal %w[d e], machine.await(pusher("d"), pusher("e"))
      assert_equal [%w[x], %w[y z], %w[d e]], @storage.calls
    end
  end

  def test_who_is_cancelled_while_its_job_is_sent_leaves
    Ringspun.run do
      pushers = %w[a b].map { |jid| pusher(jid) }
      calls(1)
      pushers.each { |pusher| machine.terminate(pusher) }
      pushers.each { |pusher| assert_raises(Ringspun::TerminatedError) { pusher.join } }
      @storage.answer
      machine.yield
      assert_equal [%w[a b]], @storage.calls
    end
  end

  def test_who_has_left_is_not_woken_by_the_answer
    Ringspun.run do
      woken = []
      elsewhere = 0
      leavers = %w[a b].map do |jid|
        machine.spin do
          machine.timeout(0.001) { push(jid) }
        rescue Ringspun::TimeoutError
          elsewhere += 1
          woken << machine.park
        end
      end
      yield_until("both wait elsewhere") { elsewhere == 2 }
      until_parked(*leavers)
      @storage.answer
      10.times { machine.yield }
      assert_empty woken
      leavers.each { |leaver| machine.schedule(leaver, :told) }
      machine.join(*leavers)
      assert_equal %i[told told], woken
    end
  end

  def test_a_run_that_is_cancelled_sends_what_a_shield_protects
    stored = nil
    error = error_of do
      Ringspun.run do
        machine.spin do
          machine.sleep
        ensure
          @storage.open
          stored = Ringspun.shield { push("last") }
        end
        machine.yield
        raise "over"
      end
    end
    assert_equal "over", error.message
    assert_equal "last", stored
    assert_equal [%w[last]], @storage.calls
  end

  # A flight that has not begun is cancelled with the run, as is the one who leads.
  def test_a_run_that_is_cancelled_leaves_others_the_lead
    stored = nil
    @storage.open
    error = error_of do
      Ringspun.run do
        machine.spin { push("leader") }
        machine.spin { Ringspun.shield { stored = push("shielded") } }
        machine.yield
        raise "over"
      end
    end
    assert_equal "over", error.message
    assert_equal "shielded", stored
    assert_includes @storage.calls.flatten, "shielded"
    Ringspun.run { assert_equal "next", push("next") }
  end

  def test_a_flight_survives_the_cancellation_of_the_run
    ended = []
    error = error_of do
      Ringspun.run do
        machine.spin { Ringspun.shield { ended << push("shielded") } }
        machine.spin { push("open") }
        calls(1)
        machine.spin do
          machine.sleep
        ensure
          @storage.answer
        end
        machine.yield
        raise "over"
      end
    end
    assert_equal "over", error.message
    assert_equal ["shielded"], ended
    assert_equal [%w[shielded open]], @storage.calls
  end

  def test_a_wake_up_of_somebody_elses_is_no_answer
    Ringspun.run do
      first = pusher("a")
      second = pusher("b")
      calls(1)
      machine.schedule(second, :early)
      machine.yield
      assert_predicate second, :alive?
      @storage.answer
      assert_equal %w[a b], machine.await(first, second)
    end
  end

  def test_a_closed_one_says_so
    @enqueuer.close
    assert_predicate @enqueuer, :closed?
    assert_raises(Ringspun::ClosedError) { push("a") }
    assert_raises(Ringspun::ClosedError) { @enqueuer.push_all([]) }
  end

  def test_what_cannot_be_is_refused
    { { strategy: :fast } => /one of group_commit, single, named_pool, pool, got :fast/,
      { pool_size: 0 } => /pool_size must be a positive integer, got 0/ }.each do |options, reason|
      assert_match reason, assert_raises(Jobs::ConfigError) { Jobs::Enqueuer.new(@storage, **options) }.message
    end
  end
end
