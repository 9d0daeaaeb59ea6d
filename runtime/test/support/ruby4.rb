# frozen_string_literal: true

# Makes an older Ruby do what Ruby 4 does where that concerns a fiber scheduler. To be required before ringspun.
#
# As there, an IO that is closed interrupts the fibers that are in a hook for it, by `fiber_interrupt`. It has lost its number
# before it waits for them to leave and asks `io_close` to close the number; where that answers nothing true, it closes that
# itself. A forked child has no scheduler. And a place in the source has an end, and columns.
module Ruby4
  # Notes which fibers are in a hook for which IO.
  module Hooks
    # So written that each has its name in the frame that calls Ringspun's own.
    def io_wait(io, *rest)
      Ruby4.enter(io)
      super
    ensure
      Ruby4.leave(io)
    end

    def io_read(io, *rest)
      Ruby4.enter(io)
      super
    ensure
      Ruby4.leave(io)
    end

    def io_write(io, *rest)
      Ruby4.enter(io)
      super
    ensure
      Ruby4.leave(io)
    end
  end

  FIBERS = {}.compare_by_identity
  LOCK = Thread::Mutex.new
  LEFT = Thread::ConditionVariable.new

  class << self
    def enter(io) = (FIBERS[io] ||= []) << [Fiber.current, Fiber.scheduler]

    def leave(io)
      left = FIBERS.fetch(io)
      left.delete_at(left.rindex { |fiber, _| fiber == Fiber.current })
      FIBERS.delete(io) if left.empty?
      LOCK.synchronize { LEFT.broadcast } if CLOSING.key?(io)
    end

    CLOSING = {}.compare_by_identity
    private_constant :CLOSING

    def close(io)
      scheduler = Fiber.current_scheduler
      # One with a process has two descriptors, and waits for it.
      return io.stock_close if !scheduler || io.fileno <= 2 || !io.autoclose? || io.pid

      CLOSING[io] = true
      descriptor = io.fileno
      interrupt(io)
      io.autoclose = false
      io.stock_close
      LOCK.synchronize { LEFT.wait(LOCK) while FIBERS.key?(io) } if FIBERS.key?(io)
      IO.for_fd(descriptor).stock_close unless scheduler.io_close(descriptor)
    ensure
      CLOSING.delete(io)
    end

    def forget_scheduler
      gone = Fiber.scheduler or return

      # Without its being closed, as by setting another.
      names = %i[scheduler_close close].select { |name| gone.respond_to?(name) }
      gone.singleton_class.class_eval { names.each { |name| undef_method(name) } }
      Fiber.set_scheduler(nil)
      gone.singleton_class.class_eval { names.each { |name| define_method(name) { super() } } }
    end

    private

    def interrupt(io)
      error = IOError.new("stream closed in another thread").freeze
      FIBERS[io]&.each { |fiber, scheduler| scheduler.fiber_interrupt(fiber, error) }
    end
  end
end

[Proc, Method, UnboundMethod].each do |callable|
  callable.alias_method(:stock_source_location, :source_location)
  callable.define_method(:source_location) { stock_source_location&.then { |path, line| [path, line, 0, line, 1] } }
end

class IO
  alias stock_close close

  def close = closed? ? nil : Ruby4.close(self) && nil
end

class << Process
  alias stock_fork _fork

  def _fork = stock_fork.tap { |pid| Ruby4.forget_scheduler if pid.zero? }
end

class << Fiber
  alias stock_set_scheduler set_scheduler

  def set_scheduler(scheduler)
    scheduler.singleton_class.prepend(Ruby4::Hooks) if scheduler
    stock_set_scheduler(scheduler)
  end
end
