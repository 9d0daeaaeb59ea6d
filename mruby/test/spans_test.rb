# frozen_string_literal: true

# Every method that takes a span of time reads it in the same way, see runtime/test/machine/spans_test.rb: a limit that has passed
# is a limit, and a program's own kind of span is one.
class SpansTest < Minitest::Test
  include Strands

  # The least that a span of time is.
  class Span
    def initialize(value)
      @value = value
    end

    def divmod(divisor) = @value.divmod(divisor)
  end

  PASSED = [-1, -0.25, -1.0 / 0, Span.new(0), Span.new(-2), Span.new(-0.5)].freeze
  WRONG = ["1", :one, 0.0 / 0, [1], Object.new].freeze

  # What waits forever, unless its limit has passed.
  LIMITS = {
    sleep: ->(test, span) { test.machine.sleep(span) },
    wait: ->(_, span) { Ringspun.wait(span) },
    kernel_wait: ->(test, span) { test.__send__(:wait, span) },
    timeout: ->(test, span) { test.machine.timeout(span) { test.machine.sleep(100) } },
    module_timeout: ->(test, span) { Ringspun.timeout(span) { test.machine.sleep(100) } },
    scope: ->(test, span) { test.machine.scope(deadline: span) { test.machine.sleep(100) } },
    shield: ->(test, span) { Ringspun.shield(deadline: span) { test.machine.sleep(100) } },
    await_resume: ->(test, span) { test.__send__(:await_resume!, within: span) },
    await_result: ->(test, span) { test.endless.await_result(within: span) },
    await_fastest: ->(test, span) { test.__send__(:await_fastest, test.endless, test.endless, within: span) },
    await_readable: ->(test, span) { test.pipe.first.await_readable(within: span) },
    mutex: ->(test, span) { test.locked_mutex.lock(timeout: span) },
    semaphore: ->(_, span) { Ringspun::Semaphore.new(1).tap { |semaphore| semaphore.acquire }.acquire(timeout: span) },
    condition: ->(_, span) { Ringspun::Condition.new.wait(timeout: span) },
    pop: ->(_, span) { Ringspun::Queue.new.pop(timeout: span) },
    push: ->(_, span) { Ringspun::SizedQueue.new(1).tap { |queue| queue.push(1) }.push(2, timeout: span) }
  }.freeze

  LIMITS.each do |name, row|
    define_method("test_limit_#{name}") do
      expected = outcome(row, 0)
      PASSED.each { |span| assert_equal expected, outcome(row, span), span.inspect }
      WRONG.each { |span| assert_includes [Ringspun::UsageError, TypeError], outcome(row, span), span.inspect }
    end
  end

  # Which argument it was.
  NAMES = {
    sleep: "sleep", timeout: "timeout", scope: "deadline", shield: "deadline", await_resume: "within", await_result: "within",
    await_fastest: "within", await_readable: "within", mutex: "timeout", semaphore: "timeout", condition: "timeout",
    pop: "timeout", push: "timeout"
  }.freeze

  NAMES.each do |name, argument|
    define_method("test_an_error_names_the_argument_of_#{name}") do
      assert_equal "#{argument}: expected a number of seconds, got \"1\"", message_of(LIMITS[name], "1")
    end
  end

  def test_a_span_of_a_programs_own_is_waited_for
    Ringspun::Simulation.run(faults: false) do
      before = machine.now
      Ringspun.wait(Span.new(1.5))
      assert_equal 1.5, (machine.now - before).round(3)
    end
  end

  def endless = keep(Ringspun.concurrent_proc { Ringspun.wait(1_000) }.call_detached) { |one| one.conclude_to(nil) }
  def pipe = IO.pipe.each { |io| keep(io) { |one| one.close } }

  def locked_mutex
    mutex = Ringspun::Mutex.new
    mutex.lock
    keep(mutex) { |one| one.unlock }
    Class.new do
      define_method(:lock) { |timeout:| Ringspun.machine.spin { mutex.lock(timeout: timeout) }.await }
    end.new
  end

  private

  def keep(object, &close)
    @opened << [object, close]
    object
  end

  # The value in an Array, or the class of the error.
  def outcome(row, span)
    [tidily { row.call(self, span) }]
  rescue Ringspun::Error, TypeError => error
    error.class
  end

  def message_of(row, span)
    assert_raises(Ringspun::UsageError) { tidily { row.call(self, span) } }.message
  end

  def tidily
    @opened = []
    yield
  ensure
    @opened.each { |object, close| close.call(object) }
  end
end
