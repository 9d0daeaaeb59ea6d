# frozen_string_literal: true

# The bench: every table beside its peers and its floor, in one run. `bin/bench --help` lists the options,
# bench/README.md says what the columns mean and how a table is added.

$LOAD_PATH.unshift(File.expand_path("lib", __dir__))

require "bench"

exit Bench::Command.new(ARGV, out: $stdout, err: $stderr).run
