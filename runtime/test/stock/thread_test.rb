# frozen_string_literal: true

require "test_helper"
require "support/stock"
require "logger"
require "monitor"
require "tempfile"
require "timeout"

# Timeout, Monitor, Logger, and threads beside strands.
class StockThreadTest < Minitest::Test
  include Stock

  # --- Timeout ---

  def test_a_timeout_that_fires
    turns = 0
    Ringspun.run do
      waiting = parked { error_of { Timeout.timeout(0.1) { Thread::Queue.new.pop } } }
      machine.yield.then { turns += 1 } while waiting.alive?
      assert_equal [Timeout::Error, "execution expired"], [waiting.await.class, waiting.await.message]
    end
    assert_operator turns, :>, 0
  end

  def test_a_timeout_that_does_not_fire
    queue = Thread::Queue.new
    Ringspun.run do
      waiting = parked { Timeout.timeout(30) { queue.pop } }
      queue << :in_time
      assert_equal :in_time, waiting.await
    end
  end

  def test_a_timeout_with_a_class_and_a_message_around_io
    reader, writer = IO.pipe
    Ringspun.run do
      waiting = parked { error_of { Timeout.timeout(0.1, Failure, "too late") { reader.read } } }
      assert_equal [Failure, "too late"], waiting.await.then { |error| [error.class, error.message] }
    end
  ensure
    [reader, writer].each(&:close)
  end

  def test_timeouts_inside_each_other
    Ringspun.run do
      waiting = parked do
        Timeout.timeout(30) do
          error_of { Timeout.timeout(0.1) { sleep } }.class
        end
      end
      assert_equal Timeout::Error, waiting.await
    end
  end

  # --- Monitor ---

  def test_monitors_are_for_one_strand_at_a_time
    monitor = Monitor.new
    seen = []
    Ringspun.run do
      reader, writer = IO.pipe
      holding = parked { monitor.synchronize { monitor.synchronize { seen << reader.gets } } }
      waiting = Array.new(3) { |i| parked { monitor.synchronize { seen << i } } }
      refute monitor.try_enter
      writer.puts("first")
      machine.await(holding, *waiting)
      assert_equal ["first\n", 0, 1, 2], seen
      [reader, writer].each(&:close)
    end
  end

  def test_monitors_with_conditions
    buffer = [].extend(MonitorMixin)
    filled = buffer.new_cond
    Ringspun.run do
      taking = Array.new(2) do
        parked do
          buffer.synchronize do
            filled.wait_while { buffer.empty? }
            buffer.shift
          end
        end
      end
      %i[one two].each { |item| buffer.synchronize { buffer.push(item) && filled.signal } }
      assert_equal %i[one two], machine.await(*taking)
    end
  end

  # --- Logger ---

  STRANDS = 12
  LINES = 40

  # Every seventh line is longer than what is written to a file without a wait.
  def line_of(strand, number) = "strand #{strand} line #{number} #{"x" * (number % 7 == 0 ? 70_000 : 20)}"

  def all_lines = Array.new(STRANDS) { |strand| Array.new(LINES) { |number| line_of(strand, number) } }

  def assert_logged(text)
    lines = text.lines(chomp: true)
    assert_equal STRANDS * LINES, lines.size
    assert lines.all? { |line| line.match?(/\Astrand \d+ line \d+ x+\z/) }, "a line is torn"
    STRANDS.times do |strand|
      assert lines.grep(/\Astrand #{strand} /) == all_lines[strand], "strand #{strand}: a line is lost, doubled or out of order"
    end
    owners = lines.map { |line| line[/\d+/] }
    assert_operator owners.chunk_while { |one, other| one == other }.count, :>, STRANDS, "they have not gone on beside each other"
  end

  def log_from_strands(device)
    logger = Logger.new(device, formatter: ->(_, _, _, message) { "#{message}\n" })
    strands = Array.new(STRANDS) do |strand|
      machine.spin { LINES.times { |number| logger.info(line_of(strand, number)) && machine.yield } }
    end
    machine.await(*strands)
    logger.close
  end

  def test_many_strands_log_to_one_file
    Dir.mktmpdir do |folder|
      path = File.join(folder, "log")
      Ringspun.run { log_from_strands(path) }
      assert_logged File.readlines(path).drop(1).join # the first is the Logger's own
    end
  end

  def test_many_strands_log_to_one_pipe
    reader, writer = IO.pipe
    Ringspun.run do
      logging = parked { log_from_strands(writer) }
      assert_logged reader.read
      logging.join
    end
  ensure
    reader.close
  end

  def test_a_log_that_is_rotated
    Dir.mktmpdir do |folder|
      path = File.join(folder, "log")
      Ringspun.run do
        logger = Logger.new(path, 5, 2000, formatter: ->(_, _, _, message) { "#{message}\n" })
        strands = Array.new(4) { |strand| machine.spin { 20.times { |n| logger.info("#{strand} #{n}") && machine.yield } } }
        machine.await(*strands)
        logger.close
      end
      lines = Dir.glob("#{path}*").flat_map { |file| File.readlines(file, chomp: true) }.grep_v(/\A#/)
      assert_equal Array.new(4) { |strand| Array.new(20) { |n| "#{strand} #{n}" } }.flatten.sort, lines.sort
    end
  end

  # --- threads ---

  def test_joining_a_thread_that_waits_for_a_strand
    queue, answers = Thread::Queue.new, Thread::Queue.new
    Ringspun.run do
      thread = Thread.new { answers << (queue.pop + 1) && :done }
      waiting = parked { thread.value }
      queue << 1
      assert_equal [2, :done], [answers.pop, waiting.await]
    end
  end
end
