# frozen_string_literal: true

require "test_helper"
require "support/strands"

# Ringspun::Channel between threads, with machines and without.
class ChannelThreadsTest < Minitest::Test
  include Strands

  def setup
    super
    @threads = []
  end

  def teardown
    @threads.each(&:join)
    super
  end

  def channel(capacity = 1) = Ringspun::Channel.new(capacity)

  # A thread without a machine.
  def plain(&block) = Thread.new(&block).tap { |thread| @threads << thread }

  # The block's strand runs on a machine of another thread.
  def with_machine(&block)
    plain do
      Ringspun.run { |machine| block.call(machine) }
    ensure
      Ringspun::Machine.current.close
    end
  end

  # Until so many wait at the channel, whatever they are.
  def until_waiting(one, count = 1)
    Thread.pass until one.num_waiting == count
  end

  # --- one value ---

  def test_to_and_from_a_plain_thread
    one = channel
    popper = plain { one.pop }
    until_waiting(one)
    one.push(1)
    assert_equal 1, popper.value
    refute(plain { Ringspun::Machine.current? }.value)
    one.push(2)
    pusher = plain { one.push(3) }
    until_waiting(one)
    assert_equal [2, one, 3], [one.pop, pusher.value, one.pop]
  end

  def test_to_and_from_a_strand_of_another_machine
    one, back = channel, channel
    thread = with_machine { 3.times { back.push(one.pop * 2) } }
    assert_equal [2, 4, 6], Array.new(3) { |i| one.push(i + 1) && back.pop }
    thread.join
  end

  def test_other_strands_run_while_one_waits_for_a_thread
    one, ready = channel, Thread::Queue.new
    thread = plain { ready.pop && one.push(:value) }
    strand = parked { one.pop }
    turns = machine.spin { 10.times { machine.yield } && ready.push(true) && :turned }
    assert_equal %i[turned value], machine.await(turns, strand)
    thread.join
  end

  def test_a_machine_that_sleeps_in_the_kernel_is_woken
    one = channel
    thread = with_machine { one.pop }
    50.times { until_waiting(one) && machine.sleep(0.000_1) }
    one.push(:woken)
    assert_equal :woken, thread.value
  end

  def test_first_come_first_served_whoever_waits
    one, order = channel, Thread::Queue.new
    3.times do |i|
      plain { order.push([2 * i, one.pop]) }
      until_waiting(one, 2 * i + 1)
      with_machine { order.push([2 * i + 1, one.pop]) }
      until_waiting(one, 2 * i + 2)
    end
    6.times { |value| one.push(value) }
    assert_equal Array.new(6) { |i| [i, i] }, Array.new(6) { order.pop }.sort
  end

  def test_times_that_pass
    one = channel
    assert_nil plain { one.pop(timeout: 0.001) }.value
    one.push(1)
    assert_nil plain { one.push(2, timeout: 0.001) }.value
    assert_nil with_machine { one.push(2, timeout: 0.001) }.value
    refute with_machine { one.try_push(2) }.value
    assert_equal [1, 0], [one.pop, one.num_waiting]
  end

  # --- closing ---

  def test_closing_while_all_kinds_wait
    empty, full = channel, channel.push(1)
    poppers = [plain { [empty.pop] }, with_machine { [empty.pop] }, with_machine { [Ringspun.select(empty)&.last] }]
    pushers = [plain { error_of { full.push(2) } }, with_machine { error_of { full.push(2) } }]
    until_waiting(empty, 2)
    until_waiting(full, 2)
    [empty, full].each(&:close)
    assert_equal [[nil]] * 3, poppers.map(&:value)
    assert_equal [Ringspun::ClosedError] * 2, pushers.map { |pusher| pusher.value.class }
    assert_equal 1, full.pop
  end

  # --- what ends a wait ---

  def test_a_thread_that_is_killed_or_raised_in_gives_way
    one = channel
    killed = plain { one.pop }
    raised = plain { one.pop }.tap { |thread| thread.report_on_exception = false }
    until_waiting(one, 2)
    killed.kill
    raised.raise(Failure)
    assert_nil killed.value
    assert_raises(Failure) { @threads.delete(raised).value }
    assert_equal 0, one.num_waiting
    assert_equal 1, one.push(1).pop
  end

  def test_a_signal_ends_the_wait_of_a_main_thread_without_a_machine
    assert_child "[:pop, 0, 0]\n[:push, 0, 1]\n", <<~RUBY
      one = Ringspun::Channel.new(1)
      { pop: -> { one.pop }, push: -> { one.push(1) && one.push(2) } }.each do |name, call|
        sender = Thread.new do
          Thread.pass until one.num_waiting == 1
          Process.kill(:INT, Process.pid)
        end
        call.call
      rescue Interrupt
        sender.join
        p [name, one.num_waiting, one.size]
      end
    RUBY
  end

  def test_a_handler_may_push_what_the_interrupted_thread_waits_for
    assert_child "1\n", <<~RUBY
      one = Ringspun::Channel.new(1)
      trap(:INT) { one.try_push(1) }
      sender = Thread.new do
        Thread.pass until one.num_waiting == 1
        Process.kill(:INT, Process.pid)
      end
      p one.pop
      sender.join
    RUBY
  end

  def test_a_killed_thread_pushes_nothing
    one = channel.push(1)
    killed = plain { one.push(2) }
    until_waiting(one)
    killed.kill.join
    assert_equal [0, 1, nil], [one.num_waiting, one.pop, one.try_pop]
  end

  # Its strands never go on, and what they were given before the end is given back.
  def test_a_thread_that_leaves_its_machine_open
    assert_child "[[0, 1], [0, 1, nil]]\n", <<~RUBY
      one = Ringspun::Channel.new(3)
      ready, go = Thread::Queue.new, Thread::Queue.new
      thread = Thread.new do
        3.times { machine.spin { one.pop } && machine.yield }
        ready.push(true)
        go.pop
      end
      ready.pop
      2.times { |i| one.push(i) }
      before = [one.size, one.num_waiting]
      go.push(true)
      thread.join
      Thread.pass until one.num_waiting.zero? && one.size == 2
      p [before, Array.new(3) { one.try_pop }]
    RUBY
  end

  def test_a_thread_that_is_killed_while_its_root_waits
    one = channel
    thread = with_machine { one.pop }
    until_waiting(one)
    thread.kill.join
    assert_equal 0, one.num_waiting
    assert_equal 1, one.push(1).pop
  end

  def test_a_cancelled_strand_of_another_machine_gives_way
    one, ready = channel, Thread::Queue.new
    thread = with_machine do |machine|
      strand = machine.spin { one.pop }
      machine.yield
      machine.terminate(strand)
      error_of { strand.join }
      ready.push(true)
      one.pop
    end
    ready.pop
    one.push(:value)
    assert_equal :value, thread.value
  end

  # --- selectors ---

  def test_a_select_is_woken_by_other_threads
    channels = Array.new(3) { channel }
    thread = with_machine do
      Ringspun::Selector.new { |on| channels.each_with_index { |one, i| on.pop(one) { |value| [i, value] } } }
                        .then { |selector| Array.new(9) { selector.wait }.tap { selector.close } }
    end
    9.times { |i| channels[i % 3].push(i) }
    assert_equal Array.new(9) { |i| [i % 3, i] }, thread.value.sort_by(&:last)
  end

  def test_a_select_that_pushes_where_another_thread_makes_room
    full = channel.push(0)
    thread = with_machine { Ringspun.select { |on| on.push(full, 1) { :pushed } } }
    assert_equal [0, 1], [full.pop, full.pop]
    assert_equal :pushed, thread.value
  end

  def test_a_select_that_lost_has_taken_nothing
    one, two = channel, channel
    thread = with_machine { Ringspun.select(one, two) }
    one.push(1)
    assert_equal [one, 1], thread.value
    two.push(2)
    assert_equal 2, two.try_pop
  end

  def test_selectors_that_go_while_they_are_told
    one = channel(100)
    thread = with_machine { |machine| 100.times.count { Ringspun.select(one, timeout: 0)&.tap { machine.yield } } }
    100.times { |i| one.push(i) }
    assert_equal 100 - thread.value, one.size
  end

  # --- forks ---

  def test_a_child_has_a_copy_of_the_values_and_none_of_who_waits
    assert_child "[:child, 0, [1, 2], :selected]\n[:parent, [1, 2, 3]]\n", <<~RUBY
      one, other = Ringspun::Channel.new(5), Ringspun::Channel.new(5).push(1)
      selector = Ringspun::Selector.new { |on| on.pop(one) { :selected } }
      selector.wait(timeout: 0)
      thread = Thread.new { [one.pop, one.pop] }
      Thread.pass until one.num_waiting == 1
      strand = machine.spin { one.pop }
      machine.yield
      child = fork do
        waiting = one.num_waiting
        other.push(2)
        one.push(3)
        p [:child, waiting, [other.pop, other.pop], selector.wait]
        exit!(0)
      end
      machine.waitid(child)
      3.times { |i| one.push(i + 1) }
      p [:parent, [*thread.value, strand.await].sort]
      selector.close
    RUBY
  end
end
