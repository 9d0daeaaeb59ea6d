# frozen_string_literal: true

require "test_helper"
require "logger"
require "monitor"

# Cancelled strands whose ensure blocks want one lock. The one that holds it gives way now and then, and the others get it all the
# same. For a holder that keeps it they wait a second in all.
class LockOnTheWayOutTest < Minitest::Test
  # Each: what an ensure block does many times, with the lock in it.
  LOCKS = {
    an_io: ->(out) { ->(text) { out.puts(text) } },
    a_logger: ->(out) { Logger.new(out, formatter: ->(*, text) { "#{text}\n" }).then { |log| ->(text) { log.info(text) } } },
    a_mutex: ->(out) { Thread::Mutex.new.then { |lock| ->(text) { lock.synchronize { out.write(text, "\n") } } } },
    a_monitor: ->(out) { Monitor.new.then { |lock| ->(text) { lock.synchronize { out.write(text, "\n") } } } },
    a_mutex_of_ours: ->(out) { Ringspun::Mutex.new.then { |lock| ->(text) { lock.synchronize { out.write(text, "\n") } } } },
    a_semaphore: ->(out) { Ringspun::Semaphore.new(1).then { |one| ->(text) { one.hold { out.write(text, "\n") } } } }
  }.freeze
  STRANDS = %w[a b c].freeze
  TIMES = 40

  # @yieldparam writer [IO]
  # @return [Array<String>] the lines that were written to it
  def written
    reader, writer = IO.pipe
    writer.sync = true
    yield writer
    writer.close
    reader.readlines(chomp: true)
  ensure
    [reader, writer].each(&:close)
  end

  LOCKS.each do |name, make|
    define_method("test_#{name}") do
      lines = written do |writer|
        write = make.call(writer)
        cancelled(STRANDS) { |text| TIMES.times { write.call(text) } }
      end
      assert_equal(STRANDS.to_h { |text| [text, TIMES] }, lines.tally)
    end
  end

  # The holder's turn ends inside the lock, with ours after more writes.
  def test_a_long_critical_section
    { Thread::Mutex.new => 200, Monitor.new => 200, Ringspun::Mutex.new => 600 }.each do |lock, times|
      lines = written do |writer|
        cancelled(STRANDS) { |text| lock.synchronize { times.times { writer.syswrite("#{text}\n") } } }
      end
      parts = lines.chunk(&:itself).map { |text, all| [text, all.size] }
      assert_equal(STRANDS.map { |text| [text, times] }, parts.sort, lock.class)
    end
  end

  def test_many_strands
    names = Array.new(200, &:to_s)
    lines = written { |writer| cancelled(names) { |text| 9.times { writer.puts(text) } } }
    assert_equal(names.to_h { |text| [text, 9] }, lines.tally)
  end

  # The lock is handed from one to the other, and is never free.
  def test_others_that_want_it_all_the_time
    told = []
    Ringspun.run do |machine|
      lock = Ringspun::Mutex.new
      others = Array.new(2) { machine.spin { loop { lock.synchronize { machine.yield } } } }
      machine.scope do |scope|
        scope.spin { leave(machine) { lock.synchronize { told << :held } } }
        3.times { machine.yield }
        scope.cancel
      end
      others.each(&:terminate)
    end
    assert_equal [:held], told
  end

  # It has the lock of the IO each time that another runs. The wait ends at last.
  def test_one_that_writes_without_end
    reader, writer = IO.pipe
    Ringspun.run do |machine|
      others = [machine.spin { nil while reader.readpartial(65_536) }, machine.spin { loop { writer.write("x") } }]
      machine.scope do |scope|
        scope.spin { leave(machine) { writer.write("bye") } }
        machine.yield
        scope.cancel
      end
      others.each(&:terminate)
    end
  ensure
    [reader, writer].each(&:close)
  end

  # That lock is taken again in any case, and given on.
  def test_a_condition
    lock = Thread::Mutex.new
    condition = Thread::ConditionVariable.new
    Ringspun.run do |machine|
      waiter = machine.spin { lock.synchronize { condition.wait(lock) } }
      machine.yield
      lock.lock
      machine.terminate(waiter)
      machine.yield
      machine.schedule(waiter, IOError.new)
      machine.yield
      lock.unlock
      assert_raises(Ringspun::TerminatedError, IOError) { waiter.join }
      assert_predicate lock, :try_lock
      lock.unlock
    end
  end

  # An error comes to one that waits for the lock on its way out, and the one behind it gets the lock.
  def test_one_behind_it
    Ringspun.run do |machine|
      lock = Thread::Mutex.new.lock
      first = machine.spin { leave(machine) { lock.synchronize {} } }
      machine.yield
      machine.terminate(first)
      second = machine.spin { lock.synchronize { :held } }
      machine.yield
      lock.unlock
      machine.schedule(first, IOError.new)
      assert_equal :held, second.await
      assert_raises(Ringspun::TerminatedError, IOError) { first.join }
    end
  end

  # In virtual time. Afterwards it is raised at the lock.
  def test_a_holder_that_waits
    [Thread::Mutex.new, Monitor.new, Ringspun::Mutex.new].each do |lock|
      waited = refused = nil
      Ringspun::Simulation.run(faults: false) do |machine|
        holder = machine.spin { lock.synchronize { machine.sleep } }
        left = machine.spin do
          leave(machine) { (waited = machine.now) && lock.synchronize { flunk "held" } }
        rescue Ringspun::Cancelled
          waited = machine.now - waited
          refused = $!.backtrace_locations.any? { |place| place.base_label == "synchronize" }
          raise
        end
        machine.yield
        [left, holder].each { |strand| machine.terminate(strand) && (strand.join rescue nil) }
      end
      assert refused, lock.class
      assert_in_delta 1, waited, 0.1, lock.class
    end
  end

  private

  # Has strands wait, and cancels them.
  #
  # @yieldparam text [String] the name of the strand that does this on its way out
  def cancelled(names)
    Ringspun.run do |machine|
      machine.scope do |scope|
        names.each { |text| scope.spin { leave(machine) { yield text } } }
        machine.yield
        scope.cancel
      end
    end
  end

  # Waits until it is cancelled, and then does that.
  def leave(machine)
    machine.sleep
  ensure
    yield
  end
end
