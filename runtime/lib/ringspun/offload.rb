# frozen_string_literal: true

module Ringspun
  # Threads for what can only block: C extensions that wait without telling Ruby's fiber scheduler. They start when there is work
  # for them and end when there has been none for a while.
  #
  # @api private
  class Offload
    IDLE_SECONDS = 10
    private_constant :IDLE_SECONDS

    # What one strand waits for while a thread does it.
    class Job
      def initialize(block)
        @block = block
        @done = Thread::Queue.new
        @value = @error = nil
      end

      def run
        @value = @block.call
      rescue Exception => e # whatever it is, it is the caller's
        @error = e
      ensure
        @done.close # even where the block ends its thread
      end

      # Without having been run.
      def fail(error)
        @error = error
        @done.close
      end

      def wait = @done.pop

      def value
        raise @error if @error

        @value
      end
    end

    # One thread, and where it finds its next job.
    class Worker
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

      # For the pool, under its lock: from now on nobody need hope that this thread wakes a strand.
      def rest = Ringspun.__send__(:only_looks, Thread.current, true)

      # @param seconds [Numeric] how long to wait for it
      # @return [Job, nil]
      def take(seconds) = @jobs.pop(timeout: seconds)

      private

      def work(job)
        while job
          job.run
          job = @pool.next_job(self)
        end
      ensure
        @pool.left(self)
      end
    end
    private_constant :Job, :Worker

    class << self
      # @return [Offload] this process's, or rather this ractor's
      def current
        pool = Ractor.current[:ringspun_offload]
        return pool if pool&.pid == Process.pid

        Ractor.current[:ringspun_offload] = new(pool&.limit || 8)
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

      job = Job.new(block)
      Ringspun.shield { submit(job).wait }
      job.value
    end

    # --- for workers ---

    # @return [Job, nil] nil when there has been none for so long that the worker is to end
    def next_job(worker)
      job = @lock.synchronize do
        next @waiting.shift unless @waiting.empty?

        worker.rest
        @idle.push(worker)
        nil
      end
      job || worker.take(IDLE_SECONDS) || @lock.synchronize { worker.take(0) unless @idle.delete(worker) }
    end

    # The thread ends, for whatever reason. What it was given and has not begun is another's.
    def left(worker)
      @lock.synchronize do
        @workers -= 1
        @idle.delete(worker)
        job = worker.take(0)
        @waiting.unshift(job) if job
        serve_waiting
      end
    end

    private

    # There CRuby allows no lock, and so nobody to wait for.
    def in_signal_handler?
      @lock.synchronize { false }
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
      # Those that there are come to it, if they come to an end.
      @waiting.shift.fail(e) while !@waiting.empty? && @workers.zero?
    end

    def start(job)
      @workers += 1
      worker = Worker.new(self, job)
    ensure
      unless worker
        @workers -= 1
        @waiting.unshift(job)
      end
    end
  end
  private_constant :Offload

  class << self
    # Runs the block on a thread of a small pool, while this strand waits and others run: for calls that block the thread, as C
    # extensions do that know nothing of fiber schedulers. The block runs to its end; a cancellation meets the strand's next
    # wait. Outside of {Ringspun.run}, where nobody else would run, it is simply called; and so it is in a {Simulation}, where
    # no thread of the outside world may decide what comes first.
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

    # @return [Integer] how many blocks {offload} runs at once; others wait for their turn
    # @since 0.1.0
    def offload_limit = Offload.current.limit

    # @param limit [Integer]
    # @raise [UsageError] when it is not positive
    # @since 0.1.0
    def offload_limit=(limit)
      Offload.current.limit = limit
    end
  end
end
