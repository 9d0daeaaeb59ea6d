# frozen_string_literal: true

require "test_helper"
require "socket"
require "support/scheduled"

# What Fiber.set_scheduler asks of a scheduler, and that ours has whatever any Ruby from 3.3 on calls.
class SchedulerInterfaceTest < Minitest::Test
  include Scheduled

  REQUIRED = %i[block unblock kernel_sleep io_wait].freeze

  # With how many arguments they are called.
  HOOKS = {
    io_wait: [3], io_select: [1, 4], io_read: [4], io_write: [4], io_pread: [5], io_pwrite: [5], io_close: [1],
    kernel_sleep: [0, 1], block: [1, 2], unblock: [2], fiber: [0], fiber_interrupt: [2], process_wait: [2],
    timeout_after: [3], address_resolve: [1], yield: [0], scheduler_close: [0], close: [0], run: [0]
  }.freeze

  REQUIRED.each do |hook|
    define_method(:"test_without_#{hook}_it_is_refused") do
      refused = Class.new(Ringspun::Scheduler) { undef_method hook }
      error = assert_raises(ArgumentError) { with_scheduler(refused.new) { flunk } }
      assert_match(/must implement ##{hook}\b/, error.message)
    end
  end

  def test_no_more_than_those_is_asked_for
    able = Object.new
    REQUIRED.each { |hook| able.define_singleton_method(hook) { |*| nil } }
    assert_same(able, with_scheduler(able) { Fiber.scheduler })
  end

  # A machine of the thread, and what else a program might take for its scheduler.
  def test_what_is_no_scheduler
    [Ringspun::Machine.current, Object.new, Ringspun::Scheduler].each do |other|
      assert_raises(ArgumentError) { with_scheduler(other) { flunk } }
    end
  end

  HOOKS.each do |hook, counts|
    define_method(:"test_it_has_#{hook}") do
      assert_respond_to Ringspun::Scheduler.new, hook
      method = Ringspun::Scheduler.instance_method(hook)
      counts.each do |count|
        assert method.arity == count || (method.arity.negative? && count >= ~method.arity), "#{hook} takes #{method.arity}"
      end
    end
  end

  # It is found only by those who ask for it, for CRuby is not to find it around a whole copy of a stream.
  def test_it_has_blocking_operation_wait
    assert_respond_to Ringspun::Scheduler.new, :blocking_operation_wait
  end

  # --- all of it at once ---

  def test_many_threads_with_a_scheduler_each
    threads = Array.new(16) do |i|
      start_with do
        reader, writer = UNIXSocket.pair
        read = nil
        Fiber.schedule { read = [reader.read(20), reader.close] }
        Fiber.schedule { writer.write("thread #{i}").then { writer.close } }
        Fiber.set_scheduler(nil) # all of it is done then
        read + [reader, writer].map(&:closed?)
      end
    end
    assert_equal(Array.new(16) { |i| ["thread #{i}", nil, true, true] }, threads.map(&:value))
  end
end
