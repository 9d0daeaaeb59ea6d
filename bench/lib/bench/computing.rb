# frozen_string_literal: true

require "etc"

module Bench
  # Work for a processor: about a millisecond of Ruby that never lets its lock go.
  module Computing
    ROUNDS = 15_000
    RESULT = 112_492_500

    # 1, 2, 4 and so on, up to one for each core.
    PROCESSES = [*(0..Math.log2(Etc.nprocessors)).map { |power| 2**power }, Etc.nprocessors].uniq.freeze

    module_function

    # Returns RESULT.
    def once = ROUNDS.times.sum { |number| number ^ 5 }

    # The floor: so many processes compute, and wait for nothing. Each does a part of the work.
    def in_processes(meter, times, processes)
      part = times / processes
      meter.operations = part * processes
      began = meter.now
      cpu = Process.times
      Array.new(processes) { fork { exit!(part.times.all? { once == RESULT }) } }.each { |pid| wait(pid) }
      spent = Process.times
      meter.take(user: spent.cutime - cpu.cutime, system: spent.cstime - cpu.cstime, real: meter.now - began)
    end

    def wait(pid)
      Process.wait(pid)
      raise "a process has failed" unless $?.success?
    end
  end
end
