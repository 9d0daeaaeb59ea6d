# frozen_string_literal: true

require "test_helper"
require "concurrently"
require "socket"
require "tmpdir"

class ConcurrentlyEventLoopsTest < Minitest::Test
  def event_loop = Concurrently::EventLoop.current

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  # Its clock has begun not before the block did.
  def assert_set_back
    event_loop
    before = now
    yield
    lifetime = event_loop.lifetime
    assert_operator lifetime, :<=, now - before
  end

  def test_each_thread_has_its_own
    assert_same event_loop, concurrent_proc { Concurrently::EventLoop.current }.call
    refute_same event_loop, Thread.new { Concurrently::EventLoop.current }.value
  end

  def test_lifetime
    before = event_loop.lifetime
    wait 0.002
    assert_kind_of Float, before
    assert_operator event_loop.lifetime - before, :>=, 0.002
    assert_set_back { assert_same event_loop, event_loop.reinitialize! }
  end

  def test_reinitialize_ends_what_runs
    order = []
    scheduled = concurrently { order << :wrong }
    waiting = concurrent_proc do
      wait 1000
    ensure
      order << :ensure
    end.call_nonblock
    event_loop.reinitialize!
    assert_equal [:ensure], order
    [scheduled, waiting].each do |evaluation|
      assert_predicate evaluation, :concluded?
      assert_raises(Ringspun::TerminatedError) { evaluation.await_result }
    end
    assert_equal :again, concurrently { wait(0) && :again }.await_result
  end

  def test_reinitialize_leaves_descriptors_alone
    reader, writer = IO.pipe
    concurrent_proc { reader.await_readable }.call_nonblock
    event_loop.reinitialize!
    writer << "x"
    assert_equal "x", reader.await_read(1)
  ensure
    [reader, writer].each(&:close)
  end

  def test_reinitialize_inside_an_evaluation_sets_the_clock_back
    other = concurrently { await_resume! }
    assert_set_back { concurrently { event_loop.reinitialize! }.await_result }
    refute_predicate other, :concluded?
    other.conclude_to nil
    Ringspun.run { assert_same event_loop, event_loop.reinitialize! }
  end

  def test_of_another_thread_only_the_clock
    queue = Thread::Queue.new
    thread = Thread.new do
      queue << Concurrently::EventLoop.current
      concurrently { wait(0.01) && :result }.await_result
    ensure
      Ringspun::Machine.current.close
    end
    queue.pop.reinitialize!
    assert_equal :result, thread.value
  end

  def test_after_a_fork_nothing_has_to_be_done
    evaluation = concurrently { wait(0.001) && :parent }
    wait 0
    [-> {}, -> { Concurrently::EventLoop.current.reinitialize! }].each do |first|
      status = in_child do
        first.call
        raise unless concurrently { wait(0.001) && :child }.await_result == :child
      end
      assert_predicate status, :success?
    end
    assert_equal :parent, evaluation.await_result
  end

  def test_a_fork_inside_an_evaluation
    status = concurrent_proc do
      wait 0
      in_child do
        Concurrently::EventLoop.current.reinitialize!
        raise unless concurrently { wait(0.001) && :child }.await_result == :child
      end
    end.call
    assert_predicate status, :success?
  end

  # --- the order in a pass ---

  def test_what_is_added_in_a_pass_runs_in_the_next
    order = []
    concurrently do
      order << 1
      concurrently { order << 3 }
    end
    concurrently { order << 2 }
    wait 0
    assert_equal [1, 2], order.first(2)
    wait 0
    assert_equal [1, 2, 3], order
  end

  # All wait before any time passes.
  def test_timers_by_time_and_by_arrival
    order = []
    Ringspun::Simulation.run(faults: false) do
      evaluations = [3, 1, 2, 1].each_with_index.map do |time, index|
        concurrently do
          wait(time * 0.002)
          order << index
        end
      end
      evaluations.each(&:await_result)
    end
    assert_equal [1, 3, 2, 0], order
  end

  def test_wait_takes_any_number
    [0, -1, -Float::INFINITY, Rational(1, 1000), 0.001].each { |seconds| assert_equal true, wait(seconds) }
    evaluation = concurrently { wait Float::INFINITY }
    wait 0
    evaluation.conclude_to :end
    assert_raises(TypeError) { wait nil }
  end

  def test_streams
    ours, theirs = UNIXSocket.pair
    reading = ours.concurrently_read(5)
    assert_instance_of Concurrently::Proc::Evaluation, reading
    writing = theirs.concurrently_write("hello")
    assert_instance_of Concurrently::Proc::Evaluation, writing
    assert_equal ["hello", 5], [reading, writing].map(&:await_result)
    buffer = +""
    theirs.await_written("world")
    assert_same buffer, ours.concurrently_read(5, buffer).await_result
    assert_equal "world", buffer
  ensure
    [ours, theirs].each(&:close)
  end

  def test_the_procs_of_the_streams
    Concurrently::Proc.error_log_output = nil
    ours, theirs = UNIXSocket.pair
    assert_equal 5, IO::WRITE_PROC.call(theirs, "hello")
    assert_equal "hello", IO::READ_PROC.call(ours, 5)
    assert_instance_of Concurrently::Proc, IO::READ_PROC
    ended = 0
    handler = IO::READ_PROC.on(:error) { ended += 1 }
    theirs.close
    ours.concurrently_read(1).await_result { nil }
    assert_equal 1, ended
  ensure
    handler.cancel
    [ours, theirs].each(&:close)
  end

  def test_starts_and_resumes_go_before_every_wait_for_a_turn
    order = []
    concurrent_proc { wait(0) && order << :waited }.call_nonblock
    resumed = concurrent_proc { await_resume! && order << :resumed }.call_nonblock
    concurrently { order << :start }
    resumed.resume!(true)
    wait 0
    assert_equal %i[start resumed waited], order
  end

  # Also a machine that was there before.
  def test_the_order_is_that_of_all_machines
    answer = ruby_child(<<~RUBY)
      require "ringspun/core_ext"
      order = []
      ready, go = Array.new(2) { Thread::Queue.new }
      elsewhere = Thread.new do
        wait 0
        ready << true
        go.pop
        concurrent_proc { wait(0) && order << :waited }.call_nonblock
        concurrently { order << :start }
        wait 0
      end
      wait 0
      ready.pop
      require "concurrently"
      go << true
      elsewhere.join
      [-> {}, -> { Ringspun::Machine.current.close }].each do |before|
        before.call
        concurrent_proc { wait(0) && order << :waited }.call_nonblock
        concurrently { order << :start }
        wait 0
      end
      p order
    RUBY
    assert_equal ["#{(%i[start waited] * 3).inspect}\n", ""], [answer.out, answer.err]
  end

  def test_a_server
    Dir.mktmpdir do |folder|
      server = UNIXServer.new(File.join(folder, "socket"))
      accepting = concurrent_proc do
        loop do
          connection = begin
            server.accept_nonblock
          rescue IO::WaitReadable
            server.await_readable
            retry
          end
          concurrently { connection.await_written(connection.await_read(10).reverse) && connection.close }
        end
      end.call_nonblock
      answers = %w[one two].map do |word|
        concurrently { UNIXSocket.open(server.path) { |socket| socket.await_written(word) && socket.await_read(10) } }
      end
      assert_equal %w[eno owt], answers.map(&:await_result)
      accepting.conclude_to :stopped
      server.close
      wait 0 # the kernel hears that nobody waits for the server any more
    end
  end
end
