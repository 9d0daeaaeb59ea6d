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

  # Ruby opens some descriptors when it first needs them (its timer thread), and a machine may keep some for its
  # thread. Both are opened before the first test looks.
  def self.warm_up
    Thread.new { sleep 0.001 }.join
    Ringspun.run {} if Ringspun.respond_to?(:run)
  end
  warm_up

  # How many memory mappings this process has. A test about stacks compares it over many strands; from one test to the
  # next it moves by itself.
  def mappings = File.foreach("/proc/self/maps").count

  def before_setup
    @descriptors_before = Leaks.descriptors
    super
  end

  def after_teardown
    super
    assert_idle_machine
    assert_no_descriptor_left
  end

  private

  def assert_idle_machine
    machine = Ringspun::Machine.current if defined?(Ringspun::Machine)
    return unless machine

    metrics = machine.metrics
    assert_operator metrics.fetch(:strands_live), :<=, 1, "strands outlive the test"
    assert_equal 0, metrics.fetch(:ops_in_flight), "ops outlive the test"
  end

  def assert_no_descriptor_left
    left = Leaks.descriptors.to_h { |target, count| [target, count - @descriptors_before.fetch(target, 0)] }
    left.select! { |_target, count| count.positive? }
    assert_empty left, "descriptors outlive the test"
  end
end
