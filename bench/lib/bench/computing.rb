# frozen_string_literal: true

require "etc"

module Bench
  # Work for a processor: about a millisecond, in Ruby alone, so that a process does one after the other.
  module Computing
    ROUNDS = 15_000
    RESULT = 112_492_500

    # From one process to one for each core, which is doubled each time.
    PROCESSES = [*(0..Math.log2(Etc.nprocessors)).map { |power| 2**power }, Etc.nprocessors].uniq.freeze

    module_function

    # Returns RESULT.
    def once = ROUNDS.times.sum { |number| number ^ 5 }

    # The floor: so many processes compute, and wait for nothing. Each does a part of the work.
    def in_processes(meter, times, processes)
      part = times / processes
      meter.operations = part * processes
      meter.measure { Array.new(processes) { fork { exit!(part.times.all? { once == RESULT }) } }.each { |pid| wait(pid) } }
    end

    def wait(pid)
      Process.wait(pid)
      raise "a process has failed" unless $?.success?
    end
  end
end
