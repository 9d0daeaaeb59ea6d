# frozen_string_literal: true

class EvaluationTrees
  # One run, as far as it is known from outside. The steps of each draw from numbers of their own: when one is left out, all
  # others stay as they are.
  class Node
    ROOT = ""
    SECONDS = [0, 0, 0.001, 0.002, 0.01].freeze
    MASK = (2**31) - 1

    attr_reader :name, :number, :depth, :begun, :fiber, :concluded_to, :ended_with, :returned, :seen
    attr_accessor :evaluation, :form, :ensured

    # @param parent [Node, nil] whose step has started it; nil: it stands for the program itself
    # @param index [Integer] of that step
    def initialize(seed, parent = nil, index = 0)
      @seed = seed
      @name = parent ? parent.step_name(index) : ROOT
      @number = parent ? (parent.number * 16) + index : 1
      @depth = parent ? parent.depth + 1 : 0
      @ensured = 0
      @concluded_to = []
      @ended_with = []
      @returned = []
      @seen = []
      draw(0)
    end

    def step_name(index) = @name == ROOT ? index.to_s : "#{@name}.#{index}"

    # From here on the numbers are those of that step, or of what is around all of them.
    def draw(index)
      mixed = ((@seed & MASK) ^ (((@number * 16) + index) * 40_503)) & MASK
      2.times { mixed = ((mixed ^ (mixed >> 15)) * 1_540_483_477) & MASK }
      @random = Random.new(mixed)
    end

    def rand(count) = @random.rand(count)
    def between(low, high) = low + rand(high - low + 1)
    def one_of(list) = list[rand(list.size)]
    def seconds = one_of(SECONDS)

    def begins(evaluation)
      @begun = true
      @fiber = Fiber.current
      @evaluation = evaluation
    end

    # It was concluded, and its ensure block runs or will run.
    def unwinds? = @begun && @ensured.zero?
    def over? = @begun ? @ensured > 0 && @evaluation.concluded? : @evaluation&.concluded?
  end
end
