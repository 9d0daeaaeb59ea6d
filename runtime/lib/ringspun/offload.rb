# frozen_string_literal: true

module Ringspun
  # A few threads for what can only block: C extensions that wait without telling Ruby's fiber scheduler. One pool for each
  # process (and ractor); threads start when there is work for them and end when there has been none for a while.
  #
  # @api private
  class Offload
    IDLE_SECONDS = 10
    Job = Struct.new(:block, :value, :error, :done)
    private_constant :IDLE_SECONDS, :Job

    class << self
      # @return [Offload] this process's
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
      @jobs = Thread::Queue.new
      @lock = Thread::Mutex.new
      @threads = 0
    end

    # @param limit [Integer]
    def limit=(limit)
      unless limit.is_a?(Integer) && limit.positive?
        raise UsageError, "offload_limit: must be a positive Integer, got #{limit.inspect}"
      end

      @limit = limit
    end

    def call(&block)
      return Fiber.blocking { block.call } if in_signal_handler?

      job = Job.new(block, nil, nil, Thread::Queue.new)
      @jobs << job
      # One that is idle counts as waiting until it has run, so two jobs in a row must not both rely on it.
      start_thread if @jobs.size > @jobs.num_waiting
      Ringspun.shield { job.done.pop }
      raise job.error if job.error

      job.value
    end

    private

    # There CRuby allows no lock, and so nobody to wait for.
    def in_signal_handler?
      @lock.synchronize { false }
    rescue ThreadError
      true
    end

    def start_thread
      @lock.synchronize do
        return if @threads >= @limit

        @threads += 1
      end
      Thread.new { work }.name = "ringspun offload"
    end

    def work
      loop do
        job = @jobs.pop(timeout: IDLE_SECONDS)
        if job then run(job)
        elsif ended?
          break
        end
      end
    end

    # Under the lock, so that a job which came meanwhile finds either this thread or the place for another.
    def ended?
      @lock.synchronize do
        ended = @jobs.empty?
        @threads -= 1 if ended
        ended
      end
    end

    def run(job)
      job.value = job.block.call
    rescue Exception => e # whatever it is, it is the caller's
      job.error = e
    ensure
      job.done << true
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
