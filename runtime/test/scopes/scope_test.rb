# frozen_string_literal: true

require "test_helper"
require "support/strands"

# Scopes: what they wait for, how errors and cancellations travel, and every way out of them.
class ScopeTest < Minitest::Test
  include Strands

  def scope(...) = machine.scope(...)

  # A strand of the scope that waits until it is cancelled, and notes it.
  def sleeper(scope, seen = nil, name = :unwound)
    scope.spin do
      machine.sleep
    ensure
      seen << name if seen
    end
  end

  # --- waiting ---

  def test_the_value_of_the_block
    assert_equal 5, scope { 5 }
    assert_equal 5, Ringspun.scope { 5 }
    assert_nil scope {}
  end

  def test_it_waits_for_its_strands
    seen = []
    value = scope do |inside|
      3.times { |i| inside.spin { (3 - i).times { machine.yield }.then { seen << i } } }
      :value
    end
    assert_equal [:value, [2, 1, 0]], [value, seen]
  end

  def test_it_waits_for_strands_that_its_strands_spin_into_it
    seen = []
    scope { |inside| inside.spin { inside.spin { inside.spin { machine.yield.then { seen << :deep } } } } }
    assert_equal [:deep], seen
  end

  def test_strands_spun_while_it_waits_for_the_last
    seen = []
    scope do |inside|
      inside.spin { machine.sleep(0.000_1).then { inside.spin { seen << :late } } }
    end
    assert_equal [:late], seen
  end

  def test_it_does_not_wait_for_strands_of_the_machine
    outside = nil
    scope { outside = machine.spin { machine.park } }
    assert_predicate outside, :alive?
    machine.schedule(outside)
    outside.join
  end

  def test_strands_have_values
    assert_equal [1, 2], scope { |inside| machine.await(inside.spin { 1 }, inside.spin { machine.yield || 2 }) }
  end

  def test_size
    scope do |inside|
      assert_equal 0, inside.size
      strand = inside.spin {}
      assert_equal 1, inside.size
      strand.join
      assert_equal 0, inside.size
    end
    assert_equal 0, scope { |inside| inside }.size
  end

  def test_a_scope_without_a_block
    assert_raises(Ringspun::UsageError) { machine.scope }
    assert_raises(Ringspun::UsageError) { machine.timeout(1) }
    assert_raises(Ringspun::UsageError) { machine.periodically(3600) }
  end

  def test_unknown_options
    assert_raises(ArgumentError) { scope(deadlin: 1) {} }
    assert_raises(ArgumentError) { scope(1) {} }
    assert_raises(TypeError) { Ringspun::Scope.new }
  end

  # --- errors ---

  def test_the_first_error_of_a_strand_cancels_the_rest_and_is_raised
    seen = []
    error = assert_raises(Failure) do
      scope do |inside|
        sleeper(inside, seen)
        inside.spin { machine.yield.then { raise Failure, "first" } }
        begin
          machine.sleep
        ensure
          seen << :block
        end
      end
    end
    assert_equal ["first", %i[block unwound]], [error.message, seen.sort]
    assert_empty Ringspun.suppressed(error)
  end

  def test_an_error_of_the_block_cancels_the_strands
    seen = []
    assert_raises(Failure) { scope { |inside| until_parked(sleeper(inside, seen)).then { raise Failure } } }
    assert_equal [:unwound], seen
  end

  def test_a_strand_that_has_not_started_never_does
    ran = false
    assert_raises(Failure) { scope { |inside| inside.spin { ran = true }.then { raise Failure } } }
    refute ran
  end

  def test_an_error_while_it_only_waits_for_its_strands
    seen = []
    assert_raises(Failure) do
      scope do |inside|
        sleeper(inside, seen)
        inside.spin { machine.sleep(0.000_1).then { raise Failure } }
      end
    end
    assert_equal [:unwound], seen
  end

  def test_later_errors_are_suppressed_in_their_order
    error = assert_raises(Failure) do
      scope do |inside|
        %w[second third].each do |name|
          inside.spin do
            machine.sleep
          ensure
            raise ArgumentError, name
          end
        end
        inside.spin { machine.yield.then { raise Failure, "first" } }
        begin
          machine.sleep
        ensure
          raise IOError, "block"
        end
      end
    end
    assert_equal "first", error.message
    assert_equal %w[block second third], Ringspun.suppressed(error).map(&:message).sort
    assert_includes error.full_message(highlight: false), "Suppressed: "
    assert_includes error.full_message(highlight: false), "third (ArgumentError)"
  end

  def test_two_errors_in_the_same_turn
    error = assert_raises(Failure) do
      scope { |inside| %w[one two].each { |name| inside.spin { raise Failure, name } } }
    end
    assert_equal "one", error.message # the second was cancelled before it began
    assert_empty Ringspun.suppressed(error)
  end

  def test_two_errors_of_strands_that_are_both_ready
    error = assert_raises(Failure) do
      scope do |inside|
        gates = Array.new(2) { Ringspun::Queue.new }
        until_parked(*gates.each_with_index.map { |gate, i| inside.spin { gate.pop.then { raise Failure, i.to_s } } })
        gates.each { |gate| gate.push(1) }
      end
    end
    assert_equal ["0", ["1"]], [error.message, Ringspun.suppressed(error).map(&:message)]
  end

  def test_an_error_that_the_block_awaits_is_raised_once
    error = assert_raises(Failure) { scope { |inside| inside.spin { raise Failure }.await } }
    assert_empty Ringspun.suppressed(error)
  end

  def test_an_error_that_the_block_has_rescued_is_raised_all_the_same
    error = assert_raises(Failure) { scope { |inside| error_of { inside.spin { raise Failure }.await } } }
    assert_empty Ringspun.suppressed(error)
  end

  def test_a_frozen_error
    frozen = Failure.new("frozen").freeze
    error = error_of { scope { |inside| 2.times { inside.spin { raise frozen } } } }
    assert_same frozen, error
  end

  def test_suppressed_errors_of_an_inner_scope_are_kept
    inner_error = nil
    error = assert_raises(Failure) do
      scope do |outer|
        outer.spin do
          scope do |inner|
            inner.spin do
              machine.sleep
            ensure
              raise ArgumentError
            end
            inner.spin { machine.yield.then { raise inner_error = Failure.new("inner") } }
          end
        end
        begin
          machine.sleep
        ensure
          raise IOError
        end
      end
    end
    assert_same inner_error, error
    assert_equal [ArgumentError, IOError], Ringspun.suppressed(error).map(&:class)
  end

  def test_suppressed_of_an_ordinary_error
    assert_equal [], Ringspun.suppressed(Failure.new)
  end

  def test_an_error_stays_in_its_scope_when_that_is_rescued
    value = scope do |outer|
      strand = sleeper(outer)
      assert_raises(Failure) { scope { |inner| inner.spin { raise Failure } } }
      until_parked(strand)
      machine.terminate(strand)
      :fine
    end
    assert_equal :fine, value
  end

  def test_errors_of_scope_strands_are_not_reported
    _, reported = capture_io { Ringspun.run { error_of { scope { |inside| inside.spin { raise Failure } } } } }
    assert_empty reported
  end

  def test_a_terminated_strand_is_no_error_of_the_scope
    value = scope do |inside|
      strand = until_parked(sleeper(inside))
      machine.terminate(strand)
      :value
    end
    assert_equal :value, value
  end

  # --- cancel ---

  def test_cancel_ends_everything_inside
    seen = []
    value = scope do |inside|
      sleeper(inside, seen, :strand)
      machine.yield
      inside.cancel
      seen << :goes_on
      begin
        machine.sleep
      ensure
        seen << :block
      end
    end
    assert_nil value
    assert_equal %i[goes_on block strand], seen
    machine.yield
  end

  def test_cancel_from_a_strand_inside
    seen = []
    scope do |inside|
      sleeper(inside, seen)
      inside.spin { machine.yield.then { inside.cancel } }
      machine.sleep
    end
    assert_equal [:unwound], seen
  end

  def test_cancel_from_outside
    handle = nil
    strand = parked { scope { |inside| (handle = inside) && machine.sleep }.then { :after } }
    handle.cancel
    assert_equal :after, strand.await
  end

  def test_cancel_with_nothing_to_cut_short
    assert_equal 5, scope { |inside| inside.cancel || 5 }
  end

  def test_cancelled
    ended = scope do |inside|
      refute_predicate inside, :cancelled?
      inside.cancel
      assert_predicate inside, :cancelled?
      inside
    end
    assert_predicate ended, :cancelled?
    refute_predicate scope { |inside| inside }, :cancelled?
  end

  def test_cancelled_from_outside
    seen = nil
    scope do |outer|
      scope do |inner|
        outer.cancel
        seen = inner.cancelled?
      end
    end
    assert seen
  end

  def test_cancel_twice_and_after_the_end
    ended = scope { |inside| inside.tap { 2.times { inside.cancel } } }
    assert_nil ended.cancel
    machine.yield
  end

  def test_cancel_from_another_thread_is_refused
    scope do |inside|
      assert_instance_of Ringspun::WrongThreadError, Thread.new { error_of { inside.cancel } }.value
      assert_instance_of Ringspun::WrongThreadError, Thread.new { error_of { inside.spin {} } }.value
    end
  end

  def test_every_wait_after_the_cancellation_is_refused
    refused = 0
    value = scope do |inside|
      inside.cancel
      5.times { refused += 1 if error_of { machine.sleep(0.001) }.is_a?(Ringspun::Cancelled) }
      :reached
    end
    assert_equal [5, :reached], [refused, value]
  end

  def test_a_strand_that_waits_again_is_cancelled_again
    refused = 0
    scope do |inside|
      inside.spin { 3.times { refused += 1 if error_of { machine.sleep }.is_a?(Ringspun::Cancelled) } }
      machine.yield
      inside.cancel
    end
    assert_equal 3, refused
  end

  def test_cancelled_is_not_rescued_as_an_ordinary_error
    scope do |inside|
      inside.cancel
      begin
        machine.sleep
      rescue => error
        flunk error.inspect
      end
    end
    refute_operator Ringspun::Cancelled, :<, StandardError
  end

  def test_strands_spun_into_a_cancelled_scope_never_run
    ran = false
    scope do |inside|
      inside.cancel
      inside.spin { ran = true }
    end
    refute ran
  end

  def test_an_error_after_cancel_is_raised
    assert_raises(Failure) { scope { |inside| inside.cancel.then { raise Failure } } }
    assert_raises(Failure) do
      scope do |inside|
        inside.spin do
          machine.sleep
        ensure
          raise Failure
        end
        machine.yield
        inside.cancel
      end
    end
  end

  def test_only_the_scope_that_was_cancelled_absorbs_it
    seen = []
    value = scope do |outer|
      scope do |_inner|
        outer.cancel
        machine.sleep
      ensure
        seen << :inner
      end
      seen << :never
    end
    assert_equal [nil, [:inner]], [value, seen]
  end

  def test_cancelling_the_inner_scope_leaves_the_outer_alone
    value = scope do |_outer|
      scope do |inner|
        inner.cancel
        machine.sleep
      end
      machine.yield
      :outer
    end
    assert_equal :outer, value
  end

  def test_many_nested
    deepest = 100
    seen = 0
    nest = lambda do |depth|
      scope { depth.zero? ? machine.sleep : nest.(depth - 1) }
    ensure
      seen += 1
    end
    strand = parked { nest.(deepest) }
    machine.terminate(strand)
    assert_ends_with Ringspun::TerminatedError, strand
    assert_equal deepest + 1, seen
  end

  # --- ways out of the block ---

  def test_break
    seen = []
    value = scope do |inside|
      until_parked(sleeper(inside, seen))
      break 5
    end
    assert_equal [5, [:unwound]], [value, seen]
  end

  def test_next
    value = scope do |inside|
      inside.spin { machine.yield }
      next 5
    end
    assert_equal 5, value
  end

  def returning(seen)
    scope do |inside|
      until_parked(sleeper(inside, seen))
      return 5
    end
    flunk
  end

  def test_return
    seen = []
    assert_equal [5, [:unwound]], [returning(seen), seen]
  end

  def test_throw
    seen = []
    value = catch(:out) { scope { |inside| until_parked(sleeper(inside, seen)).then { throw :out, 5 } } }
    assert_equal [5, [:unwound]], [value, seen]
  end

  def test_throw_through_several
    seen = []
    value = catch(:out) do
      scope do |outer|
        sleeper(outer, seen, :outer)
        scope { |inner| until_parked(sleeper(inner, seen, :inner)).then { throw :out, 5 } }
      end
    end
    assert_equal [5, %i[inner outer]], [value, seen]
  end

  def test_leaving_by_break_with_strands_that_take_their_time
    order = []
    value = scope do |inside|
      until_parked(inside.spin do
        machine.sleep
      ensure
        Ringspun.shield { machine.sleep(0.000_1) }
        order << :strand
      end)
      break 5
    end
    assert_equal [5, [:strand]], [value, order]
  end

  def test_leaving_by_break_with_a_strand_that_then_fails
    assert_raises(Failure) do
      scope do |inside|
        until_parked(inside.spin do
          machine.sleep
        ensure
          raise Failure
        end)
        break 5
      end
    end
  end

  def test_break_out_of_timeout_and_lock
    assert_equal 1, machine.timeout(1) { break 1 }
    mutex = Ringspun::Mutex.new
    assert_equal 2, mutex.synchronize { break 2 }
    refute_predicate mutex, :locked?
    assert_equal 3, catch(:out) { machine.timeout(1) { mutex.synchronize { throw :out, 3 } } }
    refute_predicate mutex, :locked?
  end

  # --- after its end ---

  def test_after_its_end_nothing_can_be_spun
    ended = scope { |inside| inside }
    error = assert_raises(Ringspun::ClosedError) { ended.spin { flunk } }
    assert_match(/has ended/, error.message)
    assert_raises(Ringspun::ClosedError) { ended.deadline = 1 }
    assert_raises(Ringspun::ClosedError) { ended.extend_deadline(1) }
    assert_raises(Ringspun::ClosedError) { ended.remaining }
  end

  # --- a cancellation that is not its own ---

  def test_a_cancellation_that_somebody_raises_goes_through
    foreign = Ringspun::Cancelled.new("foreign")
    [false, true].each do |shield|
      assert_same foreign, error_of { machine.scope(shield: shield) { raise foreign } }
      seen = []
      caught = error_of do
        machine.scope(shield: shield) do |inside|
          sleeper(inside, seen)
          machine.yield
          raise foreign
        end
      end
      assert_same foreign, caught
      assert_equal [:unwound], seen
    end
    machine.yield
  end

  def test_a_deadline_that_passes_after_a_foreign_cancellation_is_not_told_instead
    foreign = Ringspun::Cancelled.new("foreign")
    simulate do
      caught = error_of do
        scope(deadline: 0.1) do |inside|
          inside.spin { Ringspun.shield { machine.sleep(0.12) } }
          machine.yield
          raise foreign
        end
      end
      assert_same foreign, caught
    end
  end

  def test_an_error_of_a_strand_goes_before_a_foreign_cancellation
    error = error_of do
      scope do |inside|
        until_parked(inside.spin { error_of { machine.sleep }.then { raise Failure } })
        raise Ringspun::Cancelled
      end
    end
    assert_instance_of Failure, error
  end

  # --- at the end of the stack ---

  def dig(seen, &block)
    scope do |inside|
      inside.spin { machine.yield && seen }
      dig(seen, &block)
    end
  end

  def test_a_stack_that_is_too_deep_to_wait_leaves_no_scope_open
    strand = machine.spin { [error_of { dig([]) }.class, machine.yield || :goes_on, scope { :fine }] }
    assert_equal [SystemStackError, :goes_on, :fine], strand.await
    yield_until("all have ended") { machine.metrics[:strands_live] == 1 }
  end

  # --- the owner is told something while it waits ---

  def test_an_exception_for_the_owner_while_it_waits_for_its_strands
    seen = []
    strand = parked { scope { |inside| sleeper(inside, seen) } }
    machine.yield
    machine.schedule(strand, Failure.new)
    assert_ends_with Failure, strand
    assert_equal [:unwound], seen
  end

  def test_the_owner_is_terminated_while_it_waits_for_its_strands
    seen = []
    strand = parked { scope { |inside| sleeper(inside, seen) } }
    machine.yield
    machine.terminate(strand)
    assert_ends_with Ringspun::TerminatedError, strand
    assert_equal [:unwound], seen
  end

  def test_several_exceptions_for_the_owner_while_it_waits
    strand = parked do
      error_of { scope { |inside| sleeper(inside) } }.then { |first| [first.class, error_of { machine.yield }.class] }
    end
    machine.yield
    machine.schedule(strand, Failure.new)
    machine.schedule(strand, ArgumentError.new)
    assert_equal [Failure, ArgumentError], strand.await
  end
end
