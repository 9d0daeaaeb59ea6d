# frozen_string_literal: true

require "open3"
require "rake/clean"

# The engine's own tests: C programs, built without any Ruby header in reach. A program prints "N passed, M failed"
# and ends with non-zero when M is not 0.

ENGINE_TESTS = FileList["runtime/test/engine/test_*.c"].sort
# Beside the tests stand what they share (driver, scenes): linked into each of them, like the engine.
ENGINE_SOURCES = (FileList["#{EXTENSION_DIR}/engine/**/*.c", "runtime/test/engine/*.c"] - ENGINE_TESTS).sort
ENGINE_HEADERS = FileList["#{EXTENSION_DIR}/engine/**/*.h", "runtime/test/engine/*.h"]
SIMULATION = "runtime/test/engine/test_simulation.c"
URING_FAULTS = "runtime/test/engine/test_uring_faults.c"

ENGINE_FLAGS = %W[
  -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -O1 -g -pthread -I#{EXTENSION_DIR} -I#{EXTENSION_DIR}/engine
].freeze
ENGINE_BUILDS = {
  "plain" => [],
  "sanitized" => %w[-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer]
}.freeze

CLEAN.include("tmp/engine")

def engine_object(build, source) = "tmp/engine/#{build}/#{source.pathmap("%n")}.o"
def engine_program(build, source) = "tmp/engine/#{build}/#{source.pathmap("%n")}"

ENGINE_BUILDS.each do |build, extra|
  directory "tmp/engine/#{build}"

  (ENGINE_SOURCES + ENGINE_TESTS).each do |source|
    file engine_object(build, source) => [source, *ENGINE_HEADERS, __FILE__, "tmp/engine/#{build}"] do |target|
      sh "gcc", *ENGINE_FLAGS, *extra, "-c", source, "-o", target.name, verbose: false
    end
  end

  engine_objects = ENGINE_SOURCES.map { |source| engine_object(build, source) }
  ENGINE_TESTS.each do |source|
    file engine_program(build, source) => [engine_object(build, source), *engine_objects] do |target|
      sh "gcc", "-pthread", *extra, *target.prerequisites, "-o", target.name, verbose: false
    end
  end

  multitask "engine:#{build}" => ENGINE_TESTS.map { |source| engine_program(build, source) }
end

# Runs one program and answers how many tests passed; nil is a failure, already reported. A program that says nothing
# has tested nothing, and one that hangs is ended.
def run_engine_program(*command, limit: 300)
  output, status = Open3.capture2e("timeout", "--kill-after=5", limit.to_s, *command)
  passed, failed = output.scan(/^(\d+) passed, (\d+) failed$/).last&.map(&:to_i)
  return passed if status.success? && passed&.positive? && failed.zero?

  puts output
  reason = status.exitstatus == 124 ? "ran longer than #{limit} s" : "ended with #{status.exitstatus || status}"
  puts "FAILED: #{command.join(" ")} (#{reason}, #{passed ? "#{passed} passed, #{failed} failed" : "no result line"})"
end

def run_engine_programs(build)
  abort "no test ran: there is no runtime/test/engine/test_*.c" if ENGINE_TESTS.empty?

  programs = ENGINE_TESTS.map { |source| engine_program(build, source) }
  counts = programs.map { |program| run_engine_program(program) }
  abort "#{counts.count(nil)} of #{programs.size} engine programs failed" if counts.include?(nil)

  puts "engine: #{counts.sum} tests passed in #{programs.size} programs"
end

# A program that takes seeds, with SEEDS of them or the one of SEED.
def seeds_pass(name, source, build, seeds)
  abort "no test ran: there is no #{source}" unless ENGINE_TESTS.include?(source)

  pass(name, engine_program(build, source), *(ENV["SEED"] ? ["--seed", ENV["SEED"]] : ["--seeds", seeds]))
end

# A rake of its own for all programs of a build, which counts what they have done.
def programs_pass(name, build) = pass(name, RbConfig.ruby, Gem.bin_path("rake", "rake"), "engine:run_#{build}")

ENGINE_BUILDS.each_key do |build|
  task("engine:run_#{build}" => "engine:#{build}") { run_engine_programs(build) }
end

desc "The engine's C tests, compiled without any Ruby header"
test_passes(:c, "engine:plain") { [programs_pass("the engine", "plain")] }

desc "Simulated machines: SEEDS=10000 of them, or the one of SEED=n again"
test_passes(:sim, engine_program("plain", SIMULATION)) do
  [seeds_pass("simulated machines", SIMULATION, "plain", ENV.fetch("SEEDS", 10_000))]
end

desc "io_uring above a kernel that misbehaves: SEEDS=10000 of them, or the one of SEED=n again"
test_passes(:uring_faults, engine_program("plain", URING_FAULTS)) do
  [seeds_pass("io_uring faults", URING_FAULTS, "plain", ENV.fetch("SEEDS", 10_000))]
end

desc "The engine's tests and simulation under the address and undefined-behaviour sanitizers (SHORT=1: few seeds)"
test_passes(:sanitize, "engine:sanitized") do
  seeds = ENV["SHORT"] ? 300 : ENV.fetch("SEEDS", 10_000)
  [programs_pass("the engine, sanitized", "sanitized"),
   seeds_pass("simulated machines, sanitized", SIMULATION, "sanitized", seeds),
   seeds_pass("io_uring faults, sanitized", URING_FAULTS, "sanitized", seeds)]
end
