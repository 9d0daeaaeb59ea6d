# frozen_string_literal: true

# Makes an older Ruby do what Ruby 4 does where that concerns a fiber scheduler. To be required before ringspun.
#
# As there, an IO that is closed, by whichever thread, interrupts the fibers that are in a hook for it, by `fiber_interrupt`. A
# thread that has a scheduler asks that by `io_close` to close the number, which the IO has lost by then; where that answers
# nothing true, it closes that itself. A forked child has no scheduler, nor has a daemon, and the fiber that has forked is a
# blocking one. And a place in the source has an end, and columns.
#
# With RINGSPUN_DOUBLE=4.1 `fiber_interrupt` gets what 4.1 gives it (ruby/ruby#18793), and an IO::Buffer takes the arguments in
# the order of 4.1 and transfers what one operation does.
module Ruby4
  # Notes which fibers are in a hook for which IO.
  module Hooks
    # So written that each has its name in the frame that calls Ringspun's own.
    def io_wait(io, *rest)
      Ruby4.enter(io)
      super.tap { Ruby4.check(io) }
    ensure
      Ruby4.leave(io)
    end

    def io_read(io, *rest)
      Ruby4.enter(io)
      super.tap { Ruby4.check(io) }
    ensure
      Ruby4.leave(io)
    end

    def io_write(io, *rest)
      Ruby4.enter(io)
      super.tap { Ruby4.check(io) }
    ensure
      Ruby4.leave(io)
    end
  end

  # The call of a hook for an IO. From 4.1 on `fiber_interrupt` gets one in place of the fiber.
  class Call
    attr_reader :fiber

    def initialize
      @fiber = Fiber.current
      @scheduler = Fiber.scheduler
      @error = nil
      @ended = false
    end

    def alive? = !@ended && @fiber.alive?
    def raise(...) = alive? ? @fiber.raise(...) : nil
    def transfer = raise(@error)

    def interrupt(error)
      @error = error
      @scheduler.fiber_interrupt(AS_4_1 ? self : @fiber, error)
    end

    # Where the hook has returned in spite of it.
    def check = AS_4_1 && @error && Kernel.raise(@error)

    def end = @ended = true
  end

  # Of `length` only the place among the arguments is 4.1's: an older Ruby cannot be told the most that it is to transfer.
  module OneOperation
    def read(io, offset = 0, _length = nil) = stock_read(io, 1, offset)
    def write(io, offset = 0, _length = nil) = stock_write(io, 1, offset)
    def pread(io, from, offset = 0, _length = nil) = stock_pread(io, from, 1, offset)
    def pwrite(io, from, offset = 0, _length = nil) = stock_pwrite(io, from, 1, offset)
  end

  AS_4_1 = ENV["RINGSPUN_DOUBLE"] == "4.1"
  CALLS = {}.compare_by_identity
  LOCK = Thread::Mutex.new
  LEFT = Thread::ConditionVariable.new

  class << self
    def enter(io) = (CALLS[io] ||= []) << Call.new
    def check(io) = own_call(io).check

    def leave(io)
      call = own_call(io)
      call.end
      left = CALLS.fetch(io)
      left.delete(call)
      CALLS.delete(io) if left.empty?
      LOCK.synchronize { LEFT.broadcast } if CLOSING.key?(io)
    end

    CLOSING = {}.compare_by_identity
    private_constant :CLOSING

    def close(io)
      CLOSING[io] = true
      scheduler = Fiber.current_scheduler
      interrupt(io)
      return close_for_ruby(io, scheduler) if scheduler && !io.frozen? && io.fileno > 2 && io.autoclose? && !io.pid

      # One with a process has two descriptors, and waits for it.
      wait_for_calls(io)
      io.stock_close
    ensure
      CLOSING.delete(io)
    end

    def forget_scheduler
      gone = Fiber.scheduler or return

      @hooks_end = true unless Fiber.current.blocking? # it is made one that is, for good
      # Without its being closed, as by setting another.
      names = %i[scheduler_close close].select { |name| gone.respond_to?(name) }
      gone.singleton_class.class_eval { names.each { |name| undef_method(name) } }
      Fiber.set_scheduler(nil)
      gone.singleton_class.class_eval { names.each { |name| define_method(name) { super() } } }
    end

    def hooks_end? = @hooks_end

    private

    def own_call(io) = CALLS.fetch(io).reverse_each.find { |call| call.fiber == Fiber.current }

    def interrupt(io)
      error = IOError.new("stream closed in another thread").freeze
      CALLS[io]&.dup&.each { |call| call.interrupt(error) }
    end

    def wait_for_calls(io)
      LOCK.synchronize { LEFT.wait(LOCK) while CALLS.key?(io) } if CALLS.key?(io)
    end

    def close_for_ruby(io, scheduler)
      descriptor = io.fileno
      io.autoclose = false
      io.stock_close
      wait_for_calls(io)
      IO.for_fd(descriptor).stock_close unless scheduler.io_close(descriptor)
    end
  end
end

[Proc, Method, UnboundMethod].each do |callable|
  callable.alias_method(:stock_source_location, :source_location)
  callable.define_method(:source_location) { stock_source_location&.then { |path, line| [path, line, 0, line, 1] } }
end

if Ruby4::AS_4_1
  IO::Buffer.class_eval { %i[read write pread pwrite].each { |name| alias_method(:"stock_#{name}", name) } }
  IO::Buffer.prepend(Ruby4::OneOperation)
end

class IO
  alias stock_close close

  def close = closed? ? nil : Ruby4.close(self) && nil
end

class << Process
  alias stock_fork _fork

  def _fork = stock_fork.tap { |pid| Ruby4.forget_scheduler if pid.zero? }

  alias stock_daemon daemon

  def daemon(...) = stock_daemon(...).tap { Ruby4.forget_scheduler }
end

class << Fiber
  alias stock_set_scheduler set_scheduler

  def set_scheduler(scheduler)
    return if scheduler && Ruby4.hooks_end?

    scheduler.singleton_class.prepend(Ruby4::Hooks) if scheduler
    stock_set_scheduler(scheduler)
  end
end
