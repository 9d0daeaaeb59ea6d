# frozen_string_literal: true

require "test_helper"
require "monitor"
require "support/children"
require "support/on_simulation"
require "support/strands"

# A fiber runs one strand after the other, and none of them can tell.
class ReuseTest < Minitest::Test
  include Children
  include Strands

  # Runs two strands on one fiber; answers what the second sees.
  def after(first, &second)
    one = machine.spin { Fiber.current.tap { first.call } }
    fiber = one.await
    other, seen = machine.spin { [Fiber.current, second.call] }.await
    assert_same fiber, other, "not the same fiber: this proves nothing"
    seen
  end

  # --- nothing is left of the one before ---

  def test_fiber_storage
    assert_nil(after(-> { Fiber[:trace] = 1 }) { Fiber[:trace] })
    assert_equal({}, after(-> { Fiber[:trace] = 1 }) { Fiber.current.storage })
  end

  def test_fiber_locals
    assert_nil(after(-> { Thread.current[:local] = 1 }) { Thread.current[:local] })
    assert_equal(false, after(-> { Thread.current[:local] = 1 }) { Thread.current.key?(:local) })
    assert_empty(after(-> { Thread.current["local"] = 1 }) { Thread.current.keys })
  end

  def test_the_last_error
    assert_nil(after(-> { error_of { raise Failure } }) { $! })
    failing = machine.spin { raise Failure }
    assert_ends_with Failure, failing
    assert_nil machine.spin { $! }.await
  end

  def test_the_value_of_a_strand_that_failed
    assert_ends_with Failure, machine.spin { raise Failure }
    assert_equal [nil, :value], [machine.spin {}.await, machine.spin { :value }.await]
  end

  # As the gem async gives one to each.
  def test_a_fiber_with_instance_variables_that_are_nil_is_used_again
    fiber = machine.spin { Fiber.current.tap { |current| current.instance_variable_set(:@state, nil) } }.await
    assert_same fiber, machine.spin { Fiber.current }.await
  end

  # As Active Support keeps its execution state, and with it who the current user is.
  def test_a_fiber_with_instance_variables_is_not_used_again
    fiber = machine.spin { Fiber.current.tap { |current| current.instance_variable_set(:@state, "ann's") } }.await
    other, state = machine.spin { [Fiber.current, Fiber.current.instance_variable_get(:@state)] }.await
    assert_nil state
    refute_same fiber, other
    refute_predicate fiber, :alive?
  end

  def test_a_frozen_or_strange_fiber_local
    seen = after(-> { Thread.current[:frozen] = "x"; Thread.current[:"a b?"] = 1 }) { Thread.current.keys }
    assert_empty seen
  end

  def test_storage_with_many_keys
    seen = after(-> { 100.times { |i| Fiber[:"key#{i}"] = i } }) { Fiber.current.storage.size }
    assert_equal 0, seen
  end

  # --- storage is inherited, as a copy ---

  def with_storage(**values)
    Fiber.new(storage: values) { yield }.resume
  end

  def test_storage_is_inherited_from_who_spins
    with_storage(user: "ann") do
      assert_equal "ann", machine.spin { Fiber[:user] }.await
      assert_equal "ann", machine.spin { machine.spin { Fiber[:user] }.await }.await
      assert_equal "ann", machine.scope { |scope| scope.spin { Fiber[:user] }.await }
      assert_equal "ann", Ringspun.run { Fiber[:user] }
    end
  end

  def test_storage_is_a_copy
    with_storage(user: "ann") do
      machine.spin { Fiber[:user] = "bob" }.join
      assert_equal "ann", Fiber[:user]
      strand = parked { machine.park.then { Fiber[:user] } }
      Fiber[:user] = "eve"
      machine.schedule(strand)
      assert_equal "ann", strand.await
    end
  end

  def test_storage_as_it_is_when_the_strand_is_spun
    with_storage(user: "ann") do
      strand = machine.spin { Fiber[:user] }
      Fiber[:user] = "bob"
      assert_equal "ann", strand.await
    end
  end

  def test_storage_does_not_pass_between_strands
    with_storage do
      strands = Array.new(3) { |i| machine.spin { (Fiber[:i] = i).then { machine.yield }.then { Fiber[:i] } } }
      assert_equal [0, 1, 2], machine.await(*strands)
    end
  end

  def test_a_reused_fiber_takes_the_storage_of_its_new_strand
    with_storage(user: "ann") { machine.spin { Fiber[:extra] = 1 }.join }
    with_storage(user: "bob") { assert_equal({ user: "bob" }, machine.spin { Fiber.current.storage }.await) }
  end

  def test_fiber_locals_are_not_inherited
    Thread.current[:mine] = 1
    assert_nil machine.spin { Thread.current[:mine] }.await
  ensure
    Thread.current[:mine] = nil
  end

  # --- what a strand keeps while others run ---

  def test_the_last_error_is_kept_across_waits
    other = machine.spin { 3.times { error_of { raise Failure, "other" }.then { machine.yield } } }
    seen = machine.spin do
      raise Failure, "mine"
    rescue Failure
      machine.yield
      [$!.message, error_of { machine.yield.then { raise } }.message]
    end.await
    assert_equal %w[mine mine], seen
    other.join
  end

  def test_no_last_error_outside_of_a_rescue
    inside = parked do
      raise Failure
    rescue Failure
      machine.park
    end
    assert_nil machine.spin { machine.yield.then { $! } }.await
    machine.schedule(inside)
    inside.join
  end

  def test_the_cause_is_the_strands_own
    failing = parked do
      raise Failure, "cause"
    rescue Failure
      machine.park
    end
    assert_nil assert_ends_with(ArgumentError, machine.spin { raise ArgumentError }).cause
    machine.schedule(failing)
    failing.join
  end

  def match(letter) = letter =~ /./ && machine.yield || $~[0]

  def test_the_last_match_is_kept_across_waits
    strands = %w[a b].map { |letter| machine.spin { match(letter) } }
    assert_equal %w[a b], machine.await(*strands)
  end

  def test_fiber_locals_are_kept_across_waits
    strands = [1, 2].map { |i| machine.spin { (Thread.current[:i] = i).then { machine.yield }.then { Thread.current[:i] } } }
    assert_equal [1, 2], machine.await(*strands)
  end

  # --- fibers that cannot be used again ---

  # On a thread of its own, because CRuby keeps the list of locked mutexes per thread.
  def fibers_after
    on_thread do
      fiber = machine.spin { Fiber.current.tap { yield } }.await
      [fiber, machine.spin { Fiber.current }.await]
    end
  end

  # Whether a lock is free again when its fiber is dead is Ruby's business: the same as for a stock fiber.
  def assert_as_for_a_stock_fiber(strand_lock, fiber_lock)
    on_thread do
      machine.spin { yield strand_lock }.join
      Fiber.new { yield fiber_lock }.resume
      outcomes = [strand_lock, fiber_lock].map { |lock| error_of { lock.synchronize {} }&.message }
      assert_equal outcomes[1], outcomes[0]
    end
  end

  def test_a_fiber_that_holds_a_stock_mutex_is_not_used_again
    first, second = fibers_after { Thread::Mutex.new.tap { |mutex| @mutex = mutex }.lock }
    refute_same first, second
    assert_as_for_a_stock_fiber(Thread::Mutex.new, Thread::Mutex.new, &:lock)
  end

  def test_a_fiber_that_gave_its_mutexes_back_is_used_again
    first, second = fibers_after { Thread::Mutex.new.synchronize { machine.yield } }
    assert_same first, second
  end

  def test_a_fiber_that_holds_a_monitor_is_not_used_again
    first, second = fibers_after { Monitor.new.tap { |monitor| @monitor = monitor }.enter }
    refute_same first, second
    assert_as_for_a_stock_fiber(Monitor.new, Monitor.new, &:enter)
  end

  def test_a_fiber_that_holds_one_of_two_mutexes_is_not_used_again
    @mutexes = Array.new(2) { Thread::Mutex.new }
    first, second = fibers_after { @mutexes.each(&:lock).last.unlock }
    refute_same first, second
  end

  # CRuby 3.3 frees a locked mutex by what the memory of its fiber says, so that has to be there still.
  def test_a_fiber_lives_as_long_as_the_mutexes_that_it_holds
    outcome = ruby_child("require \"ringspun\"\n#{<<~'RUBY'}")
      10.times do
        mutexes = []
        Ringspun.run { |machine| 200.times { machine.spin { mutexes << Thread::Mutex.new.tap(&:lock) }.join } }
        GC.start
        others = Array.new(2_000) { |i| [Fiber.new { "#{i}" }.tap(&:resume), "!" * (i % 900 + 100)] }
        mutexes.clear
        GC.start
        others.clear
        Ringspun.run { |machine| machine.spin { Thread::Mutex.new.lock }.join }
      end
      puts :lived
      fibers = -> { GC.start.then { ObjectSpace.each_object(Fiber).count } }
      Ringspun.run { |machine| machine.spin { Thread::Mutex.new.lock }.join }
      mutexes = []
      Ringspun.run { |machine| 200.times { machine.spin { mutexes << Thread::Mutex.new.tap(&:lock) }.join } }
      held = fibers.call
      mutexes.clear.then { GC.start }
      Ringspun.run { |machine| machine.spin { Thread::Mutex.new.lock }.join }
      p held - fibers.call > 100
    RUBY
    assert_equal "lived\ntrue\n", outcome.out, outcome.err
  end

  def test_a_mutex_that_somebody_else_holds_does_not_matter
    on_thread do
      Thread::Mutex.new.synchronize do
        first = machine.spin { Fiber.current }.await
        assert_same first, machine.spin { Fiber.current }.await
      end
    end
  end

  def test_a_fiber_that_was_killed_is_not_used_again
    fiber = nil
    strand = parked { (fiber = Fiber.current).then { machine.park } }
    fiber.kill
    assert_ends_with Ringspun::TerminatedError, strand
    refute_same fiber, machine.spin { Fiber.current }.await
  end

  def test_a_monitor_is_reentrant_across_waits
    monitor = Monitor.new
    value = machine.spin { monitor.synchronize { machine.yield.then { monitor.synchronize { machine.yield || 3 } } } }.await
    assert_equal 3, value
  end

  def test_a_condition_variable_and_stock_queue_with_another_thread
    queue = Thread::Queue.new
    thread = Thread.new { queue << 1 }
    assert_equal 1, machine.spin { queue.pop }.await
    thread.join
  end

  # --- how many are kept ---

  def burst(count) = machine.join(*Array.new(count) { machine.spin { machine.sleep(0.000_1) } })

  # All at once.
  def crowd(count)
    gate = Ringspun::Queue.new
    strands = Array.new(count) { machine.spin { gate.pop } }
    machine.yield while gate.num_waiting < count
    gate.close
    machine.join(*strands)
  end

  def idle = machine.metrics[:idle_fibers]

  # Only collections that it asks for; the first ones let go what tests before this one have needed.
  def test_as_many_are_kept_as_were_needed_of_late
    GC.disable
    2.times { crowd(1).then { GC.start } }
    3.times { crowd(1000).then { assert_includes 1000..1010, idle } }
    3.times { crowd(300).then { GC.start } }
    assert_includes 300..310, idle
    2.times { GC.start }
    assert_includes 1..128, idle
    crowd(300)
    assert_includes 300..310, idle
  ensure
    GC.enable
  end

  # The collector, which may be off or have no reason to come, is needed for none of them.
  def test_rounds_of_strands_take_no_more_stacks_than_one
    crowd(200)
    GC.disable
    before = mappings
    400.times { crowd(200) }
    assert_operator mappings - before, :<, 500
  ensure
    GC.enable
  end

  def test_stacks_of_fibers_that_are_used_up_do_not_wait_for_a_collector_that_is_off
    use_up = -> { machine.spin { machine.yield.then { Fiber.current.instance_variable_set(:@used, 1) } } }
    assert_stacks_are_taken_back { machine.join(*Array.new(200) { use_up.call }) }
  end

  def test_stacks_of_scheduled_fibers_do_not_wait_for_a_collector_that_is_off
    on_thread do
      Fiber.set_scheduler(Ringspun::Scheduler.new)
      assert_stacks_are_taken_back { 200.times { Fiber.schedule { machine.yield } }.then { 2.times { machine.yield } } }
    end
  end

  # In a child, whose program and collector are its own.
  def assert_stacks_are_taken_back
    assert_predicate(in_child do
      GC.disable
      before = mappings
      100.times { yield }
      assert_operator mappings - before, :<, 20_000
      assert GC.enable, "the collector is on"
    end, :success?)
  end

  # Those that are old would still be there, and be made again. Ruby makes a major one of it where an earlier one has left a
  # reason, as too few free slots, but not of the first after a major one.
  def test_a_minor_collection_takes_none
    GC.disable
    kept = Array.new(3) do
      crowd(1000)
      GC.start
      majors = GC.stat(:major_gc_count)
      Array.new(5) do
        GC.start(full_mark: false)
        idle if GC.stat(:major_gc_count) == majors
      end
    end.flatten.compact
    refute_empty kept
    assert_operator kept.min, :>=, 1000
  ensure
    GC.enable
  end

  # Each of them scans all that are kept.
  def test_many_minor_collections_take_those_that_nobody_needs
    crowd(1000)
    40.times { GC.start(full_mark: false) }
    assert_includes 1..128, idle
  end

  # CRuby takes a stack back when it collects the fiber.
  def test_ended_fibers_leave_no_stacks_behind
    2.times { burst(1000).then { GC.start } }
    before = mappings
    10.times { burst(1000).then { GC.start } }
    assert_operator mappings - before, :<, 1000
  end

  def test_strands_one_after_the_other_share_a_fiber
    fibers = Array.new(100) { machine.spin { machine.yield.then { Fiber.current } }.await }
    assert_equal 1, fibers.uniq(&:object_id).size
  end

  def test_strands_that_do_not_wait_need_one_fiber
    fibers = machine.await(*Array.new(100) { machine.spin { Fiber.current } })
    assert_equal 1, fibers.uniq(&:object_id).size
  end
end

class SimulatedReuseTest < ReuseTest
  include OnSimulation
end
