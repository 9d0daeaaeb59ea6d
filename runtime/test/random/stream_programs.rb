# frozen_string_literal: true

require_relative "stream_programs/bytes"
require_relative "stream_programs/flow"
require_relative "stream_programs/wires"

# Random programs of streams: two ends, connected by a wire, and on each a strand that writes and one that reads, in sizes around
# every limit of the code. Waits are cut short by timeouts and cancellations. A plain String says what a reader must get.
class StreamPrograms
  Broken = Class.new(StandardError)

  WIRES = %i[pipe socketpair tcp tls].freeze
  STEPS = 3..24
  # A strand waits so long for bytes that will not come. Longer than any program takes.
  SECONDS_MAX = 30

  # @attr setting [Hash] the wire, and options of both streams
  # @attr steps [Array] of [flow, side, name, arguments]
  Program = Data.define(:seed, :setting, :steps) do
    def run = StreamPrograms.new(self).run
    def to_s = ["  #{setting}", *steps.map { |step| "  #{step.inspect}" }].join("\n")
  end

  # @param seed [Integer]
  # @param simulated [Boolean]
  # @return [Program]
  def self.draw(seed, simulated: false)
    random = Random.new(seed)
    wire = (simulated ? WIRES.first(2) : WIRES).sample(random:)
    setting = { wire:, simulated:, high_water: [1, 4096, 65_536, 65_536, 200_000].sample(random:),
                bounded: !simulated && random.rand(2).zero?, faults: simulated && random.rand(4) != 0 }
    flows = wire == :pipe ? 1 : random.rand(1..2)
    steps = Array.new(random.rand(STEPS)) { Steps.draw(random, random.rand(flows)) }
    Program.new(seed:, setting:, steps:)
  end

  def initialize(program)
    @program = program
    @setting = program.setting
  end

  def run
    if @setting[:simulated]
      result = Ringspun::Simulation.run(seed: @program.seed, faults: @setting[:faults]) { |machine| on(machine) }
      raise Broken, "#{result.open_descriptors} descriptors are left" unless result.open_descriptors.zero?
    else
      Ringspun.run { |machine| on(machine) }
    end
  end

  private

  def on(machine)
    wire = Wires.make(machine, @setting)
    flows = wire.flows.each_with_index.map do |(from, to), index|
      Flow.new(machine, from, to, @program.steps.select { |flow,| flow == index })
    end
    finish(machine, flows)
    wire.close
    left = machine.metrics.values_at(:stream_buffers, :ops_in_flight)
    raise Broken, "left: #{left[0]} buffers, #{left[1]} ops" unless left == [0, 0]
  end

  # The first that breaks a rule ends the others.
  def finish(machine, flows)
    left = nil
    machine.timeout(SECONDS_MAX) do
      machine.scope do |scope|
        flows.each { |flow| scope.spin { flow.write_all } && scope.spin { flow.read_all } }
      end
    rescue Ringspun::Cancelled
      left = machine.describe_strands
      raise
    end
  rescue Ringspun::TimeoutError
    raise Broken, "it does not end:\n#{left}"
  end
end
