# frozen_string_literal: true

module Ringspun
  # A pool of threads for calls that block the thread, as in C extensions that do not use Ruby's fiber scheduler. Threads start
  # when there is work, and end after IDLE_SECONDS without.
  #
  # @api private
  class Offload
    # A thread costs little while it sleeps, and most programs that make such calls make more of them soon.
    IDLE_SECONDS = 10

    # How often a waiting strand looks whether it was cancelled.
    LOOK_SECONDS = (0.002..0.05)

    # The mask of a thread of the pool: killed between two steps, it would take along a job that it has not begun.
    LATER = { Object => :never }.freeze
    private_constant :IDLE_SECONDS, :LOOK_SECONDS, :LATER

    # Raised in a thread to interrupt its job.
    Recall = Class.new(Exception) # rubocop:disable Lint/InheritException -- no rescue of the block's is meant for it

    # A block that a thread runs while a strand waits for it.
    class Job
      AT_ONCE = { Object => :immediate, Recall => :never }.freeze
      private_constant :AT_ONCE

      # @param storage [Hash{Symbol => Object}, nil] the fiber storage that the block sees
      def initialize(block, storage = nil)
        @block = block
        @storage = storage
        @done = Thread::Queue.new
        @lock = Thread::Mutex.new
        @thread = @value = @error = nil
        @begun = @ended = false
      end

      def ended? = @ended

      # @return [Boolean] whether the thread may run it
      def waits? = !(@begun || @ended)

      # @return [Boolean] whether the thread can run more jobs
      def run
        return true unless begin?

        begin
          @value = Thread.handle_interrupt(AT_ONCE) { work }
          outcome = true
        rescue Exception => e # any exception is raised in the calling strand
          outcome = @error = e
        ensure
          outcome || @begun ? finish : put_back # also if the thread is killed, or the block ends it
        end
        true
      end

      # Ends it without running it.
      def fail(error)
        @error = error
        finish
      end

      # @param seconds [Numeric, nil]
      def wait(seconds = nil)
        @done.pop(timeout: seconds) unless @ended
      end

      def value
        raise @error if @error

        @value
      end

      private

      # The thread has run blocks of other strands.
      def work
        @storage&.each { |name, value| Fiber[name] = value }
        call_block
      ensure
        Worker.clear
      end

      # In one step, for between two the thread may be killed.
      def call_block = (@begun = true) && @block.call

      def begin? = @lock.synchronize { @thread = Thread.current unless @ended }

      # The thread was killed before it has begun. Another one will.
      def put_back = @lock.synchronize { @thread = nil }

      def finish
        @lock.synchronize { @thread = nil }
      ensure
        @ended = true
        @done.close
      end
    end

    # A job that may use memory of the strand, and so is interrupted when the strand is cancelled.
    class Loan < Job
      # @param system_call [Boolean] it ends by EINTR; an exception could lose the descriptor that it has made
      def initialize(block, system_call)
        super(block)
        @system_call = system_call
        @recalled = @cut = false
      end

      # @return [Boolean] whether it was recalled before it was done
      def cut? = @cut

      def run = super && !@recalled

      # Interrupts the job. Called again until it has ended, because an interrupt may come just before the system call waits.
      def recall
        @lock.synchronize do
          next if @ended || (@recalled && !@system_call)

          @recalled = true
          @thread&.raise(Recall)
          next if @thread || @system_call

          # It has not begun, and never will.
          @cut = @ended = true
        end
      end

      private

      def put_back
        super
        @recalled = false # that was the other thread
      end

      def work
        if @system_call
          @cut = (@begun = true) && Ringspun.__send__(:interrupted_call?, @block) && @recalled
        else
          Thread.handle_interrupt(Recall => :immediate) { call_block }
        end
        nil
      rescue Recall
        @cut = true
        nil
      end
    end

    # One thread of the pool, and the queue with its next job.
    class Worker
      WHILE_IT_WAITS = { Object => :on_blocking, Recall => :never }.freeze
      private_constant :WHILE_IT_WAITS

      # What this thread has in its fiber storage and its fiber-locals: what blocks have left, and what it has inherited from the
      # strand that made it.
      def self.clear
        Fiber.current.storage&.each_key { |name| Fiber[name] = nil }
        Thread.current.keys.each { |name| Thread.current[name] = nil }
      end

      def initialize(pool, job)
        @pool = pool
        @jobs = Thread::Queue.new
        @thread = Thread.new { work(job) }
        @thread.name = "ringspun offload"
      end

      def give(job)
        Ringspun.__send__(:only_looks, @thread, false)
        @jobs << job
      end

      # Called under the pool's lock. From now on this thread wakes no strand, so a deadlock does not wait for it.
      def rest = Ringspun.__send__(:only_looks, Thread.current, true)

      # @param seconds [Numeric] how long to wait for a job
      # @return [Job, nil]
      def take(seconds) = Thread.handle_interrupt(WHILE_IT_WAITS) { @jobs.pop(timeout: seconds) }

      # @return [Job, nil] the one that it has and has not begun
      def unbegun = @job&.waits? ? @job : @jobs.pop(timeout: 0)

      private

      # Under the mask {LATER}, which it has from its maker.
      def work(job)
        @job = job
        Worker.clear
        @job = @pool.next_job(self) while @job&.run
      ensure
        @pool.left(self)
      end
    end
    private_constant :Recall, :Job, :Loan, :Worker

    class << self
      # @return [Offload] the pool of {Ringspun.offload}, one for each ractor of a process
      def current = of(:ringspun_offload) { |before| new(before&.limit || 8) }

      # A pool without a limit, for work that may wait for other work: with a limit, that other work might never begin.
      #
      # @return [Offload]
      def unlimited = of(:ringspun_offload_unlimited) { new(Float::INFINITY) }

      private

      def of(name)
        pool = Ractor.current[name]
        pool&.pid == Process.pid ? pool : Ractor.current[name] = yield(pool)
      end
    end

    attr_reader :pid, :limit

    def initialize(limit)
      @limit = limit
      @pid = Process.pid
      @lock = Thread::Mutex.new
      @waiting = []
      @idle = []
      @workers = 0
    end

    # @param limit [Integer]
    def limit=(limit)
      unless limit.is_a?(Integer) && limit.positive?
        raise UsageError, "offload_limit: must be a positive Integer, got #{limit.inspect}"
      end

      @limit = limit
    end

    # Runs the block to its end.
    def call(&block)
      return Fiber.blocking { block.call } if in_signal_handler?

      job = Job.new(block, Fiber.current.storage)
      Ringspun.shield { submit(job).wait }
      job.value
    end

    # Runs work that may use memory of the strand. The work has ended when this returns or raises. If the strand is cancelled, the
    # work is interrupted. If the strand unwinds already, only a system call is: other work, such as closing a file, runs to its
    # end.
    #
    # @return [Boolean] false when it was not done
    def lend(work, system_call)
      if in_signal_handler?
        Fiber.blocking { work.call }
        return true
      end

      loan = Loan.new(work, system_call)
      spared = !system_call && !$!.nil? && Ringspun.__send__(:refused?)
      begin
        Ringspun.shield { submit(loan).wait(LOOK_SECONDS.min) }
        look_after(loan, spared)
      ensure
        Ringspun.shield { recall(loan) } unless loan.ended?
      end
      loan.value
      !loan.cut?
    end

    # --- for workers ---

    # @return [Job, nil] nil: there was none for IDLE_SECONDS, and the worker must end
    def next_job(worker)
      job = @lock.synchronize do
        next @waiting.shift unless @waiting.empty?

        worker.rest
        @idle.push(worker)
        nil
      end
      job || worker.take(IDLE_SECONDS) || @lock.synchronize { worker.take(0) unless @idle.delete(worker) }
    end

    # The thread ends. Another one gets the job that it was given and has not begun.
    def left(worker)
      @lock.synchronize do
        @workers -= 1
        @idle.delete(worker)
        job = worker.unbegun
        @waiting.unshift(job) if job
        serve_waiting
      end
    end

    private

    # Waits in a shield: if the work is done before it can be interrupted, the cancellation stays pending and is not lost.
    def look_after(loan, spared)
      seconds = LOOK_SECONDS.min
      until loan.ended?
        recalled = !spared && Ringspun.__send__(:refused?)
        Ringspun.shield do
          loan.recall if recalled
          loan.wait(seconds)
        end
        seconds = [seconds * 1.25, LOOK_SECONDS.max].min
      end
    end

    def recall(loan)
      until loan.ended?
        loan.recall
        loan.wait(LOOK_SECONDS.max)
      end
    end

    # In a signal handler CRuby refuses to lock a Mutex (rb_mutex_lock in thread_sync.c), so a strand cannot wait there. The lock
    # is nobody else's, for to wait for it would be a wait that can be cancelled.
    def in_signal_handler?
      Thread::Mutex.new.synchronize { false }
    rescue ThreadError
      true
    end

    def submit(job)
      @lock.synchronize do
        idle = @idle.pop
        next idle.give(job) if idle

        @waiting.push(job)
        serve_waiting
      end
      job
    end

    def serve_waiting
      start(@waiting.shift) while @workers < @limit && !@waiting.empty?
    rescue ThreadError => e
      # No more threads: the present ones take the jobs, if there are any and their number is limited.
      @waiting.shift.fail(e) while !@waiting.empty? && (@workers.zero? || @limit.infinite?)
    end

    def start(job)
      Thread.handle_interrupt(LATER) do # a thread inherits the mask of its maker
        @workers += 1
        worker = Worker.new(self, job)
      ensure
        unless worker
          @workers -= 1
          @waiting.unshift(job)
        end
      end
    end
  end
  private_constant :Offload

  class << self
    # Runs the block on a thread of a small pool, while this strand waits and others run: for calls that block the thread, as in C
    # extensions that do not use the fiber scheduler. The block runs to its end; a cancellation is raised at the strand's next
    # wait. It sees a copy of the strand's fiber storage. Outside of {Ringspun.run} the block is called directly, because no other
    # strand would run. So it is in a {Simulation}, where no real thread may decide the order of events.
    #
    # May switch strands.
    #
    # @yield on another thread
    # @return [Object] the block's value
    # @raise [Exception] what the block raised
    # @since 0.1.0
    def offload(&block)
      raise UsageError, "offload needs a block" unless block
      return yield if !Fiber.current_scheduler.is_a?(Scheduler) || Machine.current.backend.name == :sim

      Offload.current.call(&block)
    end

    # @return [Integer] how many blocks {offload} runs at once; further ones wait
    # @since 0.1.0
    def offload_limit = Offload.current.limit

    # @param limit [Integer]
    # @raise [UsageError] when it is not positive
    # @since 0.1.0
    def offload_limit=(limit)
      Offload.current.limit = limit
    end

    private

    # For the scheduler's hook.
    def lend(work, system_call) = Offload.unlimited.lend(work, system_call)
  end
end
