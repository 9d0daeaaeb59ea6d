# frozen_string_literal: true

# Tasks of the jobs.

namespace :jobs do
  desc "Kills, freezes, cuts and spoils all that jobs rest on, for SECONDS=600 on Redis and as long on a file (SEED=n: these " \
       "faults again), and with SEEDS=60 in memory; none may be lost"
  task torture: :compile do
    seconds = ENV.fetch("SECONDS", "600")
    long = { "RINGSPUN_TORTURE_SECONDS" => seconds, "RINGSPUN_TEST_LIMIT_SECONDS" => ((Integer(seconds) * 3) + 180).to_s }
    run_passes([test_pass("the fault run", ["jobs/test/torture/fault_run_test.rb"], long),
                test_pass("the fault run on a file", ["jobs/test/torture/sqlite_fault_run_test.rb"], long),
                test_pass("the fault run in memory", ["jobs/test/torture/memory_fault_run_test.rb"],
                          { "SEEDS" => ENV.fetch("SEEDS", "60") })])
  end

  desc "Kills a worker with JOBS=1000 jobs of 3 s in flight, and measures how long it takes until another has done them"
  task mass_death: :compile do
    folders = %w[jobs/test jobs/lib runtime/test runtime/lib].map { |folder| "-I#{folder}" }
    sh RbConfig.ruby, "-w", *folders, "jobs/test/torture/mass_death.rb", verbose: false
  end

  desc "Measures the web pages with JOBS=1000000 in a queue, RETRIES=100000; none may take 100 ms (STORAGE=sqlite: in a file)"
  task web_speed: :compile do
    folders = %w[jobs/lib runtime/lib].map { |folder| "-I#{folder}" }
    sh RbConfig.ruby, "-w", *folders, "jobs/test/web/speed.rb", verbose: false
  end

  desc "Takes pictures of the web pages for the guide: by day, by night, and as on a phone"
  task screenshots: :compile do
    folders = %w[jobs/test jobs/lib runtime/lib].map { |folder| "-I#{folder}" }
    sh RbConfig.ruby, "-w", *folders, "jobs/test/web/screenshots.rb", "docs/images/jobs-web", verbose: false
  end
end
