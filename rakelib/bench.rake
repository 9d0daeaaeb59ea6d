# frozen_string_literal: true

# The task by which the gem `concurrently` measures itself, for the tables that have replaced it, and for the table jobs_seed,
# which keeps the form of its seed as well.

desc "Tables of the bench by the names of their seeds: call_methods, wait_methods, call_methods_waiting, jobs_seed"
task :benchmark, [:table] do |_, arguments|
  tables = arguments.table || "call_methods,wait_methods,call_methods_waiting"
  sh File.expand_path("../bin/bench", __dir__), "--only", tables, *arguments.extras, verbose: false
end
