# frozen_string_literal: true

# Random trees of evaluations on simulated machines: they wait, fail, conclude and resume each other, and wait for each other.
# One seed is one tree, and one order of all that happens in it.
class EvaluationTrees
  NODES_MAX = 40
  DEPTH_MAX = 4
  STEPS_MAX = 6
  TURNS_MAX = 10_000

  Evaluation = Ringspun::Evaluation
  Failure = Class.new(StandardError)
  Broken = Class.new(StandardError)

  # One run, as far as it is known from outside.
  class Node
    attr_accessor :evaluation, :begun, :fiber, :ensured, :concluded_to, :seen

    def initialize
      @ensured = 0
      @concluded_to = []
      @seen = []
    end

    def over? = begun ? ensured.positive? && evaluation.concluded? : evaluation&.concluded?
  end

  # Raises what names the seed when one of them breaks a rule.
  def self.explore(count, from: 0)
    seed = from
    Ringspun::Simulation.explore(count, from: from) do |machine|
      new(machine, seed).run
      seed += 1
    end
  end

  def initialize(machine, seed)
    @machine = machine
    @random = Random.new(seed)
    @nodes = []
  end

  def run
    rand(2..4).times { rescue_all { grow(0) } }
    await_all
    Ringspun.wait(0.001) # a strand that was to begin one which never does is still to find that out
    @nodes.each { |node| check(node) }
    left = @machine.metrics.values_at(:ops_in_flight, :timers)
    strands = @machine.strands.size - @strands_before
    raise Broken, "left: #{strands} strands, #{left} ops and timers" unless [strands, *left] == [0, 0, 0]
  end

  private

  def rand(...) = @random.rand(...)

  def one_of(list) = list[rand(list.size)]

  def seconds = one_of([0, 0, 0.001, 0.002, 0.01])

  # --- growing ---

  # Starts a run by one of the four forms; answers its node.
  def grow(depth)
    @strands_before ||= @machine.strands.size
    return if @nodes.size >= NODES_MAX || depth >= DEPTH_MAX

    @nodes << (node = Node.new)
    body = Ringspun.concurrent_proc { live(node, depth) }
    form = one_of(%i[call call_nonblock call_detached call_and_forget])
    value = rescuing { body.__send__(form) }
    node.evaluation ||= value if form == :call_detached
    node
  end

  def live(node, depth)
    node.begun = true
    node.fiber = Fiber.current
    raise Broken, "one evaluation for two runs" if node.evaluation && !node.evaluation.equal?(Evaluation.current)

    node.evaluation = Evaluation.current
    rand(0..STEPS_MAX).times { step(depth) }
    raise Failure if rand(10).zero?

    rand(1000)
  ensure
    begin
      Ringspun.wait(seconds) if rand(3).zero?
    ensure
      node.ensured += 1
    end
  end

  def rescuing
    yield
  rescue Failure, Ringspun::TerminatedError, Evaluation::Error
    raise if rand(8).zero?
  end

  def known = @nodes.select(&:evaluation)

  # --- what one does ---

  STEPS = %i[wait wait grow grow grow await await_fastest conclude conclude resume resumed].freeze

  def step(depth)
    case one_of(STEPS)
    when :wait then Ringspun.wait(seconds)
    when :grow then await_child(grow(depth + 1))
    when :await then rescuing { await(one_of(known), within: seconds) }
    when :await_fastest then rescuing { await_fastest }
    when :conclude then conclude(one_of(known))
    when :resume then rescuing { one_of(known).evaluation.resume!(:resumed) }
    when :resumed then rescuing { Ringspun.await_resume!(within: seconds, timeout_result: :late) }
    end
  end

  # Without a limit: no run waits so for one above it, and so none for itself.
  def await_child(node)
    rescuing { await(node) } if node&.evaluation && rand(2).zero?
  end

  def await(node, **options)
    late = options[:within] ? one_of([{}, { timeout_result: :late }]) : {}
    node.evaluation.await_result(**options, **late) do |result|
      node.seen << result unless result == :late || result == :resumed || result.is_a?(Evaluation::TimeoutError)
      result
    end
  rescue Ringspun::UsageError # itself, or one that called it
    nil
  end

  def await_fastest
    nodes = Array.new(rand(2..4)) { one_of(known) }
    fastest = Ringspun.await_fastest(*nodes.map(&:evaluation), within: seconds, timeout_result: :late)
    return if %i[late resumed].include?(fastest)
    raise Broken, "not concluded, and the fastest" unless fastest.concluded?
  end

  # From outside, it has unwound then.
  def conclude(node)
    value = one_of([Object.new, Failure.new])
    return if node.evaluation.concluded?

    node.concluded_to << value
    outside = node.begun && !node.fiber.equal?(Fiber.current)
    node.evaluation.conclude_to(value)
    raise Broken, "it has not unwound" if outside && node.ensured.zero?
  end

  # --- the rules ---

  def await_all
    TURNS_MAX.times do
      return if @nodes.all?(&:over?)

      rescue_all { Ringspun.wait(0.001) }
    end
    raise Broken, "still not over:\n#{@machine.describe_strands}"
  end

  def rescue_all
    yield
  rescue Failure, Ringspun::TerminatedError, Evaluation::Error
    nil
  end

  def check(node)
    raise Broken, "its ensure block ran #{node.ensured} times" unless node.ensured == (node.begun ? 1 : 0)
    raise Broken, "concluded #{node.concluded_to.size} times" if node.concluded_to.size > 1

    result = node.evaluation.await_result { |final| break final }
    wanted = node.concluded_to.first
    raise Broken, "concluded to #{wanted.inspect}, and it is #{result.inspect}" if wanted && !result.equal?(wanted)
    raise Broken, "several results: #{node.seen.inspect}" unless node.seen.all? { |seen| seen.equal?(result) }
  end
end
