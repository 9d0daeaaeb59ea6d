# frozen_string_literal: true

require "test_helper"
require "support/on_simulation"
require "support/strands"

# Fibers that are switched by others than the machine, and waits inside fibers that are no strand's own.
class SwitchingTest < Minitest::Test
  include Strands

  # A parked strand and its fiber.
  def parked_fiber(&wait)
    fiber = nil
    strand = parked { (fiber = Fiber.current).then(&wait) }
    [strand, fiber]
  end

  # --- somebody else switches a parked strand in ---

  def test_fiber_raise_on_a_parked_strand
    seen = []
    strand, fiber = parked_fiber do
      machine.sleep(60)
    ensure
      machine.yield
      seen << :unwound
    end
    fiber.raise(Failure, "from outside")
    seen << :caller
    assert_ends_with Failure, strand, /from outside/
    assert_equal %i[caller unwound], seen
    assert_equal 0, machine.metrics[:timers]
  end

  def test_the_caller_of_fiber_raise_goes_on_when_it_is_a_strand
    strand, fiber = parked_fiber { machine.park }
    caller = machine.spin do
      fiber.raise(Failure)
      machine.yield
      :went_on
    end
    other = machine.spin { 3.times { machine.yield }.then { :ran } }
    assert_equal %i[went_on ran], machine.await(caller, other)
    assert_ends_with Failure, strand
  end

  def test_fiber_raise_goes_on_before_others_that_are_ready
    seen = []
    _, fiber = parked_fiber { error_of { machine.park } }
    others = Array.new(2) { |i| machine.spin { seen << i } }
    fiber.raise(Failure)
    assert_empty seen
    machine.yield
    machine.join(*others)
  end

  def test_a_strand_that_rescues_fiber_raise_can_wait_again
    strand, fiber = parked_fiber { [error_of { machine.park }.message, machine.park] }
    fiber.raise(Failure, "first")
    machine.yield
    machine.schedule(strand, :second)
    assert_equal ["first", :second], strand.await
  end

  def test_fiber_raise_while_it_waits_in_a_list_takes_it_out
    queue = Ringspun::Queue.new
    strand, fiber = parked_fiber { queue.pop }
    fiber.raise(Failure)
    assert_equal 0, queue.num_waiting
    queue.push(:item)
    assert_ends_with Failure, strand
    assert_equal :item, queue.pop
  end

  def test_fiber_raise_while_it_waits_for_an_op
    reader, writer = machine.pipe
    strand, fiber = parked_fiber { machine.read(reader, +"") }
    fiber.raise(Failure)
    assert_ends_with Failure, strand
    assert_equal 0, machine.metrics[:ops_in_flight]
    machine.write(writer, "kept")
    assert_equal 4, machine.read(reader, +"")
  ensure
    [reader, writer].each { |fd| machine.close(fd) }
  end

  def test_fiber_raise_does_not_take_away_what_is_on_its_way
    queue = Ringspun::Queue.new
    strand, fiber = parked_fiber { [queue.pop, error_of { machine.yield }.class] }
    queue.push(:item)
    fiber.raise(Failure)
    assert_equal [:item, Failure], strand.await
  end

  def test_fiber_raise_inside_a_shield_waits_for_its_end
    strand, fiber = parked_fiber { [Ringspun.shield { machine.park }, error_of { machine.yield }.class] }
    fiber.raise(Failure)
    machine.yield
    machine.schedule(strand, 1)
    assert_equal [1, Failure], strand.await
  end

  def test_fiber_raise_of_an_exit
    strand, fiber = parked_fiber { machine.park }
    fiber.raise(SystemExit)
    assert_raises(SystemExit) { machine.sleep }
    refute_predicate strand, :alive?
  end

  def test_fiber_kill_on_a_parked_strand
    seen = []
    strand, fiber = parked_fiber do
      machine.park
      seen << :never
    ensure
      seen << :unwound
    end
    fiber.kill
    seen << :caller
    assert_ends_with Ringspun::TerminatedError, strand
    assert_equal %i[caller unwound], seen
    machine.yield
  end

  def test_fiber_kill_and_an_ensure_block_that_waits
    seen = []
    strand, fiber = parked_fiber do
      machine.park
    ensure
      3.times { |i| machine.yield.then { seen << i } }
    end
    fiber.kill
    assert_ends_with Ringspun::TerminatedError, strand
    assert_equal [0, 1, 2], seen
    machine.yield
  end

  # CRuby raises the kill anew at each switch to that fiber, and so after each of its waits in which another strand has run.
  def test_the_kill_of_an_inner_fiber_that_waits_in_ensure_ends_nothing_else
    seen = []
    others = machine.spin { 20.times { machine.yield } }
    strand = machine.spin do
      inner = Fiber.new do
        Fiber.yield
      ensure
        3.times { |i| machine.yield.then { seen << i } }
      end
      inner.resume
      inner.kill
      seen << inner.alive?
      3.times { machine.yield }
      Fiber.new { machine.yield || :fine }.resume
    end
    assert_equal :fine, strand.await
    assert_equal [0, 1, 2, false], seen
    others.join
  end

  def test_a_strand_that_kills_its_own_fiber_waits_in_ensure
    seen = []
    others = machine.spin { 20.times { machine.yield } }
    strand = machine.spin do
      Fiber.current.kill
    ensure
      3.times { |i| machine.yield.then { seen << i } }
    end
    assert_ends_with Ringspun::TerminatedError, strand
    assert_equal [0, 1, 2], seen
    assert_equal :alive, others.join && machine.spin { machine.yield || :alive }.await
  end

  # The fiber has been killed, and no other strand may be run on it.
  def test_a_strand_that_leaves_a_kill_of_its_own_fiber_by_an_error
    others = machine.spin { 20.times { machine.yield } }
    strand = machine.spin do
      Fiber.current.kill
    ensure
      machine.yield
      raise Failure, "in place of the kill"
    end
    assert_ends_with Failure, strand, /in place/
    assert_equal [0, 1, 2], machine.await(Array.new(3) { |i| machine.spin { machine.yield || i } })
    others.join
  end

  def test_fiber_kill_concerns_one_strand_only
    strand, fiber = parked_fiber { machine.park }
    other = parked { machine.park }
    machine.scope do |scope|
      scope.spin { fiber.kill }
      scope.spin { error_of { strand.join } }
    end
    machine.schedule(other, :alive)
    assert_equal :alive, other.await
    assert_equal 4, machine.spin { machine.yield || 4 }.await
  end

  def test_fiber_kill_inside_a_scope_cancels_its_children
    child = nil
    strand, fiber = parked_fiber { machine.scope { |scope| (child = scope.spin { machine.sleep }).join } }
    fiber.kill
    assert_ends_with Ringspun::TerminatedError, strand
    assert_equal :done, child.state
  end

  def test_fiber_resume_on_a_parked_strand
    strand, fiber = parked_fiber { machine.park }
    assert_raises(FiberError) { fiber.resume }
    assert_equal :parked, strand.state
    machine.schedule(strand, 1)
    assert_equal 1, strand.await
  end

  def test_fiber_transfer_to_a_parked_strand
    strand, fiber = parked_fiber { machine.park }
    fiber.transfer(:stray)
    assert_equal :parked, strand.state
    from_strand = machine.spin { fiber.transfer.then { :came_back } }
    assert_equal :came_back, from_strand.await
    machine.schedule(strand, 1)
    assert_equal 1, strand.await
  end

  def test_fiber_transfer_to_a_ready_strand
    gate = Ringspun::Queue.new
    strand, fiber = parked_fiber { gate.pop }
    gate.push(:item)
    fiber.transfer
    assert_equal :item, strand.await
  end

  # --- from where somebody else is switched in ---

  # Calls from inside the block, after that has done something, raise in another strand's fiber.
  def raising_from(&block)
    strand, fiber = parked_fiber { machine.park }
    value = machine.spin { block.call(-> { fiber.raise(Failure) }) }.await
    assert_ends_with Failure, strand
    value
  end

  def test_from_a_strand_that_has_waited_in_an_inner_fiber
    assert_equal(:went_on, raising_from { |call| Fiber.new { machine.yield }.resume || call.() || machine.yield || :went_on })
  end

  def test_from_a_strand_that_has_an_enumerator_under_way
    value = raising_from do |call|
      numbers = Enumerator.new { |out| 3.times { |i| machine.yield.then { out << i } } }
      [numbers.next, call.().nil?, numbers.next, numbers.next]
    end
    assert_equal [0, true, 1, 2], value
  end

  def test_from_an_inner_fiber_that_has_waited
    value = raising_from do |call|
      Fiber.new { machine.yield || call.() || machine.yield || :inner }.resume
    end
    assert_equal :inner, value
  end

  # Nobody tells which fiber made the call, and this one has never been seen.
  def test_from_an_inner_fiber_that_has_not_waited
    strand, fiber = parked_fiber { machine.park }
    other = machine.spin { 3.times { machine.yield }.then { :other } }
    assert_ends_with Ringspun::UsageError, machine.spin { Fiber.new { fiber.raise(Failure) }.resume }, /cannot be found again/
    assert_ends_with Failure, strand
    assert_equal :other, other.await
  end

  def test_the_one_that_was_switched_to_last
    gate = Ringspun::Queue.new
    strand, fiber = parked_fiber { gate.pop }
    killer = parked do
      Fiber.new { machine.park }.resume
      fiber.kill
      :went_on
    end
    machine.schedule(killer) # its inner fiber is what the machine switches to
    assert_equal :went_on, killer.await
    assert_ends_with Ringspun::TerminatedError, strand
  end

  def test_fiber_raise_after_the_strand_has_ended_reaches_nobody
    fiber = machine.spin { Fiber.current }.await
    error_of { fiber.raise(Failure) }
    machine.yield
    assert_equal 5, machine.spin { machine.yield || 5 }.await
  end

  def test_fiber_kill_after_the_strand_has_ended_reaches_nobody
    fiber = machine.spin { Fiber.current }.await
    fiber.kill
    machine.yield
    values = machine.await(*Array.new(3) { |i| machine.spin { machine.yield || i } })
    assert_equal [0, 1, 2], values
  end

  # --- waits inside fibers that are no strand's own ---

  def test_a_wait_inside_an_external_enumerator
    numbers = Enumerator.new { |out| 3.times { |i| machine.sleep(0.000_1).then { out << i } } }
    strand = machine.spin { [numbers.next, numbers.peek, numbers.next, numbers.next, error_of { numbers.next }.class] }
    assert_equal [0, 1, 1, 2, StopIteration], strand.await
    assert_equal 0, numbers.tap(&:rewind).next # from the root
  end

  def test_a_wait_inside_a_plain_fiber
    strand = machine.spin do
      fiber = Fiber.new { |x| machine.yield.then { Fiber.yield(x + 1) }.then { |y| machine.sleep(0.000_1).then { y * 2 } } }
      [fiber.resume(1), fiber.resume(5), fiber.alive?]
    end
    assert_equal [2, 10, false], strand.await
  end

  def test_nested_fibers
    wait = lambda do |depth|
      machine.yield
      depth.zero? ? machine.sleep(0.000_1).then { 0 } : 1 + Fiber.new { wait.(depth - 1) }.resume
    end
    strands = Array.new(3) { machine.spin { wait.(10) } }
    assert_equal [10, 10, 10], machine.await(*strands)
  end

  def test_others_run_while_an_inner_fiber_waits
    seen = []
    inner = machine.spin do
      Fiber.new { 3.times { |i| machine.yield.then { seen << "inner#{i}" } } }.resume
    end
    other = machine.spin { 3.times { |i| machine.yield.then { seen << "other#{i}" } } }
    machine.join(inner, other)
    assert_equal %w[inner0 other0 inner1 other1 inner2 other2], seen
  end

  def test_an_enumerator_that_several_strands_use_in_turn
    numbers = Enumerator.new { |out| 6.times { |i| machine.yield.then { out << i } } }
    first = machine.spin { Array.new(3) { numbers.next } }
    assert_equal [0, 1, 2], first.await
    assert_equal [3, 4, 5], machine.spin { Array.new(3) { numbers.next } }.await
  end

  def test_an_enumerator_that_somebody_is_waiting_in
    numbers = Enumerator.new { |out| machine.park.then { |value| out << value } }
    waiting = parked { numbers.next }
    assert_ends_with FiberError, machine.spin { numbers.next }
    machine.schedule(waiting, 1)
    assert_equal 1, waiting.await
  end

  def test_a_cancellation_passes_through_inner_fibers
    seen = []
    strand = parked do
      Fiber.new do
        machine.sleep
      ensure
        seen << :inner
      end.resume
    ensure
      seen << :outer
    end
    machine.terminate(strand)
    assert_ends_with Ringspun::TerminatedError, strand
    assert_equal %i[inner outer], seen
  end

  def test_fiber_raise_on_an_inner_fiber_that_waits
    inner = nil
    strand = parked { (inner = Fiber.new { machine.park }).resume }
    inner.raise(Failure)
    assert_ends_with Failure, strand
  end

  def test_fiber_raise_on_a_strand_whose_inner_fiber_waits
    strand, fiber = parked_fiber { Fiber.new { machine.park }.resume }
    fiber.raise(Failure)
    assert_ends_with Failure, strand
  end

  def test_fiber_yield_in_a_strand_has_nowhere_to_go
    assert_ends_with FiberError, machine.spin { Fiber.yield }
  end

  def test_the_root_waits_inside_a_fiber_while_strands_end
    strands = Array.new(200) { machine.spin { machine.sleep(0.000_1) } }
    assert_equal 5, Fiber.new { machine.join(*strands).then { 5 } }.resume
  end

  def test_a_strand_is_spun_inside_a_fiber_that_then_ends
    strand = Fiber.new { machine.spin { machine.yield || 5 } }.resume
    assert_equal 5, strand.await
  end

  def test_a_scope_inside_an_inner_fiber
    value = machine.spin { Fiber.new { machine.scope { |scope| scope.spin { machine.yield || 3 }.await } }.resume }.await
    assert_equal 3, value
  end

  # A block that is suspended in the middle of a timeout or scope, for good or until after what surrounds it.
  SUSPENDED = {
    "a timeout that is never resumed" => "Enumerator.new { |out| machine.timeout(1) { out << 1 } }.next",
    "a scope that is never resumed" => "Enumerator.new { |out| machine.scope { out << 1 } }.next",
    "a timeout that ends after one opened later" =>
      "n = Enumerator.new { |out| machine.timeout(1) { out << 1 }; out << 2 }; n.next; machine.timeout(1) { n.next }",
    "a scope that ends after one opened later" =>
      "n = Enumerator.new { |out| machine.scope { out << 1 }; out << 2 }; n.next; machine.scope { n.next }",
    "a timeout that another strand ends" =>
      "n = Enumerator.new { |out| machine.timeout(1) { out << 1 }; out << 2 }; n.next; machine.spin { n.next }.await",
    "a timeout whose strand has ended" =>
      "n = Enumerator.new { |out| machine.timeout(1) { out << 1 }; out << 2 }; machine.spin { n.next }.await; n.next"
  }.freeze

  SUSPENDED.each do |name, code|
    define_method("test_#{name.tr(" ", "_")}") do
      answer = child(<<~RUBY)
        strand = machine.spin do
          #{code}
        rescue Ringspun::Error => error
          error.class
        end
        strand.await
        10.times { GC.start; Array.new(100) { +"x" } }
        puts machine.spin { machine.sleep(0.001).then { "and on" } }.await
      RUBY
      assert_equal "and on\n", answer.out, answer.err
      assert_predicate answer.status, :success?
    end
  end

  # --- the stack ---

  def dive(depth = 0)
    machine.yield
    dive(depth + 1)
  end

  def test_deep_recursion_with_waits
    2.times { assert_ends_with SystemStackError, machine.spin { dive } }
    assert_instance_of SystemStackError, error_of { dive }
    assert_equal 1, machine.spin { machine.yield || 1 }.await
  end

  def descend(depth) = depth.zero? ? machine.yield : descend(depth - 1)

  def overflows?(depth) = !error_of { machine.spin { descend(depth) }.await }.nil?

  # Every depth around the one where the stack ends: it ends cleanly or works.
  def test_a_wait_near_the_end_of_the_stack
    limit = (1..16).bsearch { |i| overflows?(1 << i) } or flunk "no end of the stack found"
    deepest = ((1 << (limit - 1))..(1 << limit)).bsearch { |depth| overflows?(depth) }
    ((deepest - 60)..(deepest + 60)).each do |depth|
      error = error_of { machine.spin { descend(depth) }.await }
      assert_kind_of SystemStackError, error if error
    end
  end

  # CRuby goes on with the thread's first fiber when another ends; that one stands in the middle of a transfer here.
  def test_a_fiber_that_cannot_be_used_again_while_the_root_has_switched_away
    machine.spin do
      machine.sleep(0.001)
      Fiber.current.kill
    end
    other = Fiber.new do
      machine.sleep(0.002)
      :slept
    end
    assert_equal :slept, other.transfer
    machine.yield
  end

  def test_an_ensure_block_waits_after_a_stack_overflow
    seen = []
    strand = machine.spin do
      dive
    ensure
      seen << machine.sleep(0)
    end
    assert_ends_with SystemStackError, strand
    assert_equal [0], seen
  end
end

class SimulatedSwitchingTest < SwitchingTest
  include OnSimulation
end
