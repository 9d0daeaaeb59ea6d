# frozen_string_literal: true

require "etc"

module Bench
  # How busy the machine is. What gives up after some time waits longer where others use the processors as well: a contender that
  # has half of one takes twice as long to start, and is not broken.
  module Load
    # So a hang does end.
    MOST = 20.0

    # The factor by which a limit grows: how many want each processor, 1 at least.
    # @param average [Float, nil] the load average of the last minute
    # @param processors [Integer]
    # @return [Float]
    def self.factor(average = self.average, processors: Etc.nprocessors)
      average ? (average / processors).clamp(1.0, MOST) : 1.0
    end

    # @return [Float, nil]
    def self.average
      Float(File.read("/proc/loadavg").split.first)
    rescue SystemCallError
      nil
    end
  end
end
