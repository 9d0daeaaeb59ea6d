# frozen_string_literal: true

require "test_helper"
require "concurrently"

class ConcurrentlyDebuggingTest < Minitest::Test
  # As much of a Logger as is needed.
  class Lines < Array
    def debug(line) = push(line)
  end

  def setup
    super
    Concurrently::Proc.error_log_output = nil
    @lines = Lines.new
    assert_equal true, Concurrently::Debug.enable(@lines)
  end

  def teardown
    Concurrently::Debug.enable(nil)
    super
  end

  # The words, with a letter for each evaluation.
  def words
    names = {}
    @lines.map do |line|
      word, id = line.match(/\A[ .'|>-]+([A-Z]+) (\w+) (?:from )?#{Regexp.escape(__FILE__)}:\d+/).captures
      [word, names[id] ||= (97 + names.size).chr].join(" ")
    end
  end

  def test_an_evaluation_from_its_begin_to_its_end
    evaluation = concurrently { wait(0) && :result }
    assert_equal :result, evaluation.await_result
    assert_equal ["BEGIN a", "SUSPEND a", "RESUME a", "END a"], words
    id = evaluation.__id__.to_s(36)
    assert_equal ".---- BEGIN #{id} #{__FILE__}:#{__LINE__ - 4}", @lines.first
    assert_equal "'-----> END #{id} #{__FILE__}:#{__LINE__ - 5}", @lines.last
  end

  def test_every_form
    made = concurrent_proc { |a, key:, &block| [a, key, block.call] }
    assert_equal [1, 2, 3], made.call(1, key: 2) { 3 }
    assert_equal [1, 2, 3], made.call_nonblock(1, key: 2) { 3 }
    assert_equal [1, 2, 3], made.call_detached(1, key: 2) { 3 }.await_result
    made.call_and_forget(1, key: 2) { 3 }
    wait 0
    assert_equal %w[a b c d].flat_map { |name| ["BEGIN #{name}", "END #{name}"] }, words
  end

  def test_an_evaluation_that_calls_another
    concurrent_proc { concurrent_proc { wait 0 }.call }.call
    # What waits for a result is another thing than what waits for the call.
    assert_equal ["BEGIN a", "SUSPEND a", "BEGIN b", "SUSPEND b", "RESUME a", "SUSPEND a", "RESUME b", "END b", "RESUME a",
                  "END a"], words
    @lines.clear
    concurrent_proc { concurrent_proc { 2.times { wait 0 } }[] }.call_detached.await_result
    assert_equal ["BEGIN a", "SUSPEND a", "BEGIN b", "SUSPEND b", "RESUME a", "SUSPEND a", "RESUME b", "SUSPEND b", "RESUME b",
                  "END b", "RESUME a", "END a"], words
    @lines.clear
    concurrent_proc { concurrent_proc { 1 }.call }.call
    assert_equal ["BEGIN a", "SUSPEND a", "BEGIN b", "END b", "RESUME a", "END a"], words
  end

  def test_cancel_error_and_schedule
    evaluation = concurrent_proc { await_resume! }.call_nonblock
    concurrent_proc { evaluation.resume! }.call
    evaluation.await_result
    assert_equal ["BEGIN a", "SUSPEND a", "BEGIN b", "SCHEDULE a", "END b", "RESUME a", "END a"], words
    assert(@lines[3].start_with?("|  SCHEDULE "))
    @lines.clear
    concurrent_proc { wait 1000 }.call_nonblock.conclude_to nil
    concurrently { raise "broken" }.await_result { nil }
    assert_equal ["BEGIN a", "SUSPEND a", "RESUME a", "CANCEL a", "BEGIN b", "ERROR b"], words
  end

  def test_a_limit_of_nil
    reader, writer = IO.pipe
    writer << "x"
    assert_equal [true, true, 1], [reader.await_readable(nil), writer.await_writable(nil), concurrently { 1 }.await_result(nil)]
  ensure
    [reader, writer].each(&:close)
  end

  def test_who_waits_for_what_somebody_concludes_is_scheduled
    evaluation = concurrently { await_resume! }
    waiters = [concurrently { evaluation.await_result }, concurrently { await_fastest(evaluation, evaluation) }]
    wait 0
    concurrently { evaluation.await_result(within: 0, timeout_result: nil) }.await_result
    @lines.clear
    concurrent_proc { evaluation.conclude_to 1 }.call
    waiters.each(&:await_result)
    assert_equal ["BEGIN a", "SUSPEND a", "RESUME b", "CANCEL b", "RESUME a", "SCHEDULE c", "SCHEDULE d", "END a",
                  "RESUME c", "END c", "RESUME d", "END d"], words
    assert_equal waiters.map { |each| each.__id__.to_s(36) }, @lines.grep(/SCHEDULE/).map { |line| line.split[2] }
  end

  def test_one_that_concludes_itself_does_not_wait
    evaluation = concurrently { wait(0).then { Concurrently::Evaluation.current.conclude_to 1 } }
    waiter = concurrently { evaluation.await_result }
    waiter.await_result
    assert_equal ["BEGIN a", "SUSPEND a", "BEGIN b", "SUSPEND b", "RESUME a", "SCHEDULE b", "END a", "RESUME b", "END b"], words
    @lines.clear
    concurrent_proc { assert_raises(Concurrently::Error) { evaluation.conclude_to 2 } && nil }.call
    assert_equal ["BEGIN a", "END a"], words
  end

  def test_every_wait_is_logged_and_what_does_not_wait_is_not
    reader, writer = IO.pipe
    writer << "x"
    done = concurrently { :done }
    done.await_result
    @lines.clear
    concurrent_proc do
      reader.await_readable
      writer.await_writable
      reader.await_read(1)
      done.await_result
      await_fastest(done, done)
      await_fastest(concurrently { wait(0.001) }, concurrently { await_resume!(within: 0, timeout_result: 1) })
      wait 0.002
    end.call
    assert_equal 4, words.count("SUSPEND a")
    assert_equal 4, words.count("RESUME a")
  ensure
    [reader, writer].each(&:close)
  end

  def test_results_are_what_they_are_without
    evaluation = concurrent_proc { wait(0) && raise("broken") }.call_nonblock
    assert_equal "broken", evaluation.await_result(&:message)
    assert_raises(RuntimeError) { evaluation.await_result }
    waiting = concurrently { await_resume! }
    assert_raises(Concurrently::Evaluation::TimeoutError) { waiting.await_result(within: 0) }
    assert_equal :late, waiting.await_result(within: 0, timeout_result: :late)
    waiting.conclude_to nil
  end

  # A limit in braces, as programs for old Rubies pass it on.
  def test_every_form_of_await_fastest
    waiting = Array.new(2) { concurrent_proc { await_resume! }.call_nonblock }
    limit = { within: 0, timeout_result: :late }
    assert_equal :late, concurrent_proc { await_fastest(*waiting, limit) }.call
    assert_equal :late, concurrent_proc { await_fastest(*waiting, **limit) }.call
    waiting.first.conclude_to 1
    assert_same waiting.first, await_fastest(*waiting, limit)
    [[], [waiting.last], [waiting.last, limit], [waiting.last, 1]].each do |wrong|
      assert_raises(Ringspun::UsageError) { await_fastest(*wrong) }
    end
    waiting.last.conclude_to 1
    assert_operator words.count { |line| line.start_with?("SUSPEND") }, :>=, 4
  end

  def test_a_filter
    Concurrently::Debug.enable(@lines, ["no/such/place"])
    concurrently { wait 0 }.await_result
    assert_empty @lines
    Concurrently::Debug.enable(@lines, ["no/such/place", File.basename(__FILE__)])
    concurrently { wait 0 }.await_result
    assert_equal ["BEGIN a", "SUSPEND a", "RESUME a", "END a"], words
    @lines.clear
    Concurrently::Debug.enable(@lines, ["runtime/lib/concurrently"]) # where the procs of concurrently_read stand
    reader, writer = IO.pipe
    writer.concurrently_write("x").await_result
    assert_equal 2, @lines.size
  ensure
    [reader, writer].compact.each(&:close)
  end

  def test_nothing_when_it_is_off
    Concurrently::Debug.enable(nil)
    concurrently { wait 0 }.await_result
    assert_empty @lines
  end

  def test_procs_of_ringspun_are_not_logged
    assert_equal 1, Ringspun.concurrently { 1 }.await_result
    assert_empty @lines
  end
end
