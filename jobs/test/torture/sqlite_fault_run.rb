# frozen_string_literal: true

require "ringspun/jobs/storage/sqlite"
require "support/disk_faults"
require "torture/fault_run"

# The fault run on one file. Its processes are of two hosts by name, which share a kernel, as containers do.
#
# Only what ends or freezes a process may cost it its jobs. While nobody can write, for another program has the file or the disk
# fails, leases stand still, so none of that is a reason to run a job twice; nor are a clock that is set and a file of locks that
# somebody removes.
class SqliteFaultRun < FaultRun
  # How often each fault comes, of a hundred.
  FAULTS = {
    kill_worker: 18, end_worker: 6, freeze_worker: 8, hold_file: 12, hold_file_long: 2, read_long: 8, checkpoint: 8,
    remove_locks: 8, remove_sockets: 4, step_clock: 8, fail_disk: 8, spoil: 10
  }.freeze

  QUEUES = %w[a b narrow ringspun-quarantine].freeze
  # SQLite cuts the WAL at its next beginning, which readers put off for as long as they read.
  WAL_MOST = 128 << 20
  FILE_MOST = 64 << 20
  # What is kept for a time, or for good.
  KEPT = %w[state queues nodes jobs sets histories results locks pushed announced measured minutes
            old_runs set_sizes signals].freeze

  private

  def faults = FAULTS

  def path = File.join(@folder, "jobs.sqlite3")
  def flag = File.join(@folder, "the-disk-fails")
  def clock = @clock ||= SetClock.new(File.join(@folder, "clock"))

  def open_storage
    @wal_most = 0
    DiskFaults.build
    storage.stats # which makes the file
    @database = Extralite::Database.new(path)
    @database.busy_timeout = 60
  end

  def close_storage
    [@database, @foreign].each { |one| one&.close }
    @storage&.close
  end

  def settings(_number, _hours)
    { "FAULT_STORAGE" => "sqlite:#{path}", "DISK_FAULTS" => DiskFaults.build, "DISK_FAULTS_WHILE" => flag, **clock.env }
  end

  # Only root may.
  def host(number)
    @hosts = system("unshare", "--uts", "hostname", "elsewhere", %i[out err] => File::NULL) if @hosts.nil?
    @counts["hosts"] = @hosts ? 2 : 1
    @hosts && number.zero? ? ["unshare", "--uts", "sh", "-c", 'hostname elsewhere && exec "$@"', "sh"] : []
  end

  def storage = @storage ||= Ringspun::Jobs::Storage::Sqlite.new(path)

  def query(sql, ...) = @database.query_array(sql, ...)

  # A program that takes no turns.
  def foreign = @foreign ||= Extralite::Database.new(path).tap { |one| one.busy_timeout = 60 }

  def replace_the_dead
    super
    @wal_most = [@wal_most, File.size?("#{path}-wal") || 0].max
  end

  # --- what goes wrong ---

  def hold(seconds)
    foreign.execute("BEGIN IMMEDIATE")
    sleep seconds
    foreign.execute("COMMIT")
    @counts["times another program held the file"] += 1
  end

  def hold_file = hold(@random.rand * LEASE_SECONDS * 1.5)
  # Longer than anybody waits.
  def hold_file_long = hold(6)

  def read_long
    foreign.execute("BEGIN")
    foreign.query_array("SELECT count(*) FROM jobs")
    sleep @random.rand * 3
    foreign.execute("COMMIT")
    @counts["long reads"] += 1
  end

  def checkpoint
    foreign.query_array("PRAGMA wal_checkpoint(TRUNCATE)")
    @counts["checkpoints"] += 1
  end

  def remove_locks
    FileUtils.rm_f("#{path}-locks")
    @counts["times the file of locks was removed"] += 1
  end

  def remove_sockets
    FileUtils.rm_f(Dir["#{path}-wake/*"])
    @counts["times the sockets were removed"] += 1
  end

  def step_clock
    clock.set([-3600, 0, 3600][@random.rand(3)])
    @counts["steps of the clock"] += 1
  end

  def fail_disk
    FileUtils.touch(flag)
    sleep @random.rand * 1.5
    FileUtils.rm_f(flag)
    @counts["times the disk failed"] += 1
  end

  # By the last time all that waits is due.
  def end_faults = clock.set(7200)

  # --- what is put in by hand ---

  def put_malformed
    QUEUES.each { |queue| restore(queue) }
    %i[schedule retry dead].each { |set| restore(set, Time.now.to_f + (@random.rand < 0.5 ? -60 : @random.rand)) }
  end

  def restore(place, at = nil)
    storage.restore(place, [Ringspun::Jobs::Storage::Stored.new(nil, malformed, at)])
  end

  # --- the end ---

  LEFT = <<~SQL
    SELECT 'queue ' || name, (SELECT count(*) FROM ready WHERE queue = queues.id) FROM queues
    UNION ALL SELECT 'in flight', (SELECT count(*) FROM flight)
    UNION ALL SELECT 'set ' || kind, count(*) FROM sets WHERE kind < 2 GROUP BY kind
  SQL

  def left = query(LEFT).to_h

  def dead_entries = query("SELECT entry FROM jobs JOIN sets ON job = jobs.id WHERE kind = 2").flatten

  def judge_leftovers
    2.times { storage.recover(100, forget: 0) }
    judge_tables
    tokens = query("SELECT token FROM locks").flatten
    problem("locks left over", tokens.reject { |token| @ledger.kinds.key?(token) || token.start_with?("ringspun:") })
    judge_file
  end

  def judge_tables
    names = query("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'").flatten
    sizes = (names - KEPT).to_h { |name| [name, query("SELECT count(*) FROM #{name}").first.first] }
    problem("rows left over", sizes.reject { |_, size| size.zero? }.to_a)
    problem("jobs of no place", query("SELECT id FROM jobs WHERE id NOT IN (SELECT job FROM sets)"))
    problem("nodes left over", query("SELECT name FROM nodes WHERE listed"))
    whole = query("PRAGMA integrity_check")
    @problems << "the file is not whole: #{whole}" unless whole == [["ok"]]
  end

  def judge_file
    size = File.size(path)
    @counts["KB of WAL at most"] = @wal_most / 1024
    @counts["KB of the file"] = size / 1024
    @problems << "the WAL had #{@wal_most} bytes" if @wal_most > WAL_MOST
    @problems << "the file has #{size} bytes" if size > FILE_MOST
    close_storage
    @database = @foreign = @storage = nil
    left = File.size?("#{path}-wal")
    @problems << "the WAL has #{left} bytes, and nobody has it open" if left
  end
end
