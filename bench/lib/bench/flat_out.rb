# frozen_string_literal: true

require "json"
require "rbconfig"
require "bench/working"

module Bench
  # Processes that call our storage in a file without a pause: one pushes, and one fetches and acknowledges.
  class FlatOut
    PROGRAM = File.join(ROOT, "bench/lib/bench/jobs/flat_out.rb")
    KINDS = %w[push work].freeze
    # Jobs that are there before, so that whoever fetches finds some.
    SPARE = 5_000

    # @param store [JobsFile]
    # @param seconds [Float] of each measurement
    def initialize(store, seconds)
      @store = store
      @seconds = seconds
    end

    # The region: both at once. Returns the proof.
    def measure(meter)
      @store.push(Array.new(SPARE) { Working.entry("HardJob", [1_021, "u" * 60, { "urgent" => true }]) })
      alone = KINDS.flat_map { |kind| together(kind) }
      both = together(*KINDS)
      meter.take(user: both.sum { |one| one[:user] }, system: both.sum { |one| one[:system] }, real: @seconds)
      meter.operations = both.sum { |one| one[:jobs] }
      meter.note(:kept, both.zip(alone).map { |one, before| one[:jobs].fdiv(before[:jobs]) }.min)
      meter.note(:gap_worst, both.map { |one| one[:longest] }.max)
      { dry: (alone + both).sum { |one| one[:dry] } }
    end

    private

    # Begins when all are ready, and returns what they say.
    def together(*kinds)
      programs = kinds.map do |kind|
        IO.popen([@store.environment, RbConfig.ruby, "-I#{WorkerProcess::LIBRARY}", PROGRAM, kind, @seconds.to_s], "r+")
      end
      programs.each(&:gets)
      programs.each { |program| program.puts("go") }
      programs.map { |program| JSON.parse(program.gets || raise("a process has ended early"), symbolize_names: true) }
    ensure
      programs&.each(&:close)
    end
  end
end
