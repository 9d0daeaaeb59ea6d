# frozen_string_literal: true

module Ringspun
  # Runs a program on a simulated kernel: time is virtual, pipes, sockets and files are in memory, and every decision of the
  # kernel is drawn from a seed. The same seed gives the same run, to the last switch.
  class Simulation
    # What a run has come to: the value of the block, the seed, a hash of all events (equal for equal runs), its virtual seconds,
    # and how many simulated descriptors nobody has closed.
    class Result
      attr_reader :value, :seed, :trace_hash, :elapsed, :open_descriptors

      def initialize(value, seed, elapsed, trace_hash, open_descriptors)
        @value = value
        @seed = seed
        @elapsed = elapsed
        @trace_hash = trace_hash
        @open_descriptors = open_descriptors
      end
    end

    # Runs the block like Ringspun.run, on a simulated machine. Strands of the machine before do not run meanwhile.
    #
    # faults: false: none; true: a mix that every program must survive; or a Hash with probabilities, see FAULTS
    def self.run(seed: 0, faults: true, &block)
      raise UsageError, "Simulation.run needs a block" unless block
      raise UsageError, "seed: expected an Integer that is not negative, got #{seed.inspect}" unless natural?(seed)

      chances = chances(faults)
      began = nil
      machine = __open(seed, chances)
      begin
        began = machine.now
        value = Ringspun.run(&block)
      ensure
        known = __close(machine)
      end
      Result.new(value, seed, known[0] - began, known[1], known[2])
    end

    # Runs the block with one seed after the other, and stops at the first that fails; the message of its error names the seed.
    # Returns how many it has run.
    def self.explore(count, from: 0, faults: true, &block)
      raise UsageError, "Simulation.explore needs a block" unless block
      raise UsageError, "count: expected an Integer that is not negative, got #{count.inspect}" unless natural?(count)
      raise UsageError, "from: expected an Integer that is not negative, got #{from.inspect}" unless natural?(from)

      count.times do |index|
        run(seed: from + index, faults: faults, &block)
      rescue Exception => error
        raise error.exception("seed #{from + index}: #{error.message}")
      end
    end

    class << self
      private

      def natural?(number) = number.is_a?(Integer) && number >= 0

      # In thousandths.
      def chances(faults)
        return if faults == true
        return {} if faults == false
        raise UsageError, "faults: expected true, false or a Hash of fault => probability" unless faults.is_a?(Hash)

        faults.each_with_object({}) do |(name, probability), all|
          raise UsageError, "faults: unknown fault #{name.inspect}; Simulation::FAULTS lists them" unless FAULTS.include?(name)
          unless probability.is_a?(Numeric) && probability >= 0 && probability <= 1
            raise UsageError, "faults: #{name} must lie between 0.0 and 1.0, got #{probability.inspect}"
          end

          all[name] = (probability * 1000).round
        end
      end
    end
  end
end
