# frozen_string_literal: true

require "jobs_helper"
require_relative "../support/held_storage"
require_relative "../../../runtime/test/support/killed_anywhere"

# Group commit of threads, and the strategies with connections of their own.
class EnqueuerTest < Minitest::Test
  include AnyBackend
  include Strands
  include Children
  include KilledAnywhere

  Jobs = Ringspun::Jobs

  def setup
    @storage = HeldStorage.new
  end

  def teardown
    @enqueuer&.close
  end

  def enqueuer(**options) = @enqueuer ||= Jobs::Enqueuer.new(@storage, **options)

  def push(jid, lock: nil) = enqueuer.push(Jobs::Storage::Push.new("q", "x", jid, nil, nil, lock, lock && 5))

  def pusher(jid)
    Thread.new { push(jid) }.tap { |thread| thread.report_on_exception = false }
  end

  def eventually(what, &) = Patience.poll(SECONDS_MAX, pause: 0.001, &) || flunk("#{what}: still not so")

  def calls(count)
    eventually("there are #{count} calls") { @storage.calls.size >= count }
    @storage.calls
  end

  # Threads that wait for the next batch, while another one is under way.
  def behind_another(*jids)
    enqueuer
    first = pusher("first")
    calls(1)
    [first, jids.map { |jid| pusher(jid).tap { |thread| eventually("it waits") { thread.status == "sleep" } } }]
  end

  def test_a_storage_without_connections
    %i[group_commit single named_pool pool].each do |strategy|
      one = Jobs::Enqueuer.new(memory = Jobs::Storage::Memory.new, strategy:, pool_size: 2, pool_timeout: 1)
      assert_equal "a", one.push(Jobs::Storage::Push.new("q", "x", "a"))
      one.close
      assert_equal 1, memory.stats[:enqueued]
    end
  end

  # One of the child's threads is just making what the child has of its own when the other comes.
  def test_two_threads_of_a_forked_child_at_once
    @storage = HeldStorage.new(open: true)
    %i[group_commit named_pool].each do |strategy|
      @enqueuer = Jobs::Enqueuer.new(@storage, strategy: strategy, pool_size: 1)
      push("parent")
      ended = in_child do
        began, gate = Array.new(2) { Thread::Queue.new }
        slow = ->(*) { (began << true) && gate.pop }
        ObjectSpace::WeakKeyMap.define_singleton_method(:new) { slow.call.then { super() } }
        @storage.define_singleton_method(:connect) { slow.call.then { super() } }
        first = pusher("a")
        began.pop
        others = @storage.connections.dup
        second = pusher("b")
        eventually("it waits or is done") { !second.status || second.status == "sleep" }
        gate.close
        both = [first, second].all? { |thread| thread.join(SECONDS_MAX) }
        both &&= @storage.used.last(2).none? { |used| others.any? { |other| other.equal?(used) } }
        both || raise("it goes on with its parent's")
      end
      assert_predicate ended, :success?, strategy
      @enqueuer.close
    end
  end

  # --- a connection of the caller's ---

  def push_of(jid, lock: nil) = Jobs::Storage::Push.new("q", "x", jid, nil, nil, lock, lock && 5)

  # Notes who calls the storage, beside its calls.
  def note_callers
    @storage.callers = callers = []
    callers
  end

  def test_a_push_on_a_connection_of_the_callers_goes_alone_and_at_once
    %i[group_commit named_pool].each do |strategy|
      @storage = HeldStorage.new
      @enqueuer = Jobs::Enqueuer.new(@storage, strategy: strategy, pool_size: 1)
      callers = note_callers
      first, others = behind_another("a", "b")
      mine = [Object.new, Object.new]
      single = Thread.new { enqueuer.push(push_of("single"), connection: mine.first) }
      calls(2)
      many = Thread.new { enqueuer.push_all([push_of("c"), push_of("d")], connection: mine.last) }
      assert_equal [%w[first], %w[single], %w[c d]], calls(3)
      assert_equal mine, @storage.used[1, 2]
      assert_equal [single, many], callers[1, 2].map(&:first)
      @storage.open
      assert_equal ["single", %w[c d], "first", "a", "b"], [single, many, first, *others].map(&:value)
      refute_includes mine, @storage.used[3]
      @enqueuer.close
    end
  end

  def test_a_strand_pushes_on_its_connection_by_itself
    callers = note_callers
    @storage.open
    Ringspun.run do
      strands = %w[a b].map { |jid| machine.spin { [Fiber.current, enqueuer.push(push_of(jid), connection: jid)] } }
      results = machine.await(*strands)
      assert_equal %w[a b], results.map(&:last)
      assert_equal results.map(&:first), callers.map(&:last)
    end
    assert_equal [[%w[a], %w[b]], %w[a b]], [@storage.calls, @storage.used]
  end

  def test_on_a_connection_of_the_callers_errors_come_as_they_are_and_nothing_is_tried_again
    [Jobs::UnavailableError.new("away"), Jobs::UnknownOutcomeError.new("lost"), IOError.new("closed")].each do |error|
      2.times { @storage.answer(error) }
      assert_same error, error_of { enqueuer.push(push_of("a", lock: "l"), connection: 1) }
      assert_same error, error_of { enqueuer.push_all([push_of("b", lock: "l")], connection: 1) }
    end
    assert_equal %w[a b] * 3, @storage.calls.flatten
    @storage.answer([Jobs::StorageError.new("full")])
    assert_raises(Jobs::StorageError) { enqueuer.push(push_of("c"), connection: 1) }
    @storage.answer(["other"])
    assert_nil enqueuer.push(push_of("d"), connection: 1)
  end

  # --- threads ---

  def test_threads_share_batches
    first, others = behind_another("a", "b", "c")
    @storage.answer
    assert_equal [%w[first], %w[a b c]], calls(2)
    @storage.answer([nil, "other", Jobs::StorageError.new("full")])
    assert_equal ["first", "a", nil], [first, *others.first(2)].map(&:value)
    assert_match(/full/, assert_raises(Jobs::StorageError) { others.last.value }.message)
  end

  def test_outside_of_a_run_a_strand_is_as_a_thread
    @storage.open
    assert_equal "a", push("a")
    assert_equal "b", machine.spin { push("b") }.await
    assert_equal(%w[c d], enqueuer.push_all(%w[c d].map { |jid| Jobs::Storage::Push.new("q", "x", jid) }))
    assert_equal [%w[a], %w[b], %w[c d]], @storage.calls
  end

  def test_a_thread_that_is_interrupted_takes_its_job_out
    first, (a, b) = behind_another("a", "b")
    a.raise(Interrupt)
    assert_raises(Interrupt) { a.value }
    2.times { @storage.answer }
    assert_equal %w[first b], [first.value, b.value]
    assert_equal [%w[first], %w[b]], @storage.calls
  end

  def test_a_thread_that_is_killed_takes_its_job_out
    first, (a, b) = behind_another("a", "b")
    a.kill.join
    2.times { @storage.answer }
    assert_equal %w[first b], [first.value, b.value]
    assert_equal [%w[first], %w[b]], @storage.calls
  end

  def test_a_thread_that_is_interrupted_later_leaves_the_rest_alone
    first, (a, b) = behind_another("a", "b")
    @storage.answer
    calls(2)
    a.kill.join
    @storage.answer([nil, "other"])
    assert_equal ["first", nil], [first.value, b.value]
  end

  def test_a_batch_of_threads_has_an_end
    first, others = behind_another(*Array.new(260, &:to_s))
    @storage.open
    assert_equal Array.new(260, &:to_s), others.map(&:value)
    first.join
    assert_equal [1, 256, 4], @storage.calls.map(&:size)
  end

  # As when the process ends while others still push.
  def test_callers_are_told_when_the_thread_is_killed
    first, (a, b) = behind_another("a", "b")
    Thread.list.find { |thread| thread.name == "ringspun enqueuer" }.kill
    assert_raises(Jobs::UnknownOutcomeError) { first.value }
    [a, b].each { |thread| assert_raises(Jobs::UnavailableError) { thread.value } }
    @storage.open
    assert_equal "c", push("c")
  end

  # Once it has popped something, and once before it has begun at all.
  def test_callers_are_told_wherever_the_thread_is_killed
    killed = Thread::Queue.new
    parcels = Class.new(Thread::Queue) do
      define_method(:pop) do
        super().tap do
          enqueuer = Thread.current
          Thread.new { killed << enqueuer.kill }
          Thread.pass while killed.empty? # which is no wait
        end
      end
    end
    threads_of(enqueuer).instance_variable_set(:@parcels, parcels.new)
    assert_raises(Jobs::UnavailableError) { push("a") }
    threads_of(enqueuer).instance_variable_set(:@parcels, Thread::Queue.new)
    killing_what_is_made { assert_raises(Jobs::UnavailableError) { push("b") } }
    @storage.open
    assert_equal ["c", [%w[c]]], [push("c"), @storage.calls]
  end

  def threads_of(enqueuer) = enqueuer.instance_variable_get(:@way).instance_variable_get(:@threads)

  # A thread does not begin before its maker waits.
  def killing_what_is_made(&)
    TracePoint.new(:c_return) { |made| made.return_value.kill if made.self.equal?(Thread) && made.method_id == :new }.enable(&)
  end

  def test_closing_waits_for_what_is_under_way
    first, (a, *) = behind_another("a")
    closing = Thread.new { enqueuer.close }
    eventually("closing waits") { closing.status == "sleep" }
    @storage.open
    assert_equal %w[first a], [first.value, a.value]
    closing.join
    assert_empty(Thread.list.select { |thread| thread.name == "ringspun enqueuer" })
    assert_raises(Ringspun::ClosedError) { push("b") }
  end

  def test_a_child_has_a_thread_of_its_own
    first, (a, *) = behind_another("a")
    ended = in_child do
      @storage.open
      assert_equal "child", push("child")
      assert_equal %w[child], @storage.calls.last
      enqueuer.close
    end
    assert_predicate ended, :success?
    @storage.open
    assert_equal %w[first a], [first.value, a.value]
    assert_equal [%w[first], %w[a]], @storage.calls
  end

  def test_strands_and_threads_use_one_enqueuer
    enqueuer
    Ringspun.run do
      thread = pusher("thread")
      strand = machine.spin { push("strand") }
      yield_until("both are there") { @storage.calls.size == 2 }
      @storage.open
      assert_equal %w[thread strand], [thread.value, strand.await]
    end
  end

  # --- connections ---

  def test_single_serves_one_after_the_other
    enqueuer(strategy: :single)
    Ringspun.run do
      pushers = %w[a b c].map { |jid| parked { push(jid) } }
      assert_equal [%w[a]], @storage.calls
      @storage.open
      assert_equal %w[a b c], machine.await(*pushers)
    end
    assert_equal [%w[a], %w[b], %w[c]], @storage.calls
    assert_equal @storage.connections * 3, @storage.used
  end

  def test_named_pool_takes_any
    enqueuer(strategy: :named_pool, pool_size: 3)
    @storage.open
    100.times { |number| push(number.to_s) }
    assert_equal 3, @storage.connections.size
    assert_equal 3, @storage.used.map(&:object_id).uniq.size
  end

  def test_pool_serves_as_many_as_it_has_and_then_in_order
    enqueuer(strategy: :pool, pool_size: 2)
    Ringspun.run do
      pushers = %w[a b c d].map { |jid| parked { push(jid) } }
      assert_equal [%w[a], %w[b]], @storage.calls
      assert_equal 2, @storage.used.map(&:object_id).uniq.size
      @storage.open
      assert_equal %w[a b c d], machine.await(*pushers)
    end
    assert_equal %w[a b c d], @storage.calls.flatten
  end

  # Who wants it again at once has no advantage.
  def test_a_connection_goes_to_whoever_has_waited_longest
    %i[single named_pool pool].each do |strategy|
      @storage = HeldStorage.new
      @enqueuer = Jobs::Enqueuer.new(@storage, strategy: strategy, pool_size: 1)
      Ringspun.run do
        pushers = %w[a b].map { |jid| parked { 3.times { |number| push("#{jid}#{number}") } } }
        @storage.open
        machine.join(*pushers)
      end
      assert_equal %w[a0 b0 a1 b1 a2 b2], @storage.calls.flatten, strategy
      @enqueuer.close
    end
  end

  def test_who_is_interrupted_as_a_connection_is_handed_to_it_gives_that_back
    lender = Jobs.const_get(:Lender).new(["a"])
    thread = nil
    lender.lend do
      thread = Thread.new { lender.lend(10, &:itself) }
      thread.report_on_exception = false
      Thread.pass until thread.stop?
    end
    thread.raise(IOError) # it has been handed over, and that thread has not gone on yet
    assert_raises(IOError) { thread.value }
    assert_equal "a", lender.lend(0.01, &:itself)
  end

  # Which is no exception.
  def test_whose_thread_is_killed_gives_its_connection_back
    %i[single named_pool pool].each do |strategy|
      @storage = HeldStorage.new
      @enqueuer = Jobs::Enqueuer.new(@storage, strategy: strategy, pool_size: 1)
      holder, (waiting, late) = behind_another("b", "c")
      waiting.kill.join
      @storage.answer
      holder.join
      calls(2)
      late.kill.join
      @storage.open
      assert_equal ["d", [%w[first], %w[c], %w[d]]], [push("d"), @storage.calls], strategy
      @enqueuer.close
    end
  end

  def test_whose_thread_is_killed_anywhere_gives_back_what_it_has
    lender = Jobs.const_get(:Lender).new(["a"])
    check = ->(number) { assert_equal "a", lender.lend(0.01, &:itself), "killed at line #{number}" }
    assert_operator killed_anywhere("jobs/lender.rb", check:) { lender.lend(10) { Thread.pass } }, :>, 10
  end

  def test_pool_waits_so_long_and_no_longer
    enqueuer(strategy: :pool, pool_size: 1, pool_timeout: 0.01)
    Ringspun.run do
      holder = parked { push("a") }
      error = assert_raises(Jobs::PoolTimeoutError) { push("b") }
      assert_equal "none of the pool's connections (1) was free within 10 ms; make the pool larger, or take the strategy " \
                   ":group_commit", error.message
      @storage.open
      holder.join
      assert_equal "c", push("c")
    end
  end

  def test_who_is_cancelled_gives_its_connection_back
    %i[single named_pool pool].each do |strategy|
      @storage = HeldStorage.new
      @enqueuer = Jobs::Enqueuer.new(@storage, strategy: strategy, pool_size: 1)
      Ringspun.run do
        holder = parked { push("a") }
        waiting = parked { push("b") }
        [waiting, holder].each { |strand| machine.terminate(strand) }
        [waiting, holder].each { |strand| assert_raises(Ringspun::TerminatedError) { strand.join } }
        @storage.open
        assert_equal "c", push("c")
      end
      assert_equal [%w[a], %w[c]], @storage.calls
      @enqueuer.close
      assert @storage.connections.all?(&:closed)
    end
  end

  def test_they_send_again_what_was_not_sent
    enqueuer(strategy: :single)
    Ringspun.run do
      @storage.answer(Jobs::UnavailableError.new("down"))
      @storage.answer
      assert_equal "a", push("a")
      @storage.answer(Jobs::UnknownOutcomeError.new("cut"))
      @storage.answer(["other"])
      assert_nil push("b", lock: "l")
      assert_equal [%w[a], %w[a], %w[b], %w[b]], @storage.calls
      @storage.answer([Jobs::StorageError.new("full")])
      assert_raises(Jobs::StorageError) { push("c") }
    end
  end

  def test_a_child_has_connections_of_its_own
    enqueuer(strategy: :pool, pool_size: 1)
    holder = pusher("a")
    calls(1)
    ended = in_child do
      @storage.open
      assert_equal "child", push("child")
      assert_equal 2, @storage.connections.size
      assert_same @storage.connections.last, @storage.used.last
    end
    assert_predicate ended, :success?
    @storage.open
    holder.join
    assert_equal 1, @storage.connections.size
  end
end
