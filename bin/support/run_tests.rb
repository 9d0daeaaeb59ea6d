# frozen_string_literal: true

# Runs the named Minitest files in one process, and watches it. Options (-n, --seed, -v) go to Minitest; --ruby=OPTION goes to the
# Ruby that runs them. RINGSPUN_TEST_LIMIT_SECONDS allows a test to take longer than usual. RINGSPUN_SUPERVISOR=none: nobody
# watches, and the tests have the terminal, as a debugger wants it.

require "rbconfig"
require_relative "supervisor"

for_ruby, arguments = ARGV.partition { |argument| argument.start_with?("--ruby=") }
ruby = [RbConfig.ruby, "-w", *for_ruby.map { |argument| argument.delete_prefix("--ruby=") }]
command = [*ruby, File.expand_path("test_process.rb", __dir__), *arguments]
exec({ "RINGSPUN_SUPERVISOR" => nil }, *command) if ENV["RINGSPUN_SUPERVISOR"] == "none"

live = ENV.delete("RINGSPUN_LIVE")
# With a collection at every allocation all takes longer.
seconds = ENV.fetch("RINGSPUN_TEST_LIMIT_SECONDS") { "600" if ENV["RINGSPUN_GC_STRESS"] == "1" }
limits = Watchdog::Limits.of(seconds)
exit Supervisor.new(command, limits:, live: live && IO.for_fd(Integer(live))).run
