# frozen_string_literal: true

require "test_helper"
require "logger"
require "monitor"

# Cancelled strands whose ensure blocks want one lock. The one that holds it gives way now and then, and the others get it all the
# same, for to give way is no wait. For a holder that waits they do not wait.
class LockOnTheWayOutTest < Minitest::Test
  # Each: what an ensure block does many times, with the lock in it.
  LOCKS = {
    an_io: ->(out) { ->(text) { out.puts(text) } },
    a_logger: ->(out) { Logger.new(out, formatter: ->(*, text) { "#{text}\n" }).then { |log| ->(text) { log.info(text) } } },
    a_mutex: ->(out) { Thread::Mutex.new.then { |lock| ->(text) { lock.synchronize { out.write(text, "\n") } } } },
    a_monitor: ->(out) { Monitor.new.then { |lock| ->(text) { lock.synchronize { out.write(text, "\n") } } } },
    a_mutex_of_ours: ->(out) { Ringspun::Mutex.new.then { |lock| ->(text) { lock.synchronize { out.write(text, "\n") } } } }
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
        cancelled { |text| TIMES.times { write.call(text) } }
      end
      assert_equal(STRANDS.to_h { |text| [text, TIMES] }, lines.tally)
    end
  end

  # The holder's turn ends inside the lock, with ours after more writes.
  def test_a_long_critical_section
    { Thread::Mutex.new => 200, Monitor.new => 200, Ringspun::Mutex.new => 600 }.each do |lock, times|
      lines = written do |writer|
        cancelled { |text| lock.synchronize { times.times { writer.syswrite("#{text}\n") } } }
      end
      parts = lines.chunk(&:itself).map { |text, all| [text, all.size] }
      assert_equal(STRANDS.map { |text| [text, times] }, parts.sort, lock.class)
    end
  end

  def test_a_holder_that_waits
    [Thread::Mutex.new, Monitor.new, Ringspun::Mutex.new].each do |lock|
      told = []
      Ringspun.run do |machine|
        others = [machine.spin { lock.synchronize { machine.sleep } }, machine.spin { loop { machine.yield } }]
        machine.scope do |scope|
          scope.spin do
            leave(machine) { lock.synchronize { told << :held } }
          rescue Ringspun::Cancelled
            told << $!.backtrace_locations.any? { |place| place.base_label == "synchronize" }
          end
          machine.yield
          scope.cancel
        end
        others.each(&:terminate)
      end
      assert_equal [true], told, lock.class
    end
  end

  private

  # Has strands wait, and cancels them.
  #
  # @yieldparam text [String] the name of the strand that does this on its way out
  def cancelled
    Ringspun.run do |machine|
      machine.scope do |scope|
        STRANDS.each { |text| scope.spin { leave(machine) { yield text } } }
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
