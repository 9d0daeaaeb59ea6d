# frozen_string_literal: true

require "test_helper"
require "concurrently"
require "logger"
require "stringio"

class ConcurrentlyErrorsTest < Minitest::Test
  BROKEN = Concurrently::Proc.new { raise "broken" }

  def teardown
    Concurrently::Proc.error_log_output = nil
    super
  end

  def fail_once = BROKEN.call_detached.await_result(&:message)

  def test_by_default_errors_go_to_stderr
    answer = ruby_child("require 'concurrently'; concurrently { raise 'broken' }.await_result { nil }")
    # The gem's own words.
    text = "Concurrent proc exited with error!\nSource location: -e:1\nError: (RuntimeError) broken\nBacktrace: -e:1:in "
    assert_equal text, answer.err[0, text.size]
    assert_equal 1, answer.err.scan("Concurrent proc").size
  end

  def test_an_io_a_logger_or_nothing
    reader, writer = IO.pipe
    Concurrently::Proc.error_log_output = writer
    fail_once
    assert_match(/broken/, reader.read_nonblock(10_000))
    log = StringIO.new
    Concurrently::Proc.error_log_output = Logger.new(log)
    fail_once
    assert_match(/ERROR -- : .*broken/m, log.string)
    writes = Class.new { attr_reader :text and define_method(:write) { |text| @text = text } }.new
    Concurrently::Proc.error_log_output = writes
    fail_once
    assert_match(/broken/, writes.text)
    [nil, false].each do |nothing|
      Concurrently::Proc.error_log_output = nothing
      assert_equal ["", ""], capture_io { fail_once }
    end
    assert_equal :wait_readable, reader.read_nonblock(1, exception: false)
    assert_raises(Concurrently::Error) { Concurrently::Proc.error_log_output = 1 }
  ensure
    [reader, writer].each(&:close)
  end

  def test_the_message_can_be_another
    own = Class.new(Concurrently::Proc) { def self.default_error_log_message(failed, error) = "#{failed.arity}: #{error}" }
    log = StringIO.new
    Concurrently::Proc.error_log_output = log
    own.new { raise "broken" }.call_detached.await_result { nil }
    assert_equal "0: broken\n", log.string
    assert_match(/broken/, Concurrently::Proc.default_error_log_message(BROKEN, RuntimeError.new("broken")))
  end

  # A Ringspun::ConcurrentProc has settings of its own, from which these come until they are made.
  def test_what_is_set_here_is_not_set_for_all
    Concurrently::Proc.error_log_output = nil
    _, written = capture_io { Ringspun.concurrently { raise "ours" }.await_result { nil } }
    assert_match(/ours/, written)
  end

  def test_handlers_of_the_class_come_first
    Concurrently::Proc.error_log_output = nil
    order = []
    seen = nil
    failing = concurrent_proc { raise "broken" }
    of_proc = failing.on(:error) { |error| order << [:proc, error.message, self] }
    of_class = Concurrently::Proc.on(:error) { |error| order << [:class, error.message] and seen = self }
    failing.call_and_forget
    wait 0
    # A handler of a class runs as a method of the proc would, one of a proc where it was written.
    assert_equal [[:class, "broken"], [:proc, "broken", self]], order
    assert_same failing, seen
    [of_proc, of_class].each(&:cancel)
    failing.call_and_forget
    wait 0
    assert_equal 2, order.size
  end

  def test_events_of_ones_own
    made = concurrent_proc {}
    got = []
    made.on(:one, :two) { |*arguments| got << arguments }
    made.once_on(:two) { got << :once }
    assert_equal [true, true, false], [made.on?(:one), made.on?(:two), Concurrently::Proc.on?(:one)]
    assert_equal :triggered, made.trigger(:two, 1, 2)
    made.trigger(:two)
    made.trigger(:three)
    assert_equal [[1, 2], :once, []], got
  end

  def test_errors_of_every_form_reach_the_handlers_once
    Concurrently::Proc.error_log_output = nil
    failing = concurrent_proc { |turns| turns.times { wait 0 } && raise("broken") }
    count = 0
    failing.on(:error) { count += 1 }
    [0, 1].each do |turns|
      %i[call call_nonblock call_detached].each do |form|
        failing.public_send(form, turns).await_result
      rescue StandardError
        nil
      end
      failing.call_and_forget(turns)
      3.times { wait 0 }
    end
    assert_equal 8, count
  end

  def test_what_concludes_an_evaluation
    Concurrently::Proc.error_log_output = nil
    [StandardError, NotImplementedError, LoadError, SecurityError, SystemStackError].each do |kind|
      evaluation = concurrently { raise kind, "broken" }
      assert_instance_of kind, evaluation.await_result { |error| [error] }.first
      assert_operator Concurrently::Proc::Evaluation::RescueableError, :===, kind.new
    end
    refute_operator Concurrently::Proc::Evaluation::RescueableError, :===, Interrupt.new("")
  end

  def test_anything_else_leaves_through_the_wait_of_the_root
    [Exception, SystemExit, Interrupt].each do |kind|
      concurrently { raise kind, "out" }
      assert_instance_of kind, assert_raises(kind) { wait 1000 }
      assert_equal :again, concurrently { wait(0) && :again }.await_result
    end
  end

  def test_nothing_to_wait_for
    # By itself, for here other threads might still wake it.
    answer = ruby_child(<<~RUBY)
      require "concurrently"
      stuck = concurrently { await_resume! }
      [-> { await_resume! }, -> { stuck.await_result }].each do |wait|
        wait.call
      rescue Concurrently::Error => error
        puts error.message.lines.first
      end
      puts concurrently { wait(0) && "again" }.await_result
    RUBY
    text = "Infinitely running event loop detected: There are no evaluations scheduled and no IOs to await.\n"
    assert_equal [text * 2 + "again\n", "", true], [answer.out, answer.err, answer.status.success?]
  end

  def test_a_lock_that_its_owner_wants_again_is_another_matter
    mutex = Ringspun::Mutex.new
    refute_match(/event loop/, assert_raises(Ringspun::DeadlockError) { mutex.synchronize { mutex.lock } }.message)
  end
end
