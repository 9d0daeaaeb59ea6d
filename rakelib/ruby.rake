# frozen_string_literal: true

# Tests, checks and documents of the Ruby part.

TIDY_TEST = "runtime/test/tidy_test.rb"
RUNTIME_TESTS = FileList["runtime/test/**/*_test.rb"].exclude(TIDY_TEST).sort
BENCH_TESTS = FileList["bench/test/**/*_test.rb"].sort
TORTURES = FileList["runtime/test/**/*_torture.rb"].sort

# A test says in a comment of its own that it belongs to the short form: the choice is made where it can be judged.
SHORT_STRESS = /^# gc stress: short$/

def run_tests(files, env = {})
  abort "no test ran: no file matches" if files.empty?

  sh env, RbConfig.ruby, "-w", "bin/support/run_tests.rb", *files, verbose: false
end

namespace :test do
  desc "The tree's own rules: who may know whom, sizes, blanks"
  task :tidy do
    run_tests([TIDY_TEST])
  end

  desc "The Ruby tests of the runtime and the bench"
  task ruby: :compile do
    # Two processes: the runtime's test helper watches every test of its process.
    run_tests(RUNTIME_TESTS)
    run_tests(BENCH_TESTS)
  end

  desc "The Ruby tests of the runtime on epoll, for hosts where the ones before ran on io_uring"
  task epoll: :compile do
    run_tests(RUNTIME_TESTS, "RINGSPUN_BACKEND" => "epoll")
  end

  desc "The runtime's tests with a collection at every allocation (SHORT=1: the files that say `gc stress: short`)"
  task gc_stress: :compile do
    files = ENV["SHORT"] ? RUNTIME_TESTS.select { |path| File.read(path).match?(SHORT_STRESS) } : RUNTIME_TESTS
    run_tests(files, "RINGSPUN_GC_STRESS" => "1")
  end

  desc "Random trees of evaluations on simulated machines: SEEDS=10000 of them, or the one of SEED=n again"
  task evaluations: :compile do
    seeds = { "RINGSPUN_SEEDS" => ENV.fetch("SEEDS", "10000"), "RINGSPUN_SEED" => ENV["SEED"] }
    run_tests(["runtime/test/evaluation/tree_test.rb"], { **seeds, "RINGSPUN_TEST_LIMIT_SECONDS" => "3600" })
  end

  # Not among the Ruby tests, which `bin/test --matrix` runs again.
  desc "Wakes from other threads, for 30 s"
  task wakes: :compile do
    run_tests(["runtime/test/wake_torture.rb"], "RINGSPUN_TORTURE_SECONDS" => "30")
  end

  desc "Long random runs, runtime/test/**/*_torture.rb, each for SECONDS=60"
  task torture: :compile do
    seconds = ENV.fetch("SECONDS", "60")
    run_tests(TORTURES, "RINGSPUN_TORTURE_SECONDS" => seconds, "RINGSPUN_TEST_LIMIT_SECONDS" => (Integer(seconds) * 2 + 60).to_s)
  end

  desc "Formatting"
  task :rubocop do
    sh "rubocop", "--cache-root", "tmp/rubocop", "--format", "simple", verbose: false
  end

  desc "The signatures"
  task :rbs do
    abort "no test ran: there is no signature under runtime/sig" if FileList["runtime/sig/**/*.rbs"].empty?

    sh "rbs", "-I", "runtime/sig", "validate", verbose: false
  end
end

desc "The reference, into tmp/doc"
task :doc do
  sh "yard", "doc", "--quiet", "--db", "tmp/yardoc", "--output-dir", "tmp/doc", "--fail-on-warning",
     "runtime/lib/**/*.rb", "runtime/ext/ringspun/binding/*.c", verbose: false
end
