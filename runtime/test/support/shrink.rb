# frozen_string_literal: true

# Makes a failing program smaller, so that a person can read it. A program is a list of steps, each of which may be left out.
module Shrink
  # @param steps [Array] of a program that fails
  # @param tries [Integer] how many programs it may run at most
  # @yieldparam steps [Array] some of the steps, in their order
  # @yieldreturn [Boolean] true when these fail as well
  # @return [Array] steps that fail. No single one of them can be left out, unless the tries have been used up
  def self.smallest(steps, tries: 500)
    size = [steps.size / 2, 1].max
    until steps.empty?
      before = steps.size
      0.step(steps.size - 1, size).reverse_each do |from|
        fewer = steps[0...from] + steps[(from + size)..].to_a
        next if (tries -= 1).negative?

        steps = fewer if yield(fewer)
      end
      break if tries.negative? || (size == 1 && steps.size == before)

      size = [size / 2, 1].max if steps.size == before
    end
    steps
  end
end
