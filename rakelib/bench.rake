# frozen_string_literal: true

# The command by which the gem `concurrently` measures itself, for what the bench has in its place; and the one for the other
# seed whose form the bench keeps, jobs_seed.

desc "Tables of the bench by the names of their seeds: call_methods, wait_methods, call_methods_waiting, jobs_seed"
task :benchmark, [:table] do |_, arguments|
  tables = arguments.table || "call_methods,wait_methods,call_methods_waiting"
  sh File.expand_path("../bin/bench", __dir__), "--only", tables, *arguments.extras, verbose: false
end
