# frozen_string_literal: true

# Strands in scopes: how they end together, and deadlines.
class ScopeTest < Minitest::Test
  include Strands

  def test_a_scope_returns_when_its_strands_have_ended
    seen = []
    assert_equal :value, (in_scope { |scope| scope.spin { wait(0.001) and seen << 1 } and :value })
    assert_equal [1], seen
  end

  def test_a_scope_that_its_own_cancel_cut_short_has_no_value
    cut_nothing = in_scope do |scope|
      scope.cancel
      :value
    end
    assert_equal :value, cut_nothing
    assert_nil(in_scope do |scope|
      scope.spin { wait(60) }
      wait(0)
      scope.cancel
      :value
    end)
    assert_nil(in_scope do |scope|
      scope.spin { wait(60) }
      scope.spin { scope.cancel }
      :value
    end)
  end

  def test_a_limit_and_a_deadline_say_which_they_are
    error = assert_raises(Ringspun::TimeoutError) { machine.timeout(0) { wait(60) } }
    assert_equal "timed out after 0 s", error.message
    error = assert_raises(Ringspun::TimeoutError) { machine.scope(deadline: 0) { wait(60) } }
    assert_equal "the scope's deadline (0 s) has passed", error.message
  end

  def test_a_strand_has_a_value
    in_scope do |scope|
      strand = scope.spin { wait(0) and :value }
      assert_equal [false, :value, true, :value], [strand.done?, strand.await, strand.done?, strand.await]
    end
  end

  def test_all_who_await_get_its_error
    error = assert_raises(ArgumentError) do
      in_scope do |scope|
        strand = scope.spin { wait(0.001) and raise ArgumentError, "mine" }
        2.times { scope.spin { strand.await } }
        strand.await
      end
    end
    assert_equal "mine", error.message
  end

  def test_the_first_error_cancels_the_others
    seen = []
    assert_raises(ArgumentError) do
      in_scope do |scope|
        scope.spin do
          wait(60)
        ensure
          seen << :ended
        end
        scope.spin { raise ArgumentError, "first" }
      end
    end
    assert_equal [:ended], seen
  end

  def test_a_deadline_cancels_all_of_it
    seen = []
    error = assert_raises(Ringspun::TimeoutError) do
      in_scope(deadline: 0.01) do |scope|
        scope.spin do
          wait(60)
        ensure
          seen << :ended
        end
      end
    end
    assert_equal [:ended], seen
    assert_includes error.message, "0.01 s"
  end

  def test_a_timeout_that_does_not_pass
    assert_equal 1, (machine.timeout(60) { wait(0) and 1 })
  end

  def test_inner_deadlines_are_told_from_outer_ones
    assert_equal :outer, begin
      machine.timeout(0.01) do
        machine.timeout(60) { wait(60) }
      rescue Ringspun::TimeoutError
        :inner
      end
    rescue Ringspun::TimeoutError
      :outer
    end
  end

  def test_nothing_is_spun_into_a_scope_that_has_ended
    ended = in_scope { |scope| scope }
    assert_raises(Ringspun::ClosedError) { ended.spin { nil } }
  end

  def test_a_cancelled_scope_refuses_waits_of_its_strands
    seen = []
    in_scope do |scope|
      scope.spin do
        wait(60)
      rescue Ringspun::Cancelled => first
        begin
          wait(60)
        rescue Ringspun::Cancelled => second
          seen << first.class << second.class
        end
        raise first
      end
      machine.yield
      scope.cancel
    end
    assert_equal [Ringspun::Cancelled] * 2, seen
  end

  def test_a_strand_cannot_await_itself
    assert_raises(Ringspun::UsageError) do
      in_scope do |scope|
        strand = nil
        strand = scope.spin { strand.await }
      end
    end
  end

  def test_when_nobody_will_wake_anybody
    error = assert_raises(Ringspun::DeadlockError) do
      in_scope do |scope|
        strands = []
        strands << scope.spin { machine.yield and strands[1].await }
        strands << scope.spin { strands[0].await }
      end
    end
    assert_includes error.message, "nothing will wake"
  end

  # One is terminated, and their scope cancelled before the other, which waits for it, goes on.
  def test_who_is_cancelled_too_gets_cancelled_and_no_terminated_error
    seen = nil
    ending = Ringspun::Queue.new
    assert_nil(in_scope do |scope|
      other = scope.spin do
        wait(60)
      ensure
        ending.push(:now)
      end
      scope.spin do
        other.await
      rescue Ringspun::Error, Ringspun::Cancelled => error
        seen = error.class
        raise error
      end
      scope.spin { ending.pop and scope.cancel }
      machine.yield
      machine.terminate(other)
      wait(60)
    end)
    assert_equal Ringspun::Cancelled, seen
  end

  def test_one_that_has_ended_before
    in_scope do |scope|
      ended = [scope.spin { wait(60) }, machine.spin { raise ArgumentError }, scope.spin { :value }]
      machine.yield
      machine.terminate(ended[0])
      machine.yield until ended[0].done?
      assert_raises(Ringspun::TerminatedError) { ended[0].await }
      run = concurrently { wait(60) }
      run.conclude_to(Ringspun::TerminatedError.new("mine"))
      assert_equal "mine", assert_raises(Ringspun::TerminatedError) { run.await_result }.message
      scope.cancel
      assert_raises(Ringspun::Cancelled) { ended[0].await }
      assert_raises(Ringspun::Cancelled) { run.await_result }
      assert_raises(ArgumentError) { ended[1].await }
      assert_equal :value, ended[2].await
      assert_raises(Ringspun::TerminatedError) { machine.shield { ended[0].await } }
    end
  end

  # The block goes on with a value that it had waited for, when a child has failed meanwhile.
  def test_a_childs_error_that_came_before_the_blocks
    error = assert_raises(ArgumentError) do
      in_scope do |scope|
        first = scope.spin { machine.yield }
        scope.spin { machine.yield and raise ArgumentError, "child" }
        first.await
        raise IndexError, "block"
      end
    end
    assert_equal "child", error.message
  end

  def test_seconds_are_numbers
    [0.0 / 0, "1", :one].each { |seconds| assert_raises(Ringspun::UsageError) { machine.timeout(seconds) { nil } } }
    assert_raises(TypeError) { wait("1") }
  end

  def test_what_needs_a_block_and_what_is_no_strand
    in_scope do |scope|
      { "scope" => -> { machine.scope }, "timeout" => -> { machine.timeout(1) }, "shield" => -> { Ringspun.shield },
        "spin" => -> { machine.spin }, "spin needs" => -> { scope.spin },
        "each_line" => -> { machine.open("/dev/null") { |stream| stream.each_line } },
        "expected a Strand, got 5" => -> { machine.terminate(5) },
        "expected a Strand, got nil" => -> { machine.terminate(nil) } }.each do |part, call|
        assert_includes assert_raises(Ringspun::UsageError) { call.call }.message, part
      end
    end
  end

  # Nothing of the machine's is a change that the program has forbidden.
  def test_a_frozen_scope_and_its_first_error
    error = assert_raises(ArgumentError) do
      machine.scope do |scope|
        scope.freeze
        scope.spin { raise ArgumentError, "first" }
        wait(60)
      end
    end
    assert_equal "first", error.message
    assert_equal 5, (machine.scope { |scope| scope.freeze.spin { 5 }.await })
  end
end
