# frozen_string_literal: true

# What a test leaves behind is its failure and not that of the test which later runs out of it.
module Leaks
  # Descriptors by what they are and not by number: a descriptor that was closed and opened anew is no leak.
  def self.descriptors
    own = "/proc/#{Process.pid}/fd" # the listing's own
    Dir.children("/proc/self/fd").filter_map do |number|
      target = File.readlink("/proc/self/fd/#{number}")
      target.sub(/:\[\d+\]\z/, "") unless target.start_with?(own)
    rescue Errno::ENOENT
      nil
    end.tally
  end

  # Processes that a wait for any child of this one could meet.
  def self.children
    Dir.glob("/proc/self/task/*/children").flat_map do |path|
      File.read(path).split.map(&:to_i)
    rescue SystemCallError # the thread has ended
      []
    end
  end

  # Ruby opens some descriptors when it first needs them: its timer thread's.
  Thread.new { sleep 0.001 }.join

  # How many memory mappings this process has. A test about stacks compares it over many strands; from one test to the
  # next it moves by itself.
  def mappings = File.foreach("/proc/self/maps").count

  def before_setup
    Ringspun::Machine.current # its own descriptors are no test's
    @descriptors_before = Leaks.descriptors
    @children_before = Leaks.children
    super
  end

  def after_teardown
    super
    assert_idle_machine
    assert_no_descriptor_left
    assert_no_child_left
  end

  private

  # A machine that the test has left busy is closed, so that the next test starts with one of its own.
  def assert_idle_machine
    machine = Ringspun::Machine.current
    _, unread = capture_io { machine.__send__(:report_unread_errors) }
    left = machine.metrics.values_at(:strands_live, :ops_in_flight, :timers, :stream_buffers)
    return assert_empty unread, "errors that the test has not joined" if left == [1, 0, 0, 0]

    strands = machine.describe_strands
    capture_io { machine.close }
    flunk format("something outlives the test (%d strands, %d ops, %d timers, %d buffers):\n%s", *left, strands)
  end

  def assert_no_descriptor_left = assert_empty(descriptors_left, "descriptors outlive the test")

  def descriptors_left
    left = Leaks.descriptors.to_h { |target, count| [target, count - @descriptors_before.fetch(target, 0)] }
    left.select { |_target, count| count.positive? }
  end

  # Another test's wait for any child would meet it. Who waits for one by Process.detach may not have done so yet.
  def assert_no_child_left
    10_000.times do
      break if (Leaks.children - @children_before).empty?

      sleep 0.001
    end
    left = Leaks.children - @children_before
    assert_empty left.map { |pid| File.read("/proc/#{pid}/cmdline").tr("\0", " ") }, "children outlive the test"
  end
end
