# frozen_string_literal: true

module Ringspun
  # Runs a program in a world of its own: time is virtual, pipes, sockets and files live in memory, and everything that a
  # kernel decides is drawn from a seed. One seed is one run, to the last switch.
  #
  #   result = Ringspun::Simulation.run(seed: 42) { |machine| machine.sleep(3600); machine.now }
  class Simulation
    # What can go wrong, as keys for `faults:`.
    FAULTS = Machine::SIMULATED_FAULTS

    # What a run came to.
    #
    # @!attribute value [Object] the block's
    # @!attribute seed [Integer]
    # @!attribute trace_hash [Integer] equal for equal runs
    # @!attribute elapsed [Float] seconds of virtual time
    # @!attribute open_descriptors [Integer] simulated descriptors that nobody closed
    # @!attribute trace [Array] the last events: [seconds, what, subject, detail]
    Result = Struct.new(:value, :seed, :trace_hash, :elapsed, :open_descriptors, :trace, keyword_init: true)

    # Runs the block as {Ringspun.run} does, on a simulated machine and a thread of its own. The caller waits for that as by
    # Thread#value: the strands of its own machine stand still meanwhile. What interrupts the caller ends the simulation, and
    # the caller goes on when the simulated strands have unwound; the signal that cancels a surrounding {Ringspun.run}
    # cancels the simulation with it.
    #
    # @param seed [Integer] 64 bits
    # @param faults [Boolean, Hash{Symbol => Float}] false: none, true: a mix that every program must stand, or
    #   probabilities between 0.0 and 1.0, and :delay_max in seconds
    # @yieldparam machine [Machine]
    # @return [Result]
    # @raise [DeadlockError] when nothing can go on; the message names every strand and what it waits for
    # @raise [Exception] what the block raised
    # @since 0.1.0
    def self.run(seed: 0, faults: true, &block)
      raise UsageError, "Simulation.run needs a block" unless block
      raise UsageError, "seed: must be an Integer, got nil; leave it out for 0" if seed.nil?
      raise UsageError, "faults: must be true, false or a Hash of fault => probability, got nil" if faults.nil?

      new(seed, faults).call(&block)
    end

    # Tries one seed after the other and stops at the first that fails. As with {.run}, the strands of the caller's own
    # machine stand still meanwhile.
    #
    # @param count [Integer] how many
    # @param from [Integer] the first seed
    # @return [Integer] how many were run
    # @raise [Exception] what the failing seed raised; its message names the seed
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

    # Not a method made of a block: the error may leave the ractor, and the block cannot.
    module Reworded
      # @api private
      def message = @reworded
    end
    private_constant :Reworded

    # A copy, for the error may be frozen, and one that says so even where its class has a message of its own.
    def self.with_message(error, text)
      copy = error.clone(freeze: false).exception(text)
      copy.extend(Reworded).instance_variable_set(:@reworded, text) unless copy.message == text
      copy
    end
    private_class_method :with_message

    # Cancels the simulation that this thread waits for, if it does. From a signal handler, too.
    #
    # @api private
    def self.cancel_of(thread) = thread.thread_variable_get(:ringspun_simulation)&.__send__(:cancel)
    private_class_method :cancel_of

    # @api private
    def initialize(seed, faults)
      @seed = seed
      @faults = faults
      @done = Thread::Queue.new
    end

    # A thread of its own, so that the simulation stands beside whatever machine the caller's thread has.
    #
    # @api private
    def call(&block) = Fiber.blocking { run_beside(&block) }

    private

    def run_beside(&block)
      Thread.current.thread_variable_set(:ringspun_simulation, self)
      check_cancelled
      @thread = Thread.new { keep_outcome(&block) }
      @done.pop
      check_cancelled unless @error
      raise @error if @error

      @result
    ensure
      unwind
      Thread.current.thread_variable_set(:ringspun_simulation, nil)
    end

    def cancel
      @cancelled = true
      @root&.machine&.schedule(@root, cancellation)
      Simulation.__send__(:cancel_of, @thread) if @thread
    rescue ClosedError # it has ended meanwhile
      nil
    end

    def cancellation = Cancelled.new("cancelled: the run around this simulation was")

    # A run that was cancelled before leaves no time for a simulation: the next one of an exploration, for example.
    def check_cancelled
      raise cancellation if @cancelled || Thread.current.thread_variable_get(:ringspun_run)&.signalled?
    end

    # Interrupted, the thread may be anywhere, even before its first step. CRuby must not be asked to join one that was
    # killed: where the kill met a fiber first, it takes what that left for a bug of its own.
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
