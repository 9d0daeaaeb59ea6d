# frozen_string_literal: true

require "test_helper"
require "support/strands"
require "timeout"

# Thread#raise, Thread#kill and Timeout.timeout on a thread whose machine runs strands: who is hit, and what unwinds.
# The plain cases are in signal_test.rb.
class ThreadInterruptTest < Minitest::Test
  include Strands

  # A thread that runs the block with an array to write to; answers the thread and the array once the thread has said
  # that it is ready, by pushing to the queue.
  def interruptible
    seen = []
    ready = Thread::Queue.new
    thread = Thread.new do
      yield seen, ready
    ensure
      ready.close
      machine.close
    end
    thread.report_on_exception = false
    thread.value unless ready.pop # raises what went wrong
    [thread, seen]
  end

  def ensuring(seen, what)
    yield
  ensure
    seen << what
  end

  def test_raise_reaches_the_root_and_not_who_sleeps_by_chance
    thread, seen = interruptible do |seen, ready|
      others = Array.new(4) do
        machine.spin { ensuring(seen, :strand) { error_of { machine.sleep }.then { |error| seen << error.class } } }
      end
      machine.spin { ready << true }
      seen << error_of { machine.sleep }.class
      others.each { |strand| machine.terminate(strand) }
      others.each { |strand| error_of { strand.join } }
    end
    thread.raise(Failure)
    thread.join
    assert_equal [Failure, *[Ringspun::Cancelled, :strand] * 4], seen
  end

  def test_raise_ends_a_run
    thread, seen = interruptible do |seen, ready|
      Ringspun.run do |machine|
        3.times { machine.spin { ensuring(seen, :strand) { machine.sleep } } }
        machine.spin { ready << true }
        ensuring(seen, :block) { machine.sleep }
      end
    end
    thread.raise(Failure)
    assert_raises(Failure) { thread.join }
    assert_equal [:block, :strand, :strand, :strand], seen.sort
  end

  # What runs then is a strand, and it is hit; its error goes to who joins it.
  def test_raise_while_a_strand_computes
    thread, seen = interruptible do |seen, ready|
      Ringspun.run do |machine|
        strand = machine.spin do
          ready << true
          ensuring(seen, :strand) { loop { 1 + 1 } }
        end
        ensuring(seen, :block) { strand.join }
      end
    end
    thread.raise(Failure)
    assert_raises(Failure) { thread.join }
    assert_equal %i[strand block], seen
  end

  def test_raise_while_strands_switch_all_the_time
    thread, seen = interruptible do |seen, ready|
      Ringspun.run do |machine|
        3.times { machine.spin { ensuring(seen, :strand) { loop { machine.yield } } } }
        machine.spin { ready << true }
        ensuring(seen, :block) { machine.sleep }
      end
    end
    thread.raise(Interrupt)
    assert_raises(Interrupt) { thread.join }
    assert_equal [:block, :strand, :strand, :strand], seen.sort
  end

  def test_kill_ends_a_run
    thread, seen = interruptible do |seen, ready|
      Ringspun.run do |machine|
        3.times { machine.spin { ensuring(seen, :strand) { machine.sleep } } }
        machine.spin { ready << true }
        ensuring(seen, :block) { machine.sleep }
      end
      seen << :never
    end
    assert_same thread, thread.kill.join
    assert_equal [:block, :strand, :strand, :strand], seen.sort
  end

  def test_kill_while_a_strand_computes
    thread, seen = interruptible do |seen, ready|
      Ringspun.run do |machine|
        strand = machine.spin do
          ready << true
          ensuring(seen, :strand) { loop { 1 + 1 } }
        end
        ensuring(seen, :block) { strand.join }
      end
    end
    assert_same thread, thread.kill.join
    assert_equal [%i[strand block], false], [seen, thread.status]
  end

  def test_kill_during_a_read
    reader, writer = IO.pipe
    thread, seen = interruptible do |seen, ready|
      machine.spin { ready << true }
      ensuring(seen, :root) { machine.read(reader, +"") }
    end
    assert_same thread, thread.kill.join
    assert_equal [:root], seen
  ensure
    [reader, writer].each(&:close)
  end

  # --- Timeout.timeout, which is a Thread#raise ---

  def test_timeout_around_a_sleep_of_the_root
    seen = []
    assert_raises(Timeout::Error) { Timeout.timeout(0.01) { ensuring(seen, :root) { machine.sleep } } }
    assert_equal [:root], seen
  end

  def test_timeout_inside_a_strand_that_computes
    assert_equal Timeout::Error, machine.spin { error_of { Timeout.timeout(0.01) { loop { 1 + 1 } } }.class }.await
  end

  def test_timeout_inside_a_strand_that_does_not_expire
    assert_equal 5, machine.spin { Timeout.timeout(50) { machine.sleep(0.001).then { 5 } } }.await
  end

  # --- what comes while nothing can be raised is not lost ---

  # Ends the shielded wait of a strand when its thread has taken what was raised in it.
  def end_shield(strand, thread)
    Thread.pass while thread.pending_interrupt?
    strand.machine.schedule(strand)
  end

  def test_raise_during_a_shield_of_the_root_comes_at_its_end
    root = nil
    thread, seen = interruptible do |seen, ready|
      root = machine.running
      machine.spin { ready << true }
      seen << error_of { shielded { machine.park } }.class
      machine.sleep(0)
    end
    thread.raise(Failure)
    end_shield(root, thread)
    thread.join
    assert_equal [Failure], seen
  end

  def test_a_timeout_over_a_shield_is_raised_inside_of_the_timeout
    root, thread, test = machine.running, Thread.current, self
    thread.define_singleton_method(:raise) { |*error| super(*error).tap { test.end_shield(root, thread) } }
    assert_equal :inside, (Timeout.timeout(0.01) { error_of { shielded { machine.park } } && :inside }) # must pass
    machine.sleep(0.001)
  ensure
    thread.singleton_class.remove_method(:raise)
  end

  def shielded(&block) = machine.scope(shield: true, &block)

  # Caught by whoever runs the loop, which here is a strand that ends without another wait.
  def test_kill_caught_by_a_strand_that_does_not_wait_again
    strand = nil
    thread, seen = interruptible do |seen, ready|
      strand = machine.spin do
        machine.spin { ready << true }
        shielded { machine.park }
      end
      strand.await
      seen << :alive
    end
    thread.kill
    end_shield(strand, thread)
    thread.join
    assert_empty seen
  end

  # CRuby would unwind by a number in errinfo, which a scope that fails overwrites.
  def test_kill_during_a_shield_in_which_something_else_is_raised
    assert_child "joined\n", <<~RUBY
      root = nil
      thread = Thread.new do
        Thread.current.report_on_exception = false
        machine.scope(shield: true) do
          root = machine.running
          machine.park
          machine.scope { raise "x" } rescue nil
        end
        machine.sleep
        puts "lived on"
      end
      Thread.pass until root && thread.stop?
      thread.kill
      Thread.pass while thread.pending_interrupt?
      root.machine.schedule(root)
      begin
        thread.join
      rescue Ringspun::Cancelled
        puts "joined"
      end
    RUBY
  end

  def test_what_a_mask_keeps_for_the_next_wait_ends_a_sleep
    thread, seen = interruptible do |seen, ready|
      Thread.handle_interrupt(Failure => :on_blocking) do
        ready << true
        Thread.pass until Thread.pending_interrupt?
        machine.sleep
      end
    rescue Failure
      seen << :raised
    end
    thread.raise(Failure)
    thread.join
    assert_equal [:raised], seen
  end
end
