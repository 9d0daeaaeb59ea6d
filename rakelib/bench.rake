# frozen_string_literal: true

# The command by which the gem `concurrently` measures itself, for what the bench has in its place.

desc "Tables of the bench by their names in the gem concurrently: call_methods, wait_methods, call_methods_waiting"
task :benchmark, [:table] do |_, arguments|
  tables = arguments.table || "call_methods,wait_methods,call_methods_waiting"
  sh File.expand_path("../bin/bench", __dir__), "--only", tables, *arguments.extras, verbose: false
end
