# frozen_string_literal: true

module Bench
  # Medians, because one sample that a neighbour disturbed must not move the number.
  module Statistics
    module_function

    def median(values)
      raise ArgumentError, "no values" if values.empty?

      sorted = values.sort
      middle = sorted.size / 2
      sorted.size.odd? ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2.0
    end

    # (largest - smallest) / median: how far the samples lie apart. nil for one sample.
    def spread(values)
      return nil if values.size < 2

      middle = median(values)
      middle.zero? ? nil : (values.max - values.min) / middle.to_f
    end
  end
end
