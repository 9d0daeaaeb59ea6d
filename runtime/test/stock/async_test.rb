# frozen_string_literal: true

require "test_helper"
require "support/async"
require "timeout"

# The gem async inside a run, by the bridge: what its own reactor does, and what becomes of cancellation on either side.
class StockAsyncTest < Minitest::Test
  include StockAsync

  # --- blocks ---

  def test_sync_answers_what_its_block_does
    assert_as_in_async(7) { |task| Sync { |inner| inner.equal?(task) ? 7 : 8 } }
    assert_equal [1, nil], Ringspun.run { [Sync { 1 }, Sync {}] }
  end

  def test_sync_waits_while_others_run
    queue = Thread::Queue.new
    Ringspun.run do
      waiting = parked { Sync { queue.pop } }
      queue << :item
      assert_equal :item, waiting.await
    end
  end

  def test_async_begins_at_once_and_goes_on_beside_its_caller
    assert_as_in_async(%i[begun caller ended]) do |task|
      order, queue = [], Thread::Queue.new
      child = task.async { order << :begun and queue.pop and order << :ended }
      order << :caller
      queue << 1
      child.wait
    end
  end

  def test_a_run_waits_for_its_tasks
    ended = []
    Ringspun.run do
      Async { |task| task.async { sleep(0.002).then { ended << :grandchild } } and sleep(0.001) and ended << :child }
      machine.spin { Async { sleep(0.001).then { ended << :of_a_strand } } }
    end
    assert_equal %i[child grandchild of_a_strand], ended.sort
  end

  def test_arguments_and_results
    assert_as_in_async([[1, 2], :completed, true]) do |task|
      child = task.async(1, 2) { |_task, *arguments| arguments }
      [child.wait, child.status, child.finished?]
    end
  end

  def test_a_block_in_the_middle_of_an_enumerator
    Ringspun.run do
      items = Enumerator.new { |out| 3.times { |i| out << Sync { sleep(0.000_1).then { i } } } }
      assert_equal [0, 1, 2], Array.new(3) { items.next }
    end
  end

  def test_fiber_schedule_inside_a_task_makes_a_task
    assert_as_in_async([true, true]) do |task|
      seen = Thread::Queue.new
      Fiber.schedule { seen << Async::Task.current.parent.equal?(task) && sleep(0.000_1) && seen << true }
      [seen.pop, seen.pop]
    end
    Ringspun.run { Fiber.schedule { assert_nil Async::Task.current? } }
  end

  def test_storage_is_inherited_and_locals_are_not
    assert_as_in_async([1, nil]) do |task|
      Fiber[:stored] = 1
      Thread.current[:local] = 2
      task.async { [Fiber[:stored], Thread.current[:local]] }.wait
    end
  end

  def test_thousands_of_tasks
    Ringspun.run do
      sum = Sync { |task| Array.new(2_000) { |i| task.async { sleep(0.000_1).then { i } } }.sum(&:wait) }
      assert_equal 1_999_000, sum
    end
  end

  def test_on_a_simulated_machine
    result = simulate { Sync { |task| Array.new(3) { |i| task.async { sleep(1000 * i) } }.each(&:wait) && task.reactor.load } }
    assert_in_delta 2000, result.elapsed, 1
    assert_equal 0.0, result.value
  end

  def test_without_a_run
    order, queue = [], Thread::Queue.new
    Thread.new do
      Fiber.set_scheduler(Ringspun::Scheduler.new)
      Async(transient: true) do
        sleep
      ensure
        order << :transient
      end
      Async { order << queue.pop }
      order << Sync { sleep(0.000_1).then { :sync } }
      queue << :task
    end.join
    assert_equal %i[sync task transient], order
  end

  # --- errors ---

  def test_errors_reach_who_waits
    assert_as_in_async do |task|
      child = task.async(finished: false) { sleep(0.000_1) && raise(Failure, "of a child") }
      [error_of { child.wait }.message, child.status]
    end
    Ringspun.run { assert_raises(Failure) { Sync { sleep(0.000_1) && raise(Failure) } } }
    Ringspun.run { assert_raises(Failure) { Sync { raise Failure } } }
    assert_raises(Failure) { Ringspun.run { Sync { raise Failure } } }
  end

  def test_errors_that_are_not_standard_ones
    assert_raises(NotImplementedError) { Ringspun.run { Sync { raise NotImplementedError } } }
    assert_raises(NotImplementedError) { Ringspun.run { Sync { sleep(0.000_1) && raise(NotImplementedError) } } }
    assert_equal 3, assert_raises(SystemExit) { Ringspun.run { Sync { sleep(0.000_1) && exit(3) } } }.status
    assert_raises(SystemExit) { Ringspun.run { Async { sleep(0.000_1) && exit(3) } && sleep } }
  end

  def test_more_tasks_than_strands_may_be
    machine.close
    Ringspun::Machine.new(strands_max: 4)
    error = error_of { Ringspun.run { Sync { |task| Array.new(4) { task.async { sleep } } } } }
    assert_kind_of Ringspun::LimitError, error
  ensure
    machine.close
  end

  # --- cancelled by us ---

  # Runs a block that waits inside Sync, in a child of it as well, and answers what has unwound by the time that `ending` is over.
  def unwound_by(ending)
    unwound = []
    wait = lambda do |name, task|
      sleep
    ensure
      task.async { unwound << name }.wait # an ensure block may begin tasks, and wait
      sleep(0.000_1)
    end
    waits = -> { Sync { |task| task.async { |child| wait.call(:child, child) } && wait.call(:parent, task) } }
    Ringspun.run { ending.call(waits) && unwound.sort }
  end

  def test_a_scope_that_is_cancelled_around_sync
    unwound = unwound_by(lambda do |waits|
      machine.scope { |scope| until_parked(scope.spin(&waits)) && scope.cancel }
      true
    end)
    assert_equal %i[child parent], unwound
  end

  def test_a_strand_that_is_terminated_in_sync
    unwound = unwound_by(lambda do |waits|
      strand = parked(&waits)
      machine.terminate(strand)
      assert_raises(Ringspun::TerminatedError) { strand.join }
    end)
    assert_equal %i[child parent], unwound
  end

  def test_a_deadline_around_sync
    unwound = unwound_by(->(waits) { assert_raises(Ringspun::TimeoutError) { machine.timeout(0.001, &waits) } })
    assert_equal %i[child parent], unwound
  end

  def test_timeout_around_sync
    unwound = unwound_by(->(waits) { assert_raises(Timeout::Error) { Timeout.timeout(0.001) { waits.call } } })
    assert_equal %i[child parent], unwound
  end

  def test_an_error_while_it_unwinds
    Ringspun.run do
      strand = parked do
        Sync do
          sleep
        ensure
          raise Failure
        end
      end
      machine.terminate(strand)
      assert_ends_with Failure, strand
    end
  end

  def test_a_run_that_ends_with_an_error_cancels_its_tasks
    unwound = []
    error = error_of do
      Ringspun.run do
        Async do
          sleep
        ensure
          unwound << :task
        end
        raise Failure
      end
    end
    assert_kind_of Failure, error
    assert_equal [:task], unwound
  end

  def test_the_strand_of_a_task_that_is_terminated
    Ringspun.run do
      inside = nil
      strand = parked { Sync { (inside = machine.running) && sleep } }
      machine.terminate(inside)
      assert_ends_with Ringspun::TerminatedError, strand
    end
  end

  # In a scope that is cancelled nothing waits, and a task begins all the same: its block meets the cancellation, as ours would.
  def test_a_task_begun_by_a_run_that_is_cancelled
    begun = []
    assert_raises(Failure) do
      Ringspun.run do
        strand = parked do
          sleep
        ensure
          Async { begun << 1 and sleep and begun << 2 }
        end
        assert_equal :parked, strand.state
        raise Failure
      end
    end
    assert_equal [1], begun
  end

  # --- stopped by Async ---

  def test_stop_unwinds_a_task
    assert_as_in_async([:waited, :cancelled, nil]) do |task|
      order = []
      child = task.async do
        sleep
      ensure
        sleep(0.000_1)
        order << :waited
      end
      child.stop
      child.wait
      order << child.status << child.result
    end
  end

  # Each the wait of a task that has nothing else to do.
  WAITS = {
    sleep: ->(_) { sleep },
    queue: ->(_) { Thread::Queue.new.pop },
    read: ->(reader) { reader.read(1) },
    readable: ->(reader) { reader.wait_readable },
    machine_sleep: ->(_) { Ringspun::Machine.current.sleep },
    machine_read: ->(reader) { Ringspun::Machine.current.read(reader, +"") },
    scope: ->(_) { Ringspun.scope { |scope| scope.spin { sleep } && sleep } },
    nested_run: ->(_) { Ringspun.run { sleep } },
    enumerator: ->(_) { Enumerator.new { |out| out << sleep }.next },
    process: ->(reader) { system("cat", in: reader) },
    child: ->(_) { Async { sleep }.wait }
  }.freeze

  WAITS.each do |name, wait|
    define_method("test_stop_of_a_task_in_#{name}") do
      IO.pipe do |reader, writer|
        ended = []
        Ringspun.run do
          Sync do |task|
            child = task.async do
              wait.call(reader)
            ensure
              ended << name
            end
            child.stop
            child.wait
            assert_equal [[name], :cancelled], [ended, child.status]
          end
        end
        writer.close
      end
      Thread.list.grep(Process::Waiter).each(&:join) # as in plain Ruby a process that nobody waits for goes on
    end
  end

  def test_stop_takes_children_along
    assert_as_in_async(%i[child grandchild]) do |task|
      ended, begun = [], Thread::Queue.new
      wait = lambda do |name|
        begun << name
        sleep
      ensure
        ended << name
      end
      child = task.async { |inner| inner.async { wait.call(:grandchild) } && wait.call(:child) }
      2.times { begun.pop }
      child.stop
      child.wait
      ended.sort
    end
  end

  def test_stop_of_itself_and_from_another_strand
    assert_as_in_async([:cancelled, nil]) do |task|
      child = task.async { |itself| itself.stop && raise("goes on") }
      [child.status, child.wait]
    end
    Ringspun.run do
      task = nil
      strand = parked { Sync { (task = _1) && sleep } }
      task.stop
      assert_nil strand.await
    end
  end

  def test_tasks_that_stop_each_other
    assert_as_in_async(%i[cancelled cancelled]) do |task|
      second = nil
      first = task.async do
        sleep
      ensure
        second.stop
      end
      second = task.async do
        sleep(0.000_1) until second # on Async's own reactor that may be over before this block is left
        first.stop || sleep
      end
      [first, second].each(&:wait).map(&:status)
    end
  end

  def test_a_stop_that_is_deferred
    assert_as_in_async([:went_on, :cancelled]) do |task|
      order, queue = [], Thread::Queue.new
      child = task.async { |itself| itself.defer_stop { queue.pop && order << :went_on } && order << :never }
      child.stop
      queue << 1
      child.wait
      order << child.status
    end
  end

  # --- transient tasks ---

  def test_transient_tasks_end_with_the_run
    order = []
    Ringspun.run do
      Async(transient: true) do |task|
        task.async { sleep } # goes with it
        sleep
      ensure
        sleep(0.000_1)
        order << :transient
      end
      Async { sleep(0.001).then { order << :task } }
      machine.spin { sleep(0.001).then { order << :strand } }
    end
    assert_equal [%i[strand task], :transient], [order.first(2).sort, order.last]
  end

  def test_a_transient_task_that_its_parent_leaves
    order = []
    Ringspun.run do
      Sync do |task|
        task.async(transient: true) do
          sleep
        ensure
          order << :transient
        end
      end
      order << :after_sync
      sleep 0.000_1
      order << :end_of_the_block
    end
    assert_equal %i[after_sync end_of_the_block transient], order
  end

  # It stays where it is in the tree, and so does not keep Async's reactor from ending either.
  def test_a_task_that_its_transient_parent_leaves
    code = lambda do |order|
      Async(transient: true) do |task|
        task.async do
          sleep
        ensure
          order << :child
        end
      end
    end
    orders = [[], []]
    Thread.new { code.call(orders.first) }.join
    Ringspun.run { code.call(orders.last) }
    assert_equal [[:child]] * 2, orders
  end

  def test_a_transient_task_with_an_operation_under_way
    IO.pipe do |reader, _writer|
      Ringspun.run { Async(transient: true) { machine.read(reader, +"") } }
      assert_equal 0, machine.metrics[:ops_in_flight]
    end
  end

  def test_a_running_task_that_becomes_transient
    Ringspun.run do
      error = assert_raises(Ringspun::UsageError) { Sync { |task| task.transient = true } }
      assert_match(/cannot become transient.*Async\(transient: true\)/m, error.message)
    end
  end

  # --- beside Async's own reactor ---

  def test_its_own_reactor_on_this_thread_and_on_others
    native = -> { Sync { |task| task.async { sleep(0.000_1).then { Fiber.scheduler.class } }.wait } }
    assert_equal Async::Reactor, native.call
    Ringspun.run do
      assert_equal Async::Reactor, Thread.new(&native).value
      assert_equal Ringspun::Scheduler, native.call
    end
    assert_equal Async::Reactor, native.call
  end

  def test_a_run_inside_its_reactor_says_what_to_do
    error = assert_raises(Ringspun::UsageError) { on_thread { Sync { Ringspun.run {} } } }
    assert_match(/another fiber scheduler \(Async::Reactor\)/, error.message)
  end

  # --- fork ---

  def test_tasks_in_a_forked_child
    Ringspun.run do
      Async(transient: true) { sleep }
      status = Sync do |task|
        task.async { sleep(0.000_1) }
        in_child { raise unless task.async { sleep(0.000_1).then { 5 } }.wait == 5 }
      end
      assert_predicate status, :success?
      status = machine.spin { in_child { raise unless Sync { |task| task.async { sleep(0.000_1).then { 5 } }.wait } == 5 } }.await
      assert_predicate status, :success?
    end
  end

  # --- what there is not ---

  def test_what_is_not_supported_is_named
    Ringspun.run do
      Sync do |task|
        [[Fiber.scheduler, :interrupt], [task.reactor, :run_once], [task.reactor, :interrupt]].each do |asked, name|
          assert_match(/`#{name}` is not supported/, assert_raises(Ringspun::UsageError) { asked.public_send(name) }.message)
        end
        assert_match(/use `async`/, assert_raises(Ringspun::UsageError) { task.reactor.run {} }.message)
        assert_match(/neither/, assert_raises(Ringspun::UsageError) { Fiber.scheduler.resume(Fiber.new {}) }.message)
        assert_raises(NoMethodError) { task.reactor.no_such_method }
        assert_raises(NoMethodError) { Fiber.scheduler.no_such_method }
      end
    end
  end

  class Overridden < Ringspun::Scheduler
    def kernel_sleep(*) = raise(Strands::Failure, "of a hook")
  end

  def test_raise_in_an_override_of_a_hook_is_kernels
    error = Thread.new do
      Fiber.set_scheduler(Overridden.new)
      Fiber.schedule { error_of { sleep }.then { |raised| Thread.current.thread_variable_set(:raised, raised) } }
    end.join.thread_variable_get(:raised)
    assert_kind_of Failure, error
    assert_equal "of a hook", error.message
  end

  def test_a_task_of_another_thread
    Ringspun.run do
      Sync do |task|
        thread = Thread.new { task.async {} }.tap { |other| other.report_on_exception = false }
        assert_raises(Ringspun::WrongThreadError) { thread.value }
      end
    end
  end

  GEMS = { "RUBYLIB" => $LOAD_PATH.join(File::PATH_SEPARATOR) }.freeze

  def test_without_the_bridge_an_error_names_it
    %w[Sync{} Async{} Async::Semaphore.new(0).acquire Barrier{}].each do |code|
      answer = child("$VERBOSE = nil; require 'async'; require 'async/semaphore'; Ringspun.run { #{code} }", env: GEMS)
      assert_match(%r{needs `require "ringspun/async"`; it has asked for `\w+` \(Ringspun::UsageError\)}, answer.err)
    end
  end

  def test_the_bridge_may_come_in_the_middle_of_a_run
    assert_child("ended\n[1]\n", <<~RUBY, env: GEMS)
      $VERBOSE = nil
      Ringspun.run do
        require "ringspun/async"
        Async(transient: true) { begin sleep; ensure puts "ended" end }
        $got = Sync { |task| [task.async { sleep(0.001).then { 1 } }.wait] }
      end
      p $got
    RUBY
  end

  def test_without_the_gem
    answer = child("require 'ringspun/async'", env: { "GEM_HOME" => "/nowhere", "GEM_PATH" => "/nowhere" })
    assert_match(/ringspun\/async is for the gem async, .* add `gem "async"` to the Gemfile \(Ringspun::UsageError\)/, answer.err)
  end

  def test_a_version_that_lacks_something
    lacks = { "Async::Task" => %i[run no_such_method], "Async::NoSuchClass" => [] }
    error = assert_raises(Ringspun::UsageError) { Ringspun.const_get(:AsyncBridge).check(lacks) }
    assert_match(/async #{Async::VERSION}, which has no Async::Task#no_such_method, Async::NoSuchClass; it is/, error.message)
  end
end
