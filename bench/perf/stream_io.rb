#!/usr/bin/env ruby
# frozen_string_literal: true

# The curves of docs/decisions/32-the-ring-for-many.md: CPU time of a write and its read, 1 KB, inline, by the ring
# and as the machine chooses, over the number of pairs and the steps of a filter of seccomp that looks at each system call.
#
#   bin/bundle exec ruby -Iruntime/lib bench/perf/stream_io.rb [--quick]

$LOAD_PATH.unshift(File.expand_path("../lib", __dir__))

require "ringspun"
require "bench/slow_calls"

# One cell in processes of their own, for a filter stays.
module StreamIoCurves
  WAYS = %i[inline ring auto].freeze
  BYTES = 1024

  module_function

  def print_all(quick:)
    steps = quick ? [0, 2_000] : [0, 75, 150, 300, 600, 2_000]
    pairs = quick ? [16] : [1, 4, 16, 64, 256]
    %i[pipe socketpair].product(steps).each do |kind, many|
      cells = pairs.map { |count| cell(kind, many, count, quick ? 1_600 : 64_000, quick ? 1 : 5) }
      puts ["#{kind}, #{many} steps:", *pairs.zip(cells).map { |count, times| "#{count}: #{times.join(" / ")}" }].join("  ")
    end
  end

  # Medians of the ways, which run by turns.
  def cell(kind, steps, pairs, messages, samples)
    taken = Array.new(samples) { WAYS.map { |way| in_child { sample(kind, steps, pairs, messages, way) } } }
    taken.transpose.map { |times| times.sort[times.size / 2].round }
  end

  def in_child
    reader, writer = IO.pipe
    pid = fork { writer.write(yield.to_s) }
    writer.close
    reader.read.to_f.tap { Process.wait(pid) }
  end

  def sample(kind, steps, pairs, messages, way)
    Bench::SlowCalls.slow_down(steps)
    machine = Ringspun::Machine.new(backend: :uring, stream_io: way)
    each = messages / pairs
    move(machine, kind, pairs, 20)
    GC.start
    GC.disable
    began = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
    move(machine, kind, pairs, each)
    (Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - began) * 1e9 / (pairs * each)
  end

  def move(machine, kind, pairs, messages)
    Ringspun.run do
      pairs.times do
        reader, writer = kind == :pipe ? machine.pipe : machine.socketpair(:UNIX, :STREAM)
        payload = "x" * BYTES
        machine.spin { messages.times { machine.write(writer, payload) }.then { machine.close(writer) } }
        machine.spin do
          buffer = String.new(capacity: BYTES)
          left = messages * BYTES
          left -= machine.read(reader, buffer, BYTES) while left.positive?
          machine.close(reader)
        end
      end
    end
  end
end

StreamIoCurves.print_all(quick: ARGV.include?("--quick"))
