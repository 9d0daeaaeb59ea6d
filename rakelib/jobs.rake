# frozen_string_literal: true

# Habits of the jobs.

namespace :jobs do
  desc "Kills, freezes, cuts and spoils all that jobs rest on, for SECONDS=60 (SEED=n: these faults again); none may be lost"
  task torture: :compile do
    seconds = ENV.fetch("SECONDS", "60")
    run_passes([test_pass("the fault run", ["jobs/test/torture/fault_run_test.rb"], { "RINGSPUN_TORTURE_SECONDS" => seconds })])
  end
end
