# frozen_string_literal: true

require "ringspun/jobs"

module Ringspun
  module Jobs
    # What there is to measure.
    class Metrics
      # @param storage [Storage]
      # @return [Sample]
      # @api private
      def self.sample(storage) = Sample.take(storage)
    end
  end
end

require_relative "metrics/sample"
