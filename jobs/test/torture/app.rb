# frozen_string_literal: true

# The jobs of the fault run, and the ledger in which they and their producers say what has happened: a line each, in a file that
# no fault touches.

require "ringspun/jobs"

if ENV["DISK_FAULTS"]
  require "ringspun/jobs/storage/sqlite"
  require_relative "../support/disk_faults"
  Ringspun::Jobs::Storage::Sqlite.const_get(:Library).load
  DiskFaults.install
end

module FaultApp
  FOLDER = ENV.fetch("FAULT_FOLDER")
  LEDGER = File.open(File.join(FOLDER, "ledger"), File::WRONLY | File::APPEND | File::CREAT)

  # On the one clock that is the same for all processes and never set.
  def self.tell(*words)
    now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    LEDGER.syswrite("#{[now, Process.pid, Process.ppid, *words].join(" ")}\n")
  end

  # Whether this was never called with that id, in any process.
  def self.first_time?(id)
    File.open(File.join(FOLDER, "marks", id), File::WRONLY | File::CREAT | File::EXCL).close
    true
  rescue Errno::EEXIST
    false
  end

  Ringspun::Jobs.configure do |config|
    if (storage = ENV["FAULT_STORAGE"])
      config.storage = storage
    else
      config.redis = { url: ENV.fetch("REDIS_URL"), timeout: 1.0, reconnect_attempts: 0 }
    end
    config.queues = { "a" => 3, "b" => 2, "narrow" => 1 }
    config.limits = { "narrow" => 5 }
    config.concurrency = 40
    config.lease = 2
    config.beat = 0.3
    config.timeout = 5
  end
end

class FaultJob
  include Ringspun::Jobs::Job

  retry_in { 0.3 }

  def perform(id, kind, seconds = 0)
    FaultApp.tell("begin", id, jid, kind)
    case kind
    when "slow" then sleep seconds
    when "once" then raise "the first time" if FaultApp.first_time?(id)
    when "snooze" then snooze 0.3 if FaultApp.first_time?(id)
    when "doomed" then raise "each time"
    when "poison" then Process.kill(:KILL, Process.pid)
    when "long" then sleep seconds
    when "endless" then sleep # until somebody cancels it
    when "forks" then fork_children
    end
    FaultApp.tell("end", id)
  rescue Ringspun::Cancelled
    FaultApp.tell("cancelled", id) if cancelled?
    raise
  end

  private

  # One that is this program, and one that is another.
  def fork_children
    children = [fork { exit!(0) }, spawn("true")]
    raise "a child has failed" unless children.all? { |child| Process.wait2(child).last.success? }
  end
end
