# frozen_string_literal: true

# Random trees of runs: blocks that spin strands in every way, open runs, scopes and generators, fork, and are called back. The
# oracle is a plain walk over the tree. It gives each strand to the innermost run around it, and when that run returns, exactly
# its own must have ended: all of them, and of those that others hold back none.
#
# A held strand waits at the gate of its run, which opens when the run's block is through, and so after all inner runs have
# returned. A run that waits for too many never returns, and the machine finds the deadlock.
class NestedRuns
  Broken = Class.new(StandardError)

  # How a strand is begun. Each calls its block in a strand of its own.
  SPINS = {
    spin: ->(machine, &block) { machine.spin(&block) },
    schedule: ->(_, &block) { Fiber.schedule(&block) },
    detached: ->(_, &block) { Ringspun.concurrent_proc(&block).call_detached },
    nonblock: ->(_, &block) { Ringspun.concurrent_proc(&block).call_nonblock },
    callback: ->(machine, &block) { machine.spin { [1].each { block.call } } }
  }.freeze
  # What a block does around other steps, in its own strand.
  AROUND = %i[run run scope shield timeout generator fork].freeze
  DEPTH_MAX = 4
  STEPS_MAX = 4

  # @attr name [Integer] of the step, for the log
  # @attr kind [Symbol] of SPINS or AROUND, or :yield
  # @attr held [Boolean] a strand that waits at the gate of its run before it ends
  Step = Data.define(:name, :kind, :held, :steps) do
    def to_s(indent = 1)
      ["#{"  " * indent}#{kind} #{name}#{" held" if held}", *steps.map { |step| step.to_s(indent + 1) }].join("\n")
    end
  end

  Program = Data.define(:simulated, :steps) do
    def run = NestedRuns.new(self).run
    def to_s = ["  #{simulated ? "simulated" : "real"}", *steps.map(&:to_s)].join("\n")
  end

  class << self
    # @return [Program]
    def draw(seed, simulated: false)
      random = Random.new(seed)
      @names = 0
      Program.new(simulated:, steps: steps(random, 0))
    end

    private

    def steps(random, depth)
      Array.new(random.rand(1..STEPS_MAX)) { step(random, depth) }
    end

    def step(random, depth)
      kind = [:yield, *SPINS.keys, *AROUND].sample(random:)
      inner = kind == :yield || depth == DEPTH_MAX ? [] : steps(random, depth + 1)
      Step.new(name: @names += 1, kind:, held: SPINS.key?(kind) && random.rand(3).zero?, steps: inner)
    end
  end

  # A run that is open: the strands that belong to it, by name, and the gate at which the held ones wait.
  Open = Struct.new(:own, :gate)

  def initialize(program)
    @program = program
    @ended = {}
    @broken = []
  end

  def run
    @program.simulated ? Ringspun::Simulation.run(faults: false) { run_all } : run_all
    raise Broken, @broken.join("\n") if @broken.any?
  end

  private

  def machine = Ringspun::Machine.current

  def run_all = open_run { |around| walk(@program.steps, around) }

  # Its gate opens when its block, with all inner runs, is through. So what stands at it belongs to this run, and no inner run may
  # have waited for it.
  def open_run
    around = Open.new([], Ringspun::Queue.new)
    Ringspun.run do
      yield around
    ensure
      around.gate.close
    end
    left = around.own.reject { |name| @ended[name] }
    @broken << "a run has returned before #{left.inspect} of its own had ended" if left.any?
  end

  def walk(steps, around) = steps.each { |step| take(step, around) }

  def take(step, around)
    case step.kind
    when :yield then machine.yield
    when *SPINS.keys then begin_strand(step, around)
    when :run then open_run { |inner| walk(step.steps, inner) }
    when :scope then machine.scope { |scope| scope.spin { walk(step.steps, around) } }
    when :shield then Ringspun.shield { walk(step.steps, around) }
    when :timeout then machine.timeout(3600) { walk(step.steps, around) }
    when :generator then generate(step, around)
    when :fork then in_child(step)
    end
  end

  # A held one ends after all inner runs that its block has opened, and so does what it has begun before.
  def begin_strand(step, around)
    around.own << step.name
    SPINS.fetch(step.kind).call(machine) do
      machine.yield
      walk(step.steps, around)
      around.gate.pop if step.held && !around.gate.closed?
      machine.yield
    rescue Ringspun::ClosedError
      nil
    rescue StandardError => e
      @broken << "#{step.name}: #{e.class}: #{e.message}"
    ensure
      @ended[step.name] = true
    end
  end

  # The generator stands still between two steps, inside a run of its own, which has nothing to do with what is begun meanwhile.
  def generate(step, around)
    items = Enumerator.new { |list| open_run { |inner| step.steps.each { |each| list << take(each, inner) } } }
    step.steps.each_index do |index|
      items.next
      begin_strand(Step.new(name: [step.name, index], kind: :spin, held: true, steps: []), around)
    end
    exhaust(items)
  end

  def exhaust(items)
    items.next
  rescue StopIteration
    nil
  end

  # In the child its runs are the only ones. What it finds broken is its exit status.
  def in_child(step)
    return open_run { |inner| walk(step.steps, inner) } if @program.simulated

    pid = fork do
      @broken.clear
      open_run { |inner| walk(step.steps, inner) }
      warn(@broken) if @broken.any?
      exit!(@broken.empty?)
    rescue Exception => e
      warn(e.message)
      exit!(false)
    end
    _, status = Process.wait2(pid)
    @broken << "in a forked child: #{status}" unless status.success?
  end
end
