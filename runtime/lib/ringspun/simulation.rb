# frozen_string_literal: true

module Ringspun
  # Runs a program on a simulated kernel: time is virtual, pipes, sockets and files are in memory, and every decision of the
  # kernel is drawn from a seed. The same seed gives the same run, to the last switch.
  #
  #   result = Ringspun::Simulation.run(seed: 42) { |machine| machine.sleep(3600); machine.now }
  class Simulation
    # The names of faults, as keys for `faults:`.
    FAULTS = Machine::SIMULATED_FAULTS

    # The result of a run.
    #
    # @!attribute value [Object] the block's
    # @!attribute seed [Integer]
    # @!attribute trace_hash [Integer] equal for equal runs
    # @!attribute elapsed [Float] seconds of virtual time
    # @!attribute open_descriptors [Integer] simulated descriptors that nobody closed
    # @!attribute trace [Array] the last events: [seconds, what, subject, detail]
    Result = Struct.new(:value, :seed, :trace_hash, :elapsed, :open_descriptors, :trace, keyword_init: true)

    # Runs the block like {Ringspun.run}, on a simulated machine and a thread of its own. The calling thread waits for it, as in
    # Thread#value: other strands of its machine do not run meanwhile. An exception raised in the calling thread ends the
    # simulation, and is raised after the simulated strands have unwound. A signal that cancels a surrounding {Ringspun.run}
    # cancels the simulation too.
    #
    # @param seed [Integer] 64 bits
    # @param faults [Boolean, Hash{Symbol => Float}] false: none; true: a mix that every program must survive; or probabilities
    #   between 0.0 and 1.0, and :delay_max in seconds
    # @yieldparam machine [Machine]
    # @return [Result]
    # @raise [DeadlockError] when no strand can go on; the message names every strand and what it waits for
    # @raise [Exception] what the block raised
    # @since 0.1.0
    def self.run(seed: 0, faults: true, &block)
      raise UsageError, "Simulation.run needs a block" unless block
      raise UsageError, "seed: must be an Integer, got nil; leave it out for 0" if seed.nil?
      raise UsageError, "faults: must be true, false or a Hash of fault => probability, got nil" if faults.nil?

      new(seed, faults).call(&block)
    end

    # Runs the block with one seed after the other, and stops at the first that fails. As in {.run}, other strands of the caller's
    # machine do not run meanwhile.
    #
    # @param count [Integer] how many seeds
    # @param from [Integer] the first seed
    # @param faults [Boolean, Hash{Symbol => Float}] as for {.run}
    # @return [Integer] how many were run
    # @raise [Exception] the error of the failing seed; its message names the seed
    # @since 0.1.0
    def self.explore(count, from: 0, faults: true, &block)
      raise UsageError, "Simulation.explore needs a block" unless block
      raise UsageError,
            "count: must be an Integer and not negative, got #{count.inspect}" unless count.is_a?(Integer) && !count.negative?
      raise UsageError, "from: must be an Integer, got #{from.inspect}" unless from.is_a?(Integer)

      count.times do |i|
        run(seed: from + i, faults: faults, &block)
      rescue SignalException, SystemExit, NoMemoryError, Cancelled
        raise
      rescue Exception => e # a failed assertion of a test is not a StandardError
        raise with_message(e, "seed #{from + i}: #{e.message}"), cause: e.cause
      end
      count
    end

    # A module, and not a singleton method made of a block: the error may be passed to another ractor, which a block cannot.
    module Reworded
      # @api private
      def message = @reworded
    end
    private_constant :Reworded

    # A copy of the error with that message. A copy, because the error may be frozen. Extended, if its class overrides `message`.
    def self.with_message(error, text)
      copy = error.clone(freeze: false).exception(text)
      copy.extend(Reworded).instance_variable_set(:@reworded, text) unless copy.message == text
      copy
    end
    private_class_method :with_message

    # @api private
    def initialize(seed, faults)
      @seed = seed
      @faults = faults
      @done = Thread::Queue.new
    end

    # Runs it on a thread of its own, because the caller's thread may have a machine already.
    #
    # @api private
    def call(&block) = Fiber.blocking { run_beside(&block) }

    private

    def run_beside(&block)
      Run.beside = self
      check_cancelled
      @thread = Thread.new { keep_outcome(&block) }
      @done.pop
      check_cancelled unless @error
      raise @error if @error

      @result
    ensure
      unwind
      Run.beside = nil
    end

    def cancel
      @cancelled = true
      @root&.machine&.schedule(@root, cancellation)
      Run.cancel_beside(@thread) if @thread
    rescue ClosedError # it has ended meanwhile
      nil
    end

    def cancellation = Cancelled.new("cancelled: the run around this simulation was")

    # Raises if the surrounding run was cancelled before, for example between two seeds of {.explore}.
    def check_cancelled
      raise cancellation if @cancelled || Thread.current.thread_variable_get(:ringspun_run)&.signalled?
    end

    # After an interrupt the thread may be anywhere, even before its first step. A killed thread must not be joined: if a fiber
    # was killed first, Thread#join aborts the process (rb_bug in thread_join, thread.c of CRuby).
    def unwind
      return unless @thread
      return @thread.join if @ended

      @thread.kill
      @done.pop(timeout: 0.01) until @done.closed? || !@thread.alive?
    end

    def keep_outcome(&block)
      @result = simulate(&block)
      @ended = true
    rescue Exception => e
      @error = e
      @ended = true
    ensure
      @done.close
    end

    def simulate
      machine = Machine.new(backend: :sim, seed: @seed, faults: @faults, trace: true)
      @root = machine.running
      machine.schedule(@root, cancellation) if @cancelled
      machine.locate = true
      started = machine.now
      value = Ringspun.run { |running| yield running }
      Result.new(value: value, seed: @seed, trace_hash: machine.trace_hash, elapsed: machine.now - started,
                 open_descriptors: machine.__send__(:sim_open_descriptors), trace: machine.trace)
    ensure
      machine&.close
    end
  end
end
