# frozen_string_literal: true

require "test_helper"
require "support/api_extension_build"
require "support/on_simulation"
require "support/strands"

# The C API between the strands of one machine: waits that they end, and the end of a tick.
class ApiStrandsTest < Minitest::Test
  include Strands
  include ApiExtensionBuild

  # --- park_or and wake_here ---

  def test_a_strand_wakes_another_with_a_value
    strands = Array.new(3) { |place| parked { api.park_here(place, nil) } }
    assert_equal "an answer in a test", strands.first.waits_for
    strands.each_index { |place| api.wake_here(place, place + 10) }
    assert_equal [10, 11, 12], machine.await(*strands)
  end

  def test_a_deadline_gives_it_up
    before = api.given_up
    assert_nil api.park_here(0, 0.001)
    assert_equal before + 1, api.given_up
  end

  def test_a_cancelled_wait_is_given_up_before_it_raises
    before = api.given_up
    strand = parked { api.park_here(0, nil) }
    machine.terminate(strand)
    assert_ends_with Ringspun::TerminatedError, strand
    assert_equal before + 1, api.given_up
  end

  def test_what_keeps_a_wait_from_beginning_gives_it_up_as_well
    before = api.given_up
    assert_raises(Ringspun::TimeoutError) { machine.timeout(0) { api.park_here(0, nil) } }
    assert_equal before + 1, api.given_up
  end

  def test_a_wake_that_came_before_a_cancellation_wins
    before = api.given_up
    strand = parked { api.park_here(0, nil) }
    api.wake_here(0, 5)
    machine.terminate(strand)
    yield_until { !strand.alive? }
    assert_equal before, api.given_up
  end

  def test_nobody_owes_a_wake_so_it_may_be_a_deadlock
    assert_child "Ringspun::DeadlockError, given up once\n", <<~RUBY, ApiExtensionBuild::LIBRARY
      require ARGV.first
      begin
        ApiExtension.park_here(0, nil)
      rescue Ringspun::DeadlockError => error
        puts "\#{error.class}, given up \#{ApiExtension.given_up == 1 ? "once" : "not once"}"
      end
    RUBY
  end

  # The strand that waits is the parent's.
  def test_a_forked_child_wakes_nobody_of_the_parents_and_waits_itself
    strand = parked { api.park_here(0, nil) }
    before = api.given_up
    status = in_child do
      api.wake_here(0, 1)
      machine.sleep(0.001)
      assert_equal [nil, before + 1], [api.park_here(1, 0.001), api.given_up]
      own = parked { api.park_here(1, nil) }
      api.wake_here(1, 5)
      assert_equal 5, own.await
    end
    assert_predicate status, :success?
    api.wake_here(0, 7)
    assert_equal [7, before], [strand.await, api.given_up]
  end

  def test_a_fork_of_the_strand_that_was_woken
    strand = parked { [api.park_here(0, nil), in_child { machine.sleep(0.001) }.success?] }
    api.wake_here(0, 3)
    assert_equal [3, true], strand.await
  end

  def test_a_wake_after_the_machine_was_closed
    closed = on_thread do
      parked { api.park_here(0, nil) }
      machine.tap(&:close)
    end
    api.wake_here(0, 1)
    assert_predicate closed, :closed?
  end

  # --- at_tick_end ---

  def test_it_is_called_once_when_the_tick_ends
    before = api.tick_ends
    strand = parked { api.park_here(0, nil) }
    api.at_tick_end(0, nil, "", 0, 0)
    assert_equal before, api.tick_ends
    assert_equal before + 1, strand.await
    machine.sleep(0.001)
    assert_equal before + 1, api.tick_ends
  end

  def test_what_it_asks_for_itself_is_called_when_the_next_one_ends
    before = api.tick_ends
    api.at_tick_end(0, nil, "", 2, -1)
    4.times { machine.sleep(0.001) }
    assert_equal before + 3, api.tick_ends
  end

  def test_several_are_called_in_their_order
    strands = Array.new(3) { |place| parked { api.park_here(place, nil) } }
    3.times { |place| api.at_tick_end(place, nil, "", 0, place) }
    first, second, third = machine.await(*strands)
    assert_equal [first + 1, first + 2], [second, third]
  end

  def test_it_is_called_while_others_have_always_something_to_do
    before = api.tick_ends
    api.at_tick_end(0, nil, "", 0, -1)
    machine.sleep(0) until api.tick_ends > before
  end

  def test_a_forked_child_is_not_called_and_the_parent_is
    before = api.tick_ends
    api.at_tick_end(0, nil, "", 0, -1)
    status = in_child do
      machine.sleep(0.001)
      raise "called" unless api.tick_ends == before
    end
    assert_predicate status, :success?
    machine.sleep(0.001)
    assert_equal before + 1, api.tick_ends
  end

  def test_it_is_called_also_when_who_has_asked_is_cancelled
    before = api.tick_ends
    strand = parked { api.at_tick_end(0, nil, "", 0, -1) && machine.sleep }
    machine.terminate(strand)
    assert_ends_with Ringspun::TerminatedError, strand
    machine.sleep(0.001)
    assert_equal before + 1, api.tick_ends
  end

  def test_a_closed_machine_calls_nobody
    before = api.tick_ends
    on_thread { api.at_tick_end(0, nil, "", 0, -1) }
    assert_equal before, api.tick_ends
  end

  # --- machine_here ---

  def test_a_strand_is_here_and_a_thread_of_its_own_is_not
    assert_equal true, machine.spin { api.here? }.await
    assert_equal false, Thread.new { api.here? }.value
    assert_equal false, api.here?
  end

  def test_a_forked_strand_is_here_and_a_closed_machine_is_not
    assert machine.spin { in_child { assert api.here? }.success? }.await
    assert_equal(false, on_thread { machine.spin { api.here? }.await && machine.close || api.here? })
  end
end

class ApiStrandsOnSimulationTest < ApiStrandsTest
  include OnSimulation
end
