# frozen_string_literal: true

# Calls our storage in a file without a pause, 64 jobs a call, from the first line on its standard input on. Says when it is
# ready, and then what came of it.
#
#   ruby flat_out.rb push|work SECONDS

require "json"
require "ringspun/jobs"
require "bench/table"
require "bench/jobs_file"
require "bench/working"

TOGETHER = 64
NODE = "bench #{Process.pid}".freeze

kind, seconds = ARGV
storage = Ringspun::Jobs.tap { |jobs| jobs.storage = Bench::JobsFile.setting }.storage
now = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) }
calls = {
  "push" => lambda do |entry|
    storage.push(Array.new(TOGETHER) { Ringspun::Jobs::Storage::Push.new("default", entry) })
    TOGETHER
  end,
  "work" => lambda do |_|
    fetched = storage.fetch(NODE, ["default"], TOGETHER)
    storage.ack(NODE, fetched.map { |one| Ringspun::Jobs::Storage::Ack.new("default", one.token, "jid") }).size
  end
}

Ringspun.run do
  entry = Bench::Working.entry("HardJob", [1_021, "u" * 60, { "urgent" => true }])
  storage.extend([NODE], 60)
  call = calls.fetch(kind)
  call.call(entry)
  $stdout.puts("ready")
  $stdout.flush
  $stdin.gets
  before = Process.times
  began = now.call
  jobs = dry = longest = 0
  until (at = now.call) - began > Float(seconds)
    done = call.call(entry)
    jobs += done
    dry += 1 if done.zero?
    longest = [longest, now.call - at].max
  end
  spent = Process.times
  puts JSON.generate(jobs:, dry:, longest:, user: spent.utime - before.utime, system: spent.stime - before.stime)
end
storage.close
