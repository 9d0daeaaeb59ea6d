# frozen_string_literal: true

require_relative "deadline"
require_relative "tasks"

module Ringspun
  module AsyncBridge
    # Methods of Async::Scheduler for {Scheduler}.
    module Scheduling
      %i[children children? finished? traverse print_hierarchy terminate cancel stop].each do |name|
        define_method(name) { |*arguments, **options, &block| tasks.root.public_send(name, *arguments, **options, &block) }
      end

      # Called by each new task without another parent.
      def add_child(task) = tasks.root.__send__(:add_child, task)

      # Begins the task of that fiber, or ends its {#transfer}. Returns when the fiber waits.
      #
      # May switch strands.
      def resume(fiber, *arguments)
        if tasks.transferred.key?(fiber)
          end_transfer(fiber, arguments)
        elsif fiber.async_task && !tasks.strands.key?(fiber)
          begin_task(fiber, arguments)
        else
          Kernel.raise UsageError, "resume: #{fiber.inspect} is neither that of a task to begin nor in Fiber.scheduler.transfer"
        end
      end

      # Waits until this fiber is resumed, or pushed.
      #
      # May switch strands.
      def transfer
        known, fiber = tasks.transferred, Fiber.current
        known[fiber] = nil
        block("Async to resume it", nil)
        known[fiber]
      ensure
        known.delete(fiber)
      end

      # Resumes the fiber, or the object that Async passes instead, after the strands that are ready have had their turn.
      def push(fiber)
        begin_loose do
          give_way
          if fiber.is_a?(Fiber)
            resume(fiber) if fiber.alive?
          elsif fiber.alive?
            fiber.transfer
          end
        end
      end

      # Raises the exception in a fiber, at its wait. The fiber has left the wait when this returns, unless an op is still in
      # flight. Without a fiber this is Kernel#raise, for overrides of hooks.
      #
      # May switch strands.
      def raise(fiber = nil, *arguments, **)
        return Kernel.raise(*fiber, *arguments, **) unless fiber.is_a?(Fiber)

        error = exception_of(*arguments, **)
        strand = tasks.strands[fiber]
        return interrupt_strand(strand, error) if strand

        fiber_interrupt(fiber, error)
        give_way
      end

      # Runs the block with a timeout. May switch strands if the block does.
      #
      # @yieldparam timeout [Async::Timeout]
      def with_timeout(duration, exception = ::Async::TimeoutError, message = "execution expired", &block)
        seconds = duration.to_f
        return timeout_after(seconds, exception, message) { yield } if block.nil? || block.arity.zero?

        within_scope([seconds, 0].max, exception, message, &block)
      end

      # Begins a task, as a child of the running task, if there is one.
      #
      # May switch strands.
      def async(*arguments, **options, &block)
        ::Async::Task.new(::Async::Task.current? || self, **options, &block).tap { |task| task.run(*arguments) }
      end

      # The hook of Fiber.schedule: inside a task it makes a child task.
      def fiber(...) = ::Async::Task.current? ? async(...).fiber : super

      # @return [Float] how busy this thread is, from 0.0 to 1.0; 0.0 in a simulation
      def load = Machine.current.backend.name == :sim ? 0.0 : tasks.load

      def run
        Kernel.raise UsageError, "Async's reactor runs already inside a Ringspun.run; use `async`, not `run`" if block_given?

        super()
        end_tasks unless Thread.current.thread_variable_get(:ringspun_run)
      end

      def scheduler_close
        return super if tasks.loose.empty? || thread_fails?

        begin
          run
        ensure
          super
        end
      end

      # Runs the block in a task, and waits until the task has ended. If the wait is cancelled, the task is stopped.
      #
      # May switch strands.
      def sync(**options, &block)
        task = ::Async::Task.new(self, finished: false, **options, &block)
        task.run
        strand = tasks.begun
        begin
          strand.join
        ensure
          end_task(task, strand) if strand.alive?
        end
        task.wait
      end

      private

      def advice(name) = "'s `#{name}` is not supported"

      # Runs the block in a scope whose deadline it may move.
      def within_scope(seconds, exception, message)
        machine, opened = Machine.current, nil
        machine.scope(deadline: seconds) do |scope|
          opened = scope
          deadline = Deadline.new(machine, scope, seconds)
          yield ::Async::Timeout.new(deadline, deadline)
        end
      rescue TimeoutError => e
        opened.cancelled? ? Kernel.raise(exception, message) : Kernel.raise(e)
      end

      def tasks
        @tasks = Tasks.new(self) if !@tasks || @tasks.inherited?
        @tasks
      end

      def begin_task(fiber, arguments)
        task, known, refused = fiber.async_task, tasks, nil
        known.begun = begin_loose(!loose?(task)) do
          known.strands[fiber] = Machine.current.running
          fiber.resume(*arguments)
        rescue FiberError => e
          Kernel.raise(e) unless fiber.alive?
          refused = e # there is no stack for the fiber
        ensure
          known.strands.delete(fiber)
        end
        Kernel.raise refused if refused
      rescue Error, FiberError => e
        task.parent = nil
        Kernel.raise(e)
      end

      # No run waits for transient tasks and their descendants, until Async moves those up in the tree.
      def loose?(task) = task.transient? || (task.parent.is_a?(::Async::Task) && loose?(task.parent))

      def begin_loose(awaited = false)
        known = tasks
        begin_strand(awaited) do
          strand = Machine.current.running
          known.loose[strand] = true unless awaited
          yield
        ensure
          known.loose.delete(strand)
          task_left
        end
      end

      def end_transfer(fiber, arguments)
        known = tasks.transferred
        known[fiber] = arguments.size > 1 ? arguments : arguments.first
        unblock(self, fiber) unless resume_first(fiber)
        give_way while known.key?(fiber)
      end

      def end_task(task, strand)
        Ringspun.shield do
          task.stop
          strand.join
        rescue TerminatedError
          nil
        end
        task.wait if task.failed? && task.result.is_a?(StandardError)
      end

      # The exception with its cause, and without a backtrace, which it gets when it is raised.
      def exception_of(...)
        Kernel.raise(...)
      rescue Exception => e
        e.set_backtrace(nil)
        e
      end

      def task_left
        ending = tasks.ending
        unblock(self, ending) if ending
      end

      # Waits for the tasks that are not transient, and then stops the others, like a reactor at its end.
      def end_tasks
        known, stopped = tasks, {}.compare_by_identity
        known.ending = Fiber.current
        until known.loose.empty?
          next if known.root.finished? && stop_all(known.root, stopped)

          block("Async's tasks to end", nil) unless known.loose.empty?
        end
      ensure
        known.ending = nil
      end

      # Stops each task once, so that its ensure blocks may wait. False: there was none to stop.
      def stop_all(root, stopped)
        left = root.children.to_a.reject { |task| stopped[task] }
        left.each { |task| stopped[task] = task.stop || true }
        left.any?
      end
    end
  end
end
