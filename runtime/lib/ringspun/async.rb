# frozen_string_literal: true

require "ringspun"

module Ringspun
  # Loaded by `require "ringspun/async"`. Code that uses the gem async (`Async {}`, `Sync {}`, async-http) runs inside a
  # {Ringspun.run} then. Each task of Async runs in a strand.
  #
  # Async uses `Fiber.scheduler` as its reactor, and keeps its tasks in a tree with the reactor as its root. So {Scheduler} gets
  # the methods of a reactor, and a {Root} is the root of the tree. Each task has a strand, which resumes the fiber that Async has
  # made for the task, and ends with it.
  #
  # Threads with Async's own scheduler are not affected.
  #
  # @api private
  module AsyncBridge
    begin
      require "async"
    rescue LoadError => e
      raise unless e.path == "async"

      raise UsageError, "ringspun/async is for the gem async, which is not there; add `gem \"async\"` to the Gemfile"
    end

    # The methods of async that are called here, or must call this. Versions before Async::Promise are not supported: their tasks
    # wake each other by more than their fibers.
    NEEDED = {
      "Async::Node" => %i[add_child remove_child children finished? transient? traverse print_hierarchy terminate],
      "Async::Scheduler" => %i[resume push raise transfer yield with_timeout load async run],
      "Async::Task" => %i[run stop wait fiber transient=],
      "Async::Promise" => %i[wait resolve],
      "Async::Timeout" => %i[duration= cancel!],
      "Kernel" => %i[Async Sync],
      "Fiber" => %i[async_task]
    }.freeze

    class << self
      # @raise [UsageError] when this version of async lacks one of them
      def check(needed = NEEDED)
        missing = needed.flat_map do |name, methods|
          next name unless Object.const_defined?(name)

          owner = Object.const_get(name)
          methods.reject { |method| has?(owner, method) }.map { |method| "#{name}##{method}" }
        end
        return if missing.empty?

        raise UsageError, "ringspun/async cannot work with async #{::Async::VERSION}, which has no #{missing.join(", ")}; " \
                          "it is made for 2.29 and later"
      end

      private

      def has?(owner, method) = owner.method_defined?(method) || owner.private_method_defined?(method)
    end
    check

    # The root of the tree of tasks, which `task.reactor` returns. It passes the methods of a reactor on to the scheduler.
    class Root < ::Async::Node
      def initialize(scheduler)
        super()
        @scheduler = scheduler
      end

      %i[resume push raise transfer yield with_timeout load async run closed? block unblock kernel_sleep io_wait process_wait
         address_resolve].each do |name|
        define_method(name) { |*arguments, **options, &block| @scheduler.public_send(name, *arguments, **options, &block) }
      end

      # Stops all children, like a reactor and unlike a task also the transient ones.
      def cancel(later = false, **)
        @children&.each { |child| child.stop(later) }
      end

      def stop(...) = cancel(...)

      # Called by the child. Public, and not protected as in Async::Node, because a task is no {Root}.
      def remove_child(child)
        super
        @scheduler.__send__(:task_left)
      end

      private

      def method_missing(name, ...) = @scheduler.__send__(:refuse, name) || super

      def respond_to_missing?(*) = false
    end

    # What a scheduler keeps about Async's tasks. A forked child makes a new one.
    class Tasks
      # @return [Root]
      attr_reader :root
      # @return [Hash{Fiber => Strand}] the running tasks: their fibers and strands
      attr_reader :strands
      # @return [Hash{Fiber => Object}] the fibers in {Scheduling#transfer}, and what it will return
      attr_reader :transferred
      # @return [Hash{Strand => true}] the strands that no run waits for
      attr_reader :loose
      # @return [Strand, nil] the strand of the task that was begun last
      attr_accessor :begun
      # @return [Fiber, nil] the fiber that waits in {Scheduling#end_tasks}
      attr_accessor :ending

      def initialize(scheduler)
        @pid = Process.pid
        @root = Root.new(scheduler)
        @strands = {}.compare_by_identity
        @transferred = {}.compare_by_identity
        @loose = {}.compare_by_identity
        @load_at = @load_cpu = nil
        @load = 0.0
      end

      def inherited? = @pid != Process.pid

      # The share of the last second or so in which this thread has used a processor.
      def load
        at, cpu = clock(:CLOCK_MONOTONIC), clock(:CLOCK_THREAD_CPUTIME_ID)
        @load_at, @load_cpu = at, cpu unless @load_at
        return @load if at - @load_at < 0.01

        @load = [(cpu - @load_cpu) / (at - @load_at), 1.0].min
        @load_at, @load_cpu = at, cpu if at - @load_at > 1
        @load
      end

      private

      def clock(name) = Process.clock_gettime(Process.const_get(name))
    end

    # The deadline of a scope, with the methods of the timer of an Async::Timeout.
    class Deadline
      # @return [Float] on the machine's clock, in seconds
      attr_reader :time

      def initialize(machine, scope, seconds)
        @machine = machine
        @scope = scope
        @time = machine.now + seconds
        @cancelled = false
      end

      def now = @machine.now
      def cancelled? = @cancelled

      # The action of the timer. Async::Timeout only passes it back to {#schedule}, so it is never called.
      def block = @cancelled ? nil : self

      def cancel!
        @cancelled = true
        @scope.deadline = nil
      end

      def schedule(time, _block)
        @cancelled = false
        @time = time
        @scope.deadline = [time - now, 0].max
        self
      end
    end

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

    Scheduler.prepend(Scheduling)

    # Included in Object, before Kernel.
    module Blocks
      # If no task runs, the block's task has ended when this returns, also if the strand is cancelled.
      def Sync(**, &)
        scheduler = Fiber.scheduler
        return super unless scheduler.is_a?(Scheduler) && !::Async::Task.current?

        scheduler.sync(**, &)
      end
    end
    Blocks.then { |blocks| Object.include(blocks) } # YARD knows no Object

    # For Async::Task.
    module Transient
      def transient=(value)
        if value && !transient? && alive? && root.is_a?(Root)
          raise UsageError, "a task that runs cannot become transient inside a Ringspun.run, which waits for it by now; " \
                            "say `Async(transient: true)` where it begins"
        end
        super
      end
    end
    Transient.then { |transient| ::Async::Task.prepend(transient) }
  end
  private_constant :AsyncBridge
end
