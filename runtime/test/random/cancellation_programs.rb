# frozen_string_literal: true

require_relative "cancellation_programs/actions"
require_relative "cancellation_programs/waits"

# Random programs in which a strand waits for this and that, is cancelled at some point, and has `ensure` blocks. What these do
# without a need to wait must be done, whatever came before: a ledger says what was done, and is compared with what has arrived.
#
# On a simulated machine a program runs once for each of its steps and once for each time at which anything happens in it, and is
# cancelled there. On a real kernel it is cancelled at a few random points.
class CancellationPrograms
  Broken = Class.new(StandardError)
  Failure = Class.new(StandardError)

  WAYS = %i[terminate scope sibling deadline timeout].freeze
  # Those that a strand can be cancelled by from within, between two of its steps.
  WAYS_WITHIN = %i[terminate scope sibling].freeze
  REAL_POINTS = 8
  PHASES = 3
  TIMES_MAX = 40
  SECONDS_MAX = 30
  NEVER = 1000

  # @attr setting [Hash] `fresh`: each action has a turn of its own; `levels`: of ensure blocks
  # @attr steps [Array] of [:body or :ensure, name, number]
  Program = Data.define(:seed, :setting, :steps) do
    def run = CancellationPrograms.explore(self)
    def to_s = ["  #{setting}", *steps.map { |step| "  #{step.inspect}" }].join("\n")
  end

  class << self
    # @return [Program]
    def draw(seed, simulated: false)
      random = Random.new(seed)
      setting = { simulated:, way: WAYS.sample(random:), fresh: random.rand(2).zero?, levels: random.rand(1..3) }
      body = Array.new(random.rand(0..5)) { [:body, Waits::NAMES.sample(random:), random.rand(1..1000)] }
      names = simulated ? Actions::SIMULATED : Actions::NAMES
      ensured = Array.new(random.rand(1..25)) { [:ensure, names.sample(random:), random.rand(1..1000)] }
      Program.new(seed:, setting:, steps: body + ensured)
    end

    # Runs it with a cancellation at each of its points.
    def explore(program)
      points = program.setting[:simulated] ? simulated_points(program) : real_points(program)
      points.each { |point| new(program, point).run }
    end

    private

    def simulated_points(program)
      whole = new(program, nil).run
      times = whole.times.first(TIMES_MAX).product((0...PHASES).to_a).map { |time, phase| [:time, time, phase] }
      within?(program) ? times + (0...whole.checkpoints).map { |step| [:step, step] } : times
    end

    def real_points(program)
      random = Random.new(program.seed)
      Array.new(REAL_POINTS) do
        next [:step, random.rand(0..program.steps.size)] if within?(program) && random.rand(2).zero?

        [:time, [0, 0.000_05, 0.000_3, 0.001].sample(random:), random.rand(0..3)]
      end
    end

    def within?(program) = WAYS_WITHIN.include?(program.setting[:way])
  end

  # How many points there were to be cancelled at from within; at what times something has happened.
  attr_reader :checkpoints, :times

  def initialize(program, point)
    @program = program
    @setting = program.setting
    @point = point
    @checkpoints = 0
  end

  # @return [self]
  def run
    if @setting[:simulated] then simulate
    else Ringspun.run { |machine| on(machine) }
    end
    self
  rescue Broken => error
    raise Broken, "cancelled by #{@setting[:way]} at #{@point.inspect}: #{error.message}", error.backtrace
  end

  private

  def simulate
    result = Ringspun::Simulation.run(seed: @program.seed, faults: false) do |machine|
      @began = machine.now
      on(machine)
    end
    @times = result.trace.map { |seconds,| seconds - @began }.select { |seconds| seconds.between?(0, @ended) }.uniq
    raise Broken, "#{result.open_descriptors} descriptors are left" unless result.open_descriptors.zero?
  end

  def on(machine)
    @machine = machine
    @actions = Actions.new(machine, @setting)
    @waits = Waits.new(machine)
    machine.timeout(SECONDS_MAX) { cancel_it }
    @ended = machine.now - @began if @began
    @actions.check
  rescue Ringspun::TimeoutError
    raise Broken, "it does not end"
  ensure
    @waits&.close
    @actions&.close
  end

  def cancel_it
    outer = @machine.spin { under_way { live } }
    @victim ||= outer
    canceller = @machine.spin { cancel_in_time } if @point&.first == :time
    end_of(outer)
    canceller&.terminate
    end_of(canceller) if canceller
  end

  def end_of(strand)
    strand.join
  rescue Ringspun::TerminatedError, Ringspun::TimeoutError, Failure
    nil
  end

  # The block in a strand, or a scope, that can be cancelled.
  def under_way(&)
    seconds = @point&.first == :time ? @point[1] : NEVER
    case @setting[:way]
    when :terminate then yield
    when :timeout then @machine.timeout(seconds, &)
    when :deadline then @machine.scope(deadline: seconds, &)
    else
      @machine.scope do |scope|
        @scope = scope
        scope.spin(&)
      end
    end
  end

  def cancel_in_time
    return unless WAYS_WITHIN.include?(@setting[:way])

    @machine.sleep(@point[1])
    @point[2].times { @machine.yield }
    cancel
  end

  def cancel
    case @setting[:way]
    when :terminate then @victim.terminate
    when :scope then @scope&.cancel
    when :sibling then @scope&.spin { raise Failure }
    end
  rescue Ringspun::ClosedError, Ringspun::UsageError # the scope has ended
    nil
  end

  def live
    body, ensured = @program.steps.partition { |kind,| kind == :body }
    levels = ensured.each_slice([ensured.size.fdiv(@setting[:levels]).ceil, 1].max).to_a
    @actions.expect(ensured)
    inside(levels) do
      body.each do |_, name, number|
        checkpoint
        @waits.call(name, number)
      end
    end
  end

  # An ensure block around another one.
  def inside(levels, &block)
    return yield if levels.empty?

    begin
      inside(levels.drop(1), &block)
    ensure
      levels.first.each do |_, name, number|
        checkpoint
        @actions.call(name, number)
      end
    end
  end

  def checkpoint
    cancel if @point == [:step, @checkpoints]
    @checkpoints += 1
  end
end
