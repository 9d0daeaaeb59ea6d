# frozen_string_literal: true

require "test_helper"
require "support/async"

# What Async gives its tasks to wait for each other, and its time limits: in a run as in its own reactor.
class StockAsyncToolsTest < Minitest::Test
  include StockAsync

  # --- what waits ---

  def test_semaphore
    assert_as_in_async([2, (0...6).to_a]) do |task|
      semaphore, most, inside, ended = Async::Semaphore.new(2), 0, 0, []
      tasks = Array.new(6) do |i|
        semaphore.async(parent: task) do
          most = [most, inside += 1].max
          sleep(0.000_1)
          inside -= 1
          ended << i
        end
      end
      tasks.each(&:wait)
      [most, ended.sort]
    end
  end

  def test_a_semaphore_whose_waiter_is_stopped
    assert_as_in_async([[:third], 0]) do |task|
      semaphore, got = Async::Semaphore.new(1), []
      semaphore.acquire
      second, third = %i[second third].map { |name| task.async { semaphore.acquire { got << name } } }
      second.stop
      semaphore.release
      third.wait
      [got, semaphore.count]
    end
  end

  def test_barrier
    assert_as_in_async([3, [0, 1, 2], :cancelled]) do |task|
      barrier, ended = Async::Barrier.new, []
      3.times { |i| barrier.async { sleep(0.000_1).then { ended << i } } }
      count = barrier.wait
      waiting = barrier.async { sleep }
      barrier.stop
      task.yield
      [count, ended.sort, waiting.status]
    end
  end

  def test_barrier_block
    assert_equal [1, 2], Ringspun.run { [].tap { |got| Barrier { |barrier| [1, 2].each { |i| barrier.async { got << i } } } } }
  end

  def test_queue_and_limited_queue
    [Async::Queue, Async::LimitedQueue].each do |queue_class|
      assert_as_in_async([0, 1, 2]) do |task|
        queue = queue_class.new
        task.async { 3.times { |i| queue.push(i) } && queue.close }
        [].tap { |items| queue.each { |item| items << item } }
      end
    end
  end

  def test_condition_and_notification
    [Async::Condition, Async::Notification].each do |condition_class|
      assert_as_in_async([:told] * 3) do |task|
        condition = condition_class.new
        waiting = Array.new(3) { task.async { condition.wait } }
        condition.signal(:told)
        waiting.map(&:wait)
      end
    end
  end

  def test_variable_and_promise
    assert_as_in_async([1, 2]) do |task|
      variable, promise = Async::Variable.new, Async::Promise.new
      waiting = [task.async { variable.wait }, task.async { promise.wait }]
      variable.resolve(1)
      promise.resolve(2)
      waiting.map(&:wait)
    end
  end

  def test_a_promise_that_a_thread_keeps
    Ringspun.run do
      promise = Async::Promise.new
      waiting = parked { Sync { promise.wait } }
      Thread.new { promise.resolve(:kept) }.join
      assert_equal :kept, waiting.await
    end
  end

  # A protocol that writes a request under a semaphore notes only afterwards that it is sent; the answer must not be read before.
  def test_who_resumes_goes_on_before_those_whom_io_wakes
    orders = Ringspun.run do
      Sync do |task|
        reader, writer = IO.pipe
        Array.new(5) do
          order = []
          resumed = task.async { Fiber.scheduler.transfer.then { order << :resumed } }
          reading = task.async { reader.readpartial(9) && order << :reader }
          machine.yield # a strand that has given way may be passed
          writer.write("x")
          compute
          Fiber.scheduler.resume(resumed.fiber)
          order << :resumer
          reading.wait
          order
        end
      ensure
        [reader, writer].each(&:close)
      end
    end
    assert_equal [%i[resumed resumer reader]], orders.uniq
  end

  # So long that the next look for IO is due.
  def compute
    ends = machine.now + 0.03
    nil while machine.now < ends
  end

  def test_yield_and_transfer
    assert_as_in_async(%i[first second first second]) do |task|
      order = []
      %i[first second].map { |name| task.async { (order << name) && (task.yield || order << name) } }.each(&:wait)
      order
    end
    Ringspun.run do
      Sync do |task|
        fiber = nil
        child = task.async { (fiber = Fiber.current) && Fiber.scheduler.transfer && :resumed }
        Fiber.scheduler.resume(fiber, true)
        assert_equal :resumed, child.wait
        Fiber.scheduler.push(Fiber.current)
        assert_nil Fiber.scheduler.transfer
      end
    end
  end

  # --- time ---

  def test_with_timeout
    assert_as_in_async(["Async::TimeoutError", 1, "Strands::Failure", "too long"]) do |task|
      own = error_of { task.with_timeout(0.000_1, Failure, "too long") { sleep } }
      [error_of { task.with_timeout(0.000_1) { sleep } }.class.name, task.with_timeout(60) { 1 }, own.class.name, own.message]
    end
  end

  # Once: what the block does on its way out may wait.
  def test_with_timeout_is_raised_at_the_wait
    assert_as_in_async([:rescued, :inner, :outer]) do |task|
      order = []
      task.with_timeout(60) do
        task.with_timeout(0.000_1) { sleep }
      rescue Async::TimeoutError
        sleep(0.000_1)
        order << :rescued
      end
      error_of { task.with_timeout(0.000_1) { task.with_timeout(60) { sleep } } } && order << :inner
      task.with_timeout(0) { order << :outer }
    end
  end

  def test_a_timeout_that_is_moved
    assert_as_in_async([1, true, true, "Async::TimeoutError"]) do |task|
      kept = task.with_timeout(0.001) { |timeout| (timeout.duration = 60) && sleep(0.002) && 1 }
      cancelled = task.with_timeout(0.001) { |timeout| timeout.cancel! || (sleep(0.002) && timeout.cancelled?) }
      near = task.with_timeout(60) { |timeout| timeout.adjust(-1) && timeout.duration.between?(1, 59) }
      [kept, cancelled, near, error_of { task.with_timeout(60) { |timeout| (timeout.duration = 0.000_1) && sleep } }.class.name]
    end
  end

  def test_load
    Ringspun.run { Sync { |task| assert_includes 0.0..1.0, task.reactor.load } }
  end
end
