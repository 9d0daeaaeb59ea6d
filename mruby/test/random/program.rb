# frozen_string_literal: true

# A random program of strands: a tree of steps, each with others inside. It is drawn as a whole before it runs, so each
# step can be left out. And it says by itself, without running, what it may come to, in whatever order its strands run.
class Program
  # Which steps a step may be, with how many others inside (:some: a few), and how often.
  KINDS = {
    number: [0, 2], wait: [1, 3], give_way: [1, 3], failure: [0, 1], rescued: [1, 3], ensured: [1, 3],
    all: [:some, 6], strand: [1, 2], within: [1, 2], limited: [:some, 3], cancelled: [:some, 3], failing: [:some, 2],
    terminated: [1, 2], shielded: [1, 2], generator: [:some, 2], evaluation: [1, 3], nested: [1, 2],
    queue: [0, 2], pipe: [0, 2], mutex: [0, 1], semaphore: [0, 1], barrier: [0, 1], condition: [0, 1]
  }.freeze
  BAG = KINDS.flat_map { |kind, (_, weight)| [kind] * weight }.freeze
  LEAVES = (KINDS.keys.select { |kind| KINDS[kind][0] == 0 } - %i[failure]).freeze
  DEPTH_MAX = 5

  attr_reader :name, :kind, :numbers, :parts

  # @param random [Random]
  # @param in_run [Boolean] whether a run is around it, with which its strands and evaluations are cancelled: also while somebody
  #   waits for them in a shield
  def self.draw(random, name = "1", depth = 0, in_run: false)
    kind = depth == DEPTH_MAX ? LEAVES[random.rand(LEAVES.size)] : BAG[random.rand(BAG.size)]
    kind = :all if depth == 0
    kind = :within if kind == :shielded && in_run
    inside = KINDS[kind][0]
    count = inside == :some ? 1 + random.rand(3) : inside
    numbers = Array.new(4) { random.rand(1000) }
    in_run ||= kind == :nested
    new(name, kind, numbers, Array.new(count) { |index| draw(random, "#{name}.#{index + 1}", depth + 1, in_run: in_run) })
  end

  # What takes the place of a step that is left out.
  def self.nothing(name) = new(name, :number, [0, 0, 0, 1], [])

  # @param numbers [Array<Integer>] from which the step takes its times and sizes
  def initialize(name, kind, numbers, parts)
    @name = name
    @kind = kind
    @numbers = numbers
    @parts = parts
  end

  def names = [@name, *@parts.flat_map(&:names)]

  # The same with these steps alone.
  def only(names)
    return Program.nothing(@name) unless names.key?(@name)

    inside = KINDS[@kind][0]
    parts = @parts.map { |part| part.only(names) }
    kept = parts.select { |part| names.key?(part.name) }
    Program.new(@name, @kind, @numbers, inside == :some ? kept : parts)
  end

  def seconds = [0, 0.001, 0.002, 0.01][@numbers[0] % 4]
  def times = @numbers[1] % 4
  def choose(list) = list[@numbers[2] % list.size]

  def to_s(indent = "  ")
    ["#{indent}#{@name} #{@kind} #{@numbers.join(" ")}", *@parts.map { |part| part.to_s("#{indent}  ") }].join("\n")
  end

  # --- what it may come to ---

  # @return [Boolean] whether it may return
  def returns?
    case @kind
    when :failure, :limited, :failing then false
    when :rescued, :cancelled, :terminated then true
    else @parts.all?(&:returns?)
    end
  end

  # @return [Array] of what it may raise: the numbers of failures, and :timeout
  def errors
    inside = @parts.flat_map(&:errors)
    case @kind
    when :failure, :failing then inside + [@numbers[0]]
    when :limited then inside + [:timeout]
    when :rescued then []
    else inside
    end
  end

  # @return [Boolean] whether it may return that
  def may_be?(value)
    case @kind
    when :number then value == @numbers[0]
    when :cancelled then value.nil?
    when :terminated then value == :terminated
    when :rescued then @parts[0].rescued_as?(value)
    when :all, :generator then each_may_be?(value)
    when :wait, :give_way, :ensured, :strand, :within, :shielded, :evaluation, :nested then @parts[0].may_be?(value)
    else value == :well
    end
  end

  def rescued_as?(value)
    (returns? && may_be?(value)) || (value.is_a?(Array) && value[0] == :rescued && errors.include?(value[1]))
  end

  # @return [String, nil] what is wrong with it
  def judge(outcome)
    how, what = outcome
    return "it raised #{what.inspect}, of #{errors.inspect}" if how == :raised && !errors.include?(what)
    return "it returned #{what.inspect}" if how == :returned && !(returns? && may_be?(what))
  end

  private

  def each_may_be?(values)
    return false unless values.is_a?(Array) && values.size == @parts.size

    @parts.each_with_index.all? { |part, index| part.may_be?(values[index]) }
  end
end
