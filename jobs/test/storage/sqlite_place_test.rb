# frozen_string_literal: true

require "jobs_helper"
require_relative "../support/sqlite_case"

# Where a file is, what it is called, and who may write there.
class SqlitePlaceTest < SqliteCase
  include AnyBackend

  NOBODY = 65_534

  # As a user who may only do what the modes say.
  #
  # @return [String] the error
  def as_nobody
    reader, writer = IO.pipe
    pid = forked do
      Process::Sys.setuid(NOBODY) if Process.uid.zero?
      writer << (yield.inspect rescue "#{$!.class}: #{$!.message}")
    end
    writer.close
    assert_predicate status_of(pid), :success?
    reader.read
  ensure
    reader&.close
  end

  # Files as a process of the same user has left them that was killed.
  def left_behind(open: %w[jobs.sqlite3 jobs.sqlite3-locks jobs.sqlite3-shm jobs.sqlite3-wal])
    pid = forked { Sqlite.new(path).push([push_of("a")]) }
    status_of(pid)
    File.chmod(0o777, folder)
    open.each { |name| File.chmod(0o666, File.join(folder, name)) }
  end

  ["", "-locks", "-wal", "-shm"].each do |part|
    define_method("test_no_permission_for_#{part.empty? ? "the file" : part}") do
      left_behind
      File.chmod(0o400, "#{path}#{part}")
      told = as_nobody { Sqlite.new(path).push([push_of("b")]) }
      assert_match(/\ARingspun::Jobs::ConfigError: .*jobs.sqlite3#{part} can.*not be written by this process.*one user/, told)
    end
  end

  def test_no_permission_for_the_folder
    left_behind
    %w[wal shm].each { |part| File.unlink("#{path}-#{part}") }
    File.chmod(0o555, folder)
    told = as_nobody { Sqlite.new(path).push([push_of("b")]) }
    assert_match(/\ARingspun::Jobs::ConfigError: #{folder} can.*not be written by this process/, told)
  ensure
    File.chmod(0o700, folder)
  end

  # Answers what is said to be mounted.
  module Mounted
    class << self
      attr_accessor :file
    end

    def file_system(device, mounts = Mounted.file || "/proc/self/mountinfo") = super
  end

  def test_a_folder_that_other_hosts_may_share
    device = File.stat(folder).dev
    number = "#{File.stat(folder).dev_major}:#{File.stat(folder).dev_minor}"
    location = Sqlite.const_get(:Location)
    location.singleton_class.prepend(Mounted)
    own = location.file_system(device)
    refute_nil own
    Mounted.file = File.join(folder, "mounts")
    { "nfs4" => true, "fuse.sshfs" => true, "vboxsf" => true, "ext4" => false, "overlay" => false }.each do |kind, refused|
      File.write(Mounted.file, "21 1 0:999 / / rw shared:1 - nfs4 other rw\n" \
                               "22 1 #{number} / #{folder} rw,relatime shared:2 - #{kind} server:/a rw\n")
      error = (open_storage.stats && nil rescue $!)
      assert_equal refused ? Jobs::ConfigError : NilClass, error.class, kind
      assert_includes error.message, "is on #{kind}, which several hosts can share; SQLite needs a local disk" if refused
    end
  ensure
    Mounted.file = nil
  end

  # Somebody else has made it anew while this process goes on.
  def test_a_file_of_locks_without_permission_while_a_process_runs
    left_behind
    told = as_nobody do
      own = Sqlite.new(path)
      own.push([push_of("b")])
      File.rename("#{path}-locks", "#{path}-locks.old")
      File.write("#{path}-locks", "")
      File.chmod(0, "#{path}-locks")
      error = own.push([push_of("c")]) rescue $!
      File.rename("#{path}-locks.old", "#{path}-locks")
      [error.class, error.message, own.push([push_of("d")])]
    end
    assert_match(/UnavailableError, ".*-locks cannot be used now, .*: Permission denied.*; all processes that share it/, told)
    assert_match(/, nil\]\z/, told)
  end

  def test_a_umask_that_leaves_nothing
    before = File.umask(0o777)
    push("a")
    Ringspun.run { storage.wait_any(NODE, ["none"], 0.01) } # must pass
    names = %w[jobs.sqlite3 jobs.sqlite3-locks jobs.sqlite3-shm jobs.sqlite3-wal]
    assert_equal [0o600] * 4, names.map { |name| File.stat(File.join(folder, name)).mode & 0o777 }
    assert_equal 0o700, File.stat("#{path}-wake").mode & 0o777
  ensure
    File.umask(before)
  end

  # SQLite names what is beside a file by the name by which it was opened.
  def test_a_file_with_two_names
    push("a")
    File.link(path, "#{folder}/other")
    error = assert_raises(Jobs::StorageError) { open_storage("#{folder}/other").push([push_of("b")]) }
    assert_match(/other is the same file as #{path}, by a hard link, .*open it by one name/, error.message)
    assert_nil push("c")
    told = as_nobody_is_there { Sqlite.new("#{folder}/other").push([push_of("d")]) }
    assert_match(/is the same file as/, told, "in another process")
    assert_equal %w[a c], jids(storage.list("default", 0, 9))
  end

  def as_nobody_is_there
    reader, writer = IO.pipe
    gate = IO.pipe
    pid = forked do
      gate.last.close
      gate.first.read
      writer << (yield.inspect rescue $!.message)
    end
    writer.close
    storage.stats # which the fork has closed
    gate.each(&:close)
    status_of(pid)
    reader.read
  ensure
    reader&.close
  end

  def test_names_that_are_addresses_elsewhere
    ["a b", "a?mode=ro", "a%20b", "a#b", "ümlaut", "a'\"b", "a\nb", "a\xffb".b].each do |name|
      at = "#{folder.b}/#{name.b}"
      own = open_storage(at)
      own.push([push_of("a")])
      assert_equal [1, true], [own.stats[:enqueued], File.exist?("#{at}-wal")], name
    end
  end

  def test_a_symbolic_link_and_another_folder
    File.write("#{folder}/real", "")
    File.symlink("#{folder}/real", "#{folder}/link")
    open_storage("#{folder}/link").push([push_of("a")])
    other = Dir.chdir(folder) { open_storage("link") }
    other.push([push_of("b")])
    assert_equal ["#{folder}/real", %w[a b]], [other.path, jids(other.list("default", 0, 9))]
    refute_path_exists "#{folder}/link-wal"
  end

  # Behind pages that are not there.
  def test_a_file_of_more_than_four_gigabytes
    push("a")
    storage.close
    File.open(path, "r+b") do |file|
      pages = (5 << 30) / 4096
      file.pwrite([pages].pack("N"), 28) # https://www.sqlite.org/fileformat.html#in_header_database_size
      file.truncate(pages * 4096)
    end
    assert_nil push("b", "c")
    storage.close
    assert_equal %w[a b c], jids(storage.list("default", 0, 9))
    assert_operator File.size(path), :>, 4 << 30
  end

  # As a page that takes long, or a backup. Nobody waits for it, and the WAL grows no more after it.
  def test_somebody_who_reads_for_long
    push("a")
    reader = Extralite::Database.new(path)
    reader.execute("BEGIN")
    reader.query("SELECT count(*) FROM jobs")
    20.times { |number| storage.push(Array.new(200) { |index| push_of("#{number} #{index} #{"x" * 900}") }) }
    assert_operator File.size("#{path}-wal"), :>, 4 << 20
    reader.execute("COMMIT")
    reader.close
    push("b")
    grown = File.size("#{path}-wal")
    60.times { push("b") }
    assert_equal grown, File.size("#{path}-wal"), "it is used anew from its beginning"
  ensure
    reader&.close
  end

  def foreign
    connection = Extralite::Database.new(path)
    connection.busy_timeout = 10
    yield connection
  ensure
    connection&.close
  end

  def test_another_program_that_makes_the_file_smaller
    push(*Array.new(500) { |number| "j#{number} #{"x" * 500}" })
    storage.stats
    storage.clear("default")
    push("a")
    foreign { |connection| connection.execute("VACUUM") }
    push("b")
    assert_equal %w[a b], jids(storage.list("default", 0, 9))
    foreign { |connection| connection.execute("PRAGMA wal_checkpoint(TRUNCATE)") }
    push("c")
    assert_equal [%w[a b c], [["ok"]]], [jids(storage.list("default", 0, 9)), query("PRAGMA integrity_check")]
  end

  # While a process has it open SQLite refuses that; then it is WAL again with the next call.
  def test_another_program_that_changes_the_mode
    push("a")
    storage.stats
    assert_raises(Extralite::Error) { Extralite::Database.new(path).tap { |one| @db = one }.execute("PRAGMA journal_mode = DELETE") }
    @db.close
    storage.close
    foreign { |connection| connection.execute("PRAGMA journal_mode = DELETE") }
    assert_equal 1, storage.stats[:enqueued]
    push("b")
    assert_equal [%w[a b], [["wal"]]], [jids(storage.list("default", 0, 9)), query("PRAGMA journal_mode")]
  end

  # As whoever puts a copy back while workers run. The file that it replaces keeps all that was stored in it.
  def test_a_copy_that_is_put_back_while_a_process_runs
    push("a")
    foreign { |connection| connection.execute("VACUUM INTO '#{path}.copy'") }
    push("b")
    storage.stats
    File.rename(path, "#{path}.old")
    File.rename("#{path}.copy", path)
    assert_raises(Jobs::UnavailableError) { push("c") }
    assert_nil push("d")
    assert_equal %w[a d], jids(storage.list("default", 0, 9))
    storage.close
    assert_equal %w[a b], jids(open_storage("#{path}.old").list("default", 0, 9))
    assert_equal [["ok"]], query("PRAGMA integrity_check")
  end

  # Its process was killed, so that its last pages are in a file that SQLite would take for that of the copy.
  def test_a_copy_that_is_put_back_after_a_kill
    push("a")
    foreign { |connection| connection.execute("VACUUM INTO '#{path}.copy'") }
    storage.close
    status_of(forked { Sqlite.new(path).push([push_of("b")]) })
    File.rename(path, "#{path}.old")
    File.rename("#{path}.copy", path)
    error = assert_raises(Jobs::StorageError) { push("c") }
    assert_match(/-wal is not the one that was beside this file/, error.message)
    %w[wal shm].each { |part| File.rename("#{path}-#{part}", "#{path}.old-#{part}") }
    assert_nil push("d")
    assert_equal [%w[a d], %w[a b]], [path, "#{path}.old"].map { |one| jids(open_storage(one).list("default", 0, 9)) }
  end
end
