# frozen_string_literal: true

require "test_helper"
require "support/strands"
require "logger"
require "stringio"

# Ringspun::Inspector.watch: it tells of strands that hold the thread.
class InspectorWatchTest < Minitest::Test
  include Strands

  LIMIT = 0.01

  def inspector = Ringspun::Inspector

  def watching(to, limit: LIMIT)
    watch = inspector.watch(limit:, to:)
    yield watch
  ensure
    watch&.stop
  end

  def told = @told ||= Thread::Queue.new

  def tell = ->(stall) { told << stall }

  # Holds the thread until that many stalls have been told.
  def hold(count = 1) = (nil until told.size >= count)

  def busy_for(seconds)
    done = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    nil until Process.clock_gettime(Process::CLOCK_MONOTONIC) > done
  end

  def test_a_strand_that_holds_the_thread
    strand = machine.spin { hold }
    watching(tell) { strand.join }
    stall = told.pop
    assert_same strand, stall.strand
    assert_operator stall.seconds, :>=, LIMIT
    assert_includes stall.backtrace.join("\n"), "#{__FILE__}:#{method(:hold).source_location[1]}"
    assert stall.lasts
    assert_match(/\Aringspun: #<Ringspun::Strand:0x\h+ \w+> has held the thread for \d+\.\d{3} s, and is at\n    \S/, stall.to_s)
  end

  def test_the_block_of_a_run_is_a_strand_too
    watching(tell) { Ringspun.run { hold } }
    assert_includes told.pop.backtrace.join, "hold"
  end

  def test_one_stall_is_told_once_and_the_next_again
    watching(tell) do
      machine.spin { hold.then { busy_for(10 * LIMIT) } }.join
      # More than one only where the turn was interrupted by others, which is none here.
      assert_equal 1, told.size
      machine.spin { hold(2) }.join
    end
    refute_same told.pop.strand, told.pop.strand
  end

  def test_a_machine_that_sleeps_is_no_stall
    limit = 0.3
    watching(tell, limit:) do
      machine.spin { machine.sleep(3 * limit) }.join
      assert_empty told
      machine.spin { hold }.join
    end
  end

  # It holds up nobody.
  def test_a_root_alone_is_no_stall
    watching(tell) do
      busy_for(10 * LIMIT)
      assert_empty told
      strand = machine.spin { hold }
      strand.join
      assert_same strand, told.pop.strand
    end
  end

  def test_the_root_is_one_while_it_has_strands
    strand = parked { machine.park }
    watching(tell) { hold }
    assert_same machine.running, told.pop.strand
    machine.schedule(strand)
    strand.join
  end

  # The look needs no GVL. What the call returns goes into the next wait, so that there is no time to look in between.
  def test_a_call_into_c_that_holds_the_gvl
    many = "x" * (64 << 20)
    strand = machine.spin { machine.sleep(many.sum * 1e-18) while told.empty? }
    watching(tell, limit: 0.02) { strand.join }
    assert_same strand, told.pop.strand
  end

  def test_what_a_stall_says
    strand = machine.spin {}
    over = inspector::Stall.new(strand, 1.5, ["a.rb:1"], false)
    assert_equal "ringspun: #{strand.inspect} held the thread for 1.500 s, and has come to\n    a.rb:1", over.to_s
    ended = inspector::Stall.new(nil, 1.5, [], false)
    assert_equal "ringspun: a strand that has ended held the thread for 1.500 s", ended.to_s
    strand.join
    machine.locate = true
    strand = machine.spin {}
    assert_includes inspector::Stall.new(strand, 1.5, [], true).to_s, "#{strand.inspect} spun at #{__FILE__}:#{__LINE__ - 1}:"
    strand.join
  ensure
    machine.locate = false
  end

  # --- to whom ---

  def test_to_a_logger
    log = StringIO.new
    strand = machine.spin { nil until log.string.include?("has held") }
    watching(Logger.new(log)) { strand.join }
    assert_match(/\AW, .*WARN -- : ringspun: #<Ringspun::Strand/, log.string)
  end

  def test_to_an_io
    log = StringIO.new
    strand = machine.spin { nil until log.string.end_with?("\n") }
    watching(log) { strand.join }
    assert_match(/\Aringspun: #<Ringspun::Strand.*\n\z/m, log.string)
  end

  def test_to_stderr_unless_told_otherwise
    out, err = capture_io do
      watch = inspector.watch(limit: LIMIT)
      machine.spin { nil until $stderr.string.end_with?("\n") }.join
      watch.stop
    end
    assert_equal "", out
    assert_match(/\Aringspun: #<Ringspun::Strand/, err)
  end

  def test_one_that_raises_is_reported_and_asked_again
    _, err = capture_io do
      watching(->(stall) { (told << stall) && raise("no room") }) { |watch| 2.times { |i| hold_in_strand(i + 1, watch) } }
    end
    assert_equal 2, err.scan(/could not be told as asked for: .*no room/).size
    assert_equal 2, told.size
  end

  def hold_in_strand(count, watch)
    machine.spin { hold(count) }.join
    refute_predicate watch, :stopped?
  end

  # --- its end ---

  def test_stop
    watch = inspector.watch
    assert_equal [0.1, false], [watch.limit, watch.stopped?]
    assert_nil watch.stop
    assert_predicate watch, :stopped?
    assert_nil watch.stop
  end

  def test_it_can_stop_itself
    watch = nil
    watch = inspector.watch(limit: LIMIT, to: ->(stall) { watch.stop && (told << stall) || told << stall })
    machine.spin { hold }.join
    Thread.pass until watch.stopped?
    assert_equal 1, told.size
  end

  def test_from_a_strand_under_the_scheduler
    Ringspun.run do
      watch = inspector.watch(limit: 30)
      watch.stop
      assert_predicate watch, :stopped?
    end
  end

  # At once, however long its limit.
  def test_it_ends_with_its_machine
    watch = on_thread { inspector.watch(limit: 1_000) }
    Thread.pass until watch.stopped?
    assert_nil watch.stop
  end

  def test_it_ends_with_the_thread_of_a_machine_that_nobody_closes
    assert_child "true\n", <<~RUBY
      watch = Thread.new { Ringspun::Inspector.watch(limit: 0.01) }.value
      Thread.pass until watch.stopped?
      p watch.stopped?
    RUBY
  end

  def test_from_another_thread
    mine = machine
    stalled = []
    strand = machine.spin { nil until stalled.include?(mine.running) } # the root may stall before, as it waits for the thread
    watch = Thread.new { inspector.new(mine).watch(limit: LIMIT, to: ->(stall) { stalled << stall.strand }) }.value
    strand.join
    watch.stop
    assert_includes stalled, strand
  end

  def test_a_forked_child_has_none
    watch = inspector.watch(limit: LIMIT, to: tell)
    status = in_child do
      watch.stopped? && watch.stop.nil? or raise "the watch has come along"
      own = inspector.watch(limit: LIMIT, to: tell)
      machine.spin { hold }.join
      own.stop
      machine.close
    end
    watch.stop
    assert_predicate status, :success?
  end

  # It will never wake anybody.
  def test_it_is_no_hope_in_a_deadlock
    assert_child "DeadlockError\n", <<~RUBY
      Ringspun::Inspector.watch
      begin
        machine.park
      rescue Ringspun::DeadlockError
        puts "DeadlockError"
      end
    RUBY
  end

  def test_whom_it_tells_may_wake_a_strand
    assert_child "told\n", <<~RUBY
      mine = machine
      waiting = machine.spin { machine.park }
      Ringspun::Inspector.watch(limit: 0.01, to: ->(_) { @told = true and sleep(0.05) and mine.schedule(waiting, "told") })
      machine.spin { nil until @told }.join
      puts waiting.await
    RUBY
  end

  def test_who_waits_for_its_end_is_no_deadlock
    assert_child "fine\n", <<~RUBY
      Ringspun.run { 50.times { Ringspun::Inspector.watch.stop } }
      puts "fine"
    RUBY
  end

  # --- bad input ---

  def test_limits
    [0, -1, nil, "1", 1i, Float::NAN, Float::INFINITY].each do |limit|
      assert_match(/limit: must be a positive number/, assert_raises(Ringspun::UsageError) { inspector.watch(limit:) }.message)
    end
    inspector.watch(limit: 1r).stop
  end

  def test_listeners
    error = assert_raises(Ringspun::UsageError) { inspector.watch(to: 7) }
    assert_match(/to: must be a Logger, an IO, or answer to #call, got 7/, error.message)
  end

  def test_a_closed_machine
    closed = on_thread { machine }
    assert_match(/closed/, assert_raises(Ringspun::UsageError) { inspector.new(closed).watch }.message)
  end
end
