# frozen_string_literal: true

require "etc"
require "open3"
require "rake/clean"
require_relative "../runtime/test/support/share_of_the_day"

# The engine's own tests: C programs, built by its Makefile without any Ruby header in reach. A program prints
# "N passed, M failed" and ends with non-zero when M is not 0.

ENGINE_TESTS = FileList["engine/test/test_*.c"].sort
SIMULATION = "engine/test/test_simulation.c"
URING_FAULTS = "engine/test/test_uring_faults.c"

# The compiler, its flags, and the command that runs the programs.
EngineBuild = Data.define(:compiler, :flags, :runner)
ENGINE_BUILDS = {
  "plain" => EngineBuild.new("gcc", [], []),
  "sanitized" => EngineBuild.new("gcc", %w[-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer], []),
  # In this folder Debian and Arch install the C library for that processor.
  "aarch64" => EngineBuild.new("aarch64-linux-gnu-gcc", %w[-DTEST_EMULATED], %w[qemu-aarch64 -L /usr/aarch64-linux-gnu])
}.freeze

CLEAN.include("tmp/engine")

def engine_program(build, source) = "tmp/engine/#{build}/#{source.pathmap("%n")}"
def engine_command(build, source) = [*ENGINE_BUILDS.fetch(build).runner, engine_program(build, source)]

ENGINE_BUILDS.each do |build, made|
  task "engine:#{build}" do
    sh "make", "--silent", "-j#{Etc.nprocessors}", "-C", "engine", "programs", "BUILD=../tmp/engine/#{build}",
       "CC=#{made.compiler}", "CFLAGS=-O1 -g", "FLAGS=#{made.flags.join(" ")}", verbose: false
  end
end

# Runs one program, and returns how many tests it has passed and left out; nil after a failure, which it reports. A program
# without a result has failed, and so has one that hangs, which is killed.
def run_engine_program(*command, limit: 300)
  output, status = Open3.capture2e("timeout", "--kill-after=5", limit.to_s, *command)
  passed, failed = output.scan(/^(\d+) passed, (\d+) failed$/).last&.map(&:to_i)
  left_out = output[/^(\d+) left out$/, 1].to_i
  return [passed, left_out] if status.success? && passed && (passed + left_out).positive? && failed.zero?

  reason = status.exitstatus == 124 ? "ran longer than #{limit} s" : "ended with #{status.exitstatus || status}"
  puts "#{output}\nFAILED: #{command.join(" ")} (#{reason}, #{passed ? "#{passed} passed, #{failed} failed" : "no result line"})"
end

# Those of the day where there is a share of them, as for tests in Ruby.
def engine_tests(now = Time.now)
  abort "no test ran: there is no engine/test/test_*.c" if ENGINE_TESTS.empty?

  ShareOfTheDay.new(ENV.fetch("RINGSPUN_ONE_TEST_IN", "1"), now:).of(ENGINE_TESTS.to_a)
end

# Two at a time: what takes longest of it is waiting for timers.
def run_engine_programs(build)
  left = Thread::Queue.new(engine_tests).close
  counts = Array.new(2) { Thread.new { counts_of_engine_programs(build, left) } }.flat_map(&:value)
  abort "#{counts.count(nil)} of #{counts.size} engine programs failed" if counts.include?(nil)

  passed, left_out = counts.transpose.map(&:sum)
  puts "engine: #{passed} tests passed in #{counts.size} programs"
  puts "engine: #{left_out} tests left out, for an emulator lacks what they need" if left_out.positive?
end

def counts_of_engine_programs(build, left)
  counts = []
  while (source = left.pop)
    counts << run_engine_program(*engine_command(build, source))
  end
  counts
end

# A pass for a program that takes seeds: SEEDS of them, or the one of SEED.
def seeds_pass(name, source, build, seeds)
  abort "no test ran: there is no #{source}" unless ENGINE_TESTS.include?(source)

  pass(name, *engine_command(build, source), *(ENV["SEED"] ? ["--seed", ENV["SEED"]] : ["--seeds", seeds]))
end

# A pass for all programs of a build, in a rake of its own, which counts the tests.
def programs_pass(name, build, **) = pass(name, RbConfig.ruby, Gem.bin_path("rake", "rake"), "engine:run_#{build}", **)

ENGINE_BUILDS.each_key do |build|
  task("engine:run_#{build}" => "engine:#{build}") { run_engine_programs(build) }
end

desc "The engine's C tests, compiled without any Ruby header"
test_passes(:c, "engine:plain") { [programs_pass("the engine", "plain")] }

desc "Simulated machines: SEEDS=10000 of them, or the one of SEED=n again"
test_passes(:sim, "engine:plain") do
  [seeds_pass("simulated machines", SIMULATION, "plain", ENV.fetch("SEEDS", 10_000))]
end

desc "io_uring above a kernel that misbehaves: SEEDS=10000 of them (SHORT=1: 5000), or the one of SEED=n again"
test_passes(:uring_faults, "engine:plain") do
  [seeds_pass("io_uring faults", URING_FAULTS, "plain", ENV.fetch("SEEDS") { ENV["SHORT"] ? 5000 : 10_000 })]
end

# Under AddressSanitizer. By night also those in which memory changes hands: between threads, in COPY, when callers leave. Each
# takes less than ten seconds of the processor.
POSTGRES_ASAN = %w[types].freeze
POSTGRES_ASAN_LONG = %w[array_json copy_scripted late_notices question sharing threads_ask].freeze

desc "The engine's tests and simulation under the address and undefined-behaviour sanitizers (SHORT=1: a quarter of the tests, " \
     "in turns by the day, and few seeds), and values of Postgres and the server of HTTP under the first"
test_passes(:sanitize, "engine:sanitized", "stress:prove") do
  seeds = ENV["SHORT"] ? 300 : ENV.fetch("SEEDS", 10_000)
  [programs_pass("the engine, sanitized", "sanitized", env: in_turns_short("the engine, sanitized", %w[engine], 4)),
   seeds_pass("simulated machines, sanitized", SIMULATION, "sanitized", seeds),
   seeds_pass("io_uring faults, sanitized", URING_FAULTS, "sanitized", seeds),
   asan_pass("Postgres and HTTP under AddressSanitizer",
             [*POSTGRES_ASAN, *(POSTGRES_ASAN_LONG unless ENV["SHORT"])].map { |name| "postgres/test/#{name}_test.rb" } +
             ["http/test/server_test.rb"])]
end

desc "The engine's C tests for aarch64, under an emulator that has no io_uring (SHORT=1: a quarter of them, in turns by the day)"
test_passes(:cross, "engine:aarch64") do
  [programs_pass("the engine on aarch64", "aarch64", env: in_turns_short("the engine on aarch64", %w[engine], 4))]
end
