# frozen_string_literal: true

require "jobs_helper"
require_relative "../support/sqlite_case"

# What a storage knows of the files that are beside its database, and what it does where it cannot know.
class SqlitePairingTest < SqliteCase
  include AnyBackend

  def engine = @engine ||= storage.tap(&:stats).instance_variable_get(:@engine)

  def part(name) = engine.instance_variable_get(:"@#{name}")

  # Lets time go on.
  module Later
    class << self
      attr_accessor :seconds
    end

    def now(...) = super + Later.seconds.to_i
  end

  # Long after the last change.
  def later
    Time.singleton_class.prepend(Later)
    Later.seconds = 60
    yield
  ensure
    Later.seconds = nil
  end

  # As rsync and tar do, which set the time of a folder back when all is in it.
  def test_a_file_that_is_replaced_in_a_folder_whose_time_is_set_back
    push("a")
    files = Sqlite.const_get(:FileSet).of(path)
    time = File.stat(folder).mtime
    assert later { files.there? }
    FileUtils.cp("#{path}-wal", "#{path}-wal.copy")
    File.rename("#{path}-wal.copy", "#{path}-wal")
    File.utime(time, time, folder)
    assert_equal time, File.stat(folder).mtime
    refute later { files.there? }
  end

  # So that the next one gets another number.
  def close_and_keep_the_wal
    File.link("#{path}-wal", "#{path}-wal.kept")
    storage.close
    refute_path_exists "#{path}-wal"
  end

  # Of a process that is killed, by no storage.
  def leave_a_wal(sql)
    status_of(forked do
      Extralite::Database.new(path).execute(sql)
      exit!(0)
    end)
    assert File.size?("#{path}-wal")
  end

  def test_a_wal_that_another_program_has_left_after_the_last_close
    push("a")
    close_and_keep_the_wal
    leave_a_wal("CREATE TABLE theirs (a)")
    assert_nil push("b")
    assert_equal [%w[a b], [[0]]], [jids(storage.list("default", 0, 9)), query("SELECT count(*) FROM theirs")]
  end

  # As by `cp -a backup/jobs.sqlite3* data/` into a folder without a file of locks of that time.
  def test_a_copy_with_its_wal_that_is_put_back_after_the_last_close
    push("a")
    copied = ["", "-wal"].map { |end_of_name| "#{path}#{end_of_name}" }
    copied.each { |name| FileUtils.cp(name, "#{name}.copy", preserve: true) }
    push("b")
    close_and_keep_the_wal
    copied.each { |name| FileUtils.cp("#{name}.copy", name, preserve: true) }
    assert_equal %w[a], jids(storage.list("default", 0, 9))
    assert_nil push("c")
    assert_equal [%w[a c], [["ok"]]], [jids(storage.list("default", 0, 9)), query("PRAGMA integrity_check")]
  end

  # What is in it is in the file, and was written over there since.
  def test_an_old_wal_that_is_put_back_after_the_last_close
    push("a")
    FileUtils.cp("#{path}-wal", "#{path}-wal.old", preserve: true)
    push("b")
    close_and_keep_the_wal
    File.rename("#{path}-wal.old", "#{path}-wal")
    error = assert_raises(Jobs::StorageError) { push("c") }
    assert_match(/-wal is not the one that .* belongs to the file, .* remove #{path}-locks; else move it away/, error.message)
    File.unlink("#{path}-wal")
    assert_nil push("d")
    assert_equal %w[a b d], jids(storage.list("default", 0, 9))
  end

  # The record is then that of the time of the copy.
  def test_a_copy_with_its_file_of_locks_that_is_put_back
    push("a")
    names = ["", "-wal", "-locks"].map { |end_of_name| "#{path}#{end_of_name}" }
    names.each { |name| FileUtils.cp(name, "#{name}.copy", preserve: true) }
    close_and_keep_the_wal
    names.each { |name| FileUtils.cp("#{name}.copy", name, preserve: true) }
    assert_raises(Jobs::StorageError) { push("b") }
    File.unlink("#{path}-locks")
    assert_nil push("c")
    assert_equal %w[a c], jids(storage.list("default", 0, 9))
  end

  # As the gem sqlite3 says that it is there.
  def another_copy = Object.const_set(:SQLite3, Module.new { const_set(:Database, Class.new) })

  # A program that has another copy of SQLite is asked whose file it is, by a connection that comes before all others.
  def test_an_old_wal_is_not_read_by_the_first_look_at_a_file
    push("a")
    FileUtils.cp("#{path}-wal", "#{path}-wal.old")
    close_and_keep_the_wal
    File.rename("#{path}-wal.old", "#{path}-wal")
    status = status_of(forked do
      another_copy
      push("b") rescue exit!($!.is_a?(Jobs::StorageError) && $!.message.include?("is not the one") ? 3 : 4)
      exit!(0)
    end)
    assert_equal [3, true], [status.exitstatus, !File.size?("#{path}-wal").nil?]
  end

  # A process that has these files open, by no storage.
  def open_elsewhere(*paths)
    ready, told = IO.pipe
    gate, ended = IO.pipe
    pid = forked do
      [ready, ended].each(&:close)
      all = paths.map { |one| Extralite::Database.new(one).tap { |database| database.query("SELECT * FROM sqlite_schema") } }
      told << "ready"
      gate.read
      exit!(all.size)
    end
    [told, gate].each(&:close)
    ready.read(5)
    @elsewhere = [pid, ended, ready]
  end

  def end_elsewhere
    pid, *pipes = @elsewhere
    pipes.each(&:close)
    status_of(pid)
  end

  def test_a_process_that_has_another_database_of_the_same_name_elsewhere
    push("a")
    storage.close
    Dir.mkdir("#{folder}/other")
    FileUtils.cp(path, "#{folder}/other/jobs.sqlite3")
    open_elsewhere(path, "#{folder}/other/jobs.sqlite3")
    assert_nil push("b")
    FileUtils.remove_entry("#{folder}/other")
    storage.close
    assert_nil push("c")
  ensure
    end_elsewhere
  end

  Location = Sqlite.const_get(:Location)
  private_constant :Location

  # Runs a block after the first system call that asks for a descriptor.
  module AfterOne
    class << self
      attr_accessor :block
    end

    def readlink(...)
      name = super
      block, AfterOne.block = AfterOne.block, nil
      block&.call
      name
    end
  end

  # As where one thread closes a file, and another opens one beside a database.
  def test_a_descriptor_that_is_given_to_another_file_while_it_is_looked_at
    File.write("#{path}-wal", "")
    File.singleton_class.prepend(AfterOne)
    File.open(folder) do |io|
      AfterOne.block = -> { io.reopen("#{path}-wal") }
      assert_equal [Location.identity("#{path}-wal"), "#{path}-wal".b], Location.open_file("/proc/self/fd/#{io.fileno}")
    end
    assert_nil Location.open_file("/proc/self/fd/1000000")
  ensure
    AfterOne.block = nil
  end

  # Shows at each look another file that has a name.
  module OtherEachTime
    class << self
      attr_accessor :name, :looks
    end

    def open_files(...)
      name = OtherEachTime.name or return super
      [*super, [[0, OtherEachTime.looks += 1], name]]
    end
  end

  # A file that shows at one look only is one that is opened or closed just then.
  def test_what_only_one_look_shows_is_no_reason_to_refuse
    Location.singleton_class.prepend(OtherEachTime)
    OtherEachTime.looks = 0
    OtherEachTime.name = "#{path}-wal".b
    assert_nil push("a")
    assert_operator OtherEachTime.looks, :>, 2
  ensure
    OtherEachTime.name = nil
  end

  # Or the thread that asks would end, and nobody would hear of jobs of other processes any more.
  def test_a_look_that_fails_is_no_end_of_looks
    part(:reader).define_singleton_method(:call) { |*| raise @error }
    engine.__send__(:close_reading)
    [Jobs::ConfigError.new("a"), Errno::EMFILE.new, IOError.new("closed")].each do |error|
      part(:reader).instance_variable_set(:@error, error)
      assert_nil engine.__send__(:data_version)
    end
  end

  def test_a_socket_that_cannot_be_removed_leaves_nothing_open
    push("a")
    storage.stats
    writer = part(:writer)
    part(:bells).define_singleton_method(:close) { raise Errno::EIO }
    assert_raises(Errno::EIO) { storage.close }
    assert_equal [false, []], [writer.alive?, open_here]
    assert_nil push("b")
  end

  # What the close of a connection asks for before may fail, as where a process has too many files open.
  %i[closed record].each do |what|
    define_method("test_a_connection_is_closed_where_#{what}_fails") do
      push("a")
      storage.stats
      part(:lock_file).define_singleton_method(what) { |*| raise Errno::EMFILE }
      assert_raises(Errno::EMFILE) { engine.__send__(:close_connections) }
      assert_empty(open_here.reject { |name| name.end_with?("-locks") })
    ensure
      part(:lock_file).singleton_class.remove_method(what)
    end
  end

  # Its end is known, its outcome is not.
  def test_a_look_at_the_files_that_fails_after_a_commit
    push("a")
    files = part(:write_files)
    looks = 0
    files.define_singleton_method(:there?) { (looks += 1) == 2 ? raise(Errno::EIO) : super() }
    assert_raises(Jobs::UnknownOutcomeError) { push("b") }
    assert_equal 2, looks
    assert_equal %w[a b], jids(storage.list("default", 0, 9))
  end

  # The kernel's names of what is open in the folder.
  def open_here = Sqlite.const_get(:Location).open_files.map(&:last).select { |name| name.start_with?(folder) }

  def guard = Sqlite.const_get(:Guard).of(path)

  def main_open = open_here.count(path)

  # Any descriptor of the file that is closed takes the locks along that SQLite has there.
  def test_a_guard_that_is_used_again_and_stays_open_after_the_last_close
    push("a")
    2.times { guard.end }
    first, second = Array.new(2) { guard }
    refute_same first, second
    [first, second].each(&:end)
    assert_same second, second.then { [guard, guard].each(&:end).last }
    storage.close
    assert_equal 2, main_open
    assert_equal 0, status_of(forked { exit!((guard.end; main_open - 3)) }).exitstatus, "a child uses none of its parent"
  end

  def test_a_guard_of_a_file_that_has_gone_is_closed
    push("a")
    guard.end
    File.rename(path, "#{path}.old")
    File.unlink("#{path}.old")
    guards = Array.new(2) { |number| "#{folder}/#{number}".tap { |name| File.write(name, "") } }
    guards.each { |name| Sqlite.const_get(:Guard).of(name).end }
    refute_empty(open_here.grep(/old \(deleted\)/), "a connection has it")
    storage.close
    Sqlite.const_get(:Guard).of(guards.first).end
    assert_empty open_here.grep(/old \(deleted\)/)
  end

  # It is no connection that nobody knows of.
  def test_a_file_whose_guard_is_open_can_be_opened_again
    push("a")
    guard.end
    storage.close
    status = status_of(forked do
      another_copy
      Sqlite.const_get(:Library).for(path, nil) { false } == [:extralite, false] ? exit!(0) : exit!(1)
    end)
    assert_predicate status, :success?
  end

  # As one that is mounted anew. A ConfigError would end a worker.
  def test_a_folder_that_is_gone_for_a_moment
    push("a")
    storage.stats
    File.rename(folder, "#{folder}.moved")
    assert_raises(Jobs::UnavailableError) { push("b") }
    assert_raises(Jobs::UnavailableError) { storage.stats }
    File.rename("#{folder}.moved", folder)
    assert_nil push("c")
    assert_equal %w[a c], jids(storage.list("default", 0, 9))
  end

  # Else the last one that closes takes the lock away that the first one has just got.
  def test_one_thread_opens_a_connection_while_another_closes_one
    locks = Sqlite.const_get(:LockFile).new("#{path}-locks")
    other = Sqlite.const_get(:LockFile).new("#{path}-locks")
    locks.opened(:first, "")
    opens = nil
    locks.define_singleton_method(:set) do |*all|
      singleton_class.remove_method(:set)
      opens = Thread.new { opened(:second, "") }
      Thread.pass until opens.stop?
      set(*all)
    end
    locks.closed(:first)
    opens.join
    assert_predicate other, :opened_elsewhere?
    locks.closed(:second)
    refute_predicate other, :opened_elsewhere?
  ensure
    [locks, other].each(&:release)
  end

  # The kernel says then that the name by which a process has opened it was removed.
  def test_a_name_that_was_removed_and_put_back_is_no_second_one
    push("a")
    storage.close
    open_elsewhere(path)
    File.link(path, "#{folder}/backup")
    File.unlink(path)
    File.link("#{folder}/backup", path)
    assert_nil push("b")
  ensure
    end_elsewhere
  end

  # Beside the file of another name, and of the same name elsewhere.
  def test_names_that_are_of_other_files_here_are_no_second_ones
    File.write(path, "")
    File.link(path, "#{folder}/link")
    Dir.mkdir("#{folder}/other")
    told = ["other/jobs.sqlite3", "else", "link", "link (deleted)"].map do |name|
      File.write("#{folder}/#{name}", "") if name.match?(/other|else/)
      refuses?("#{folder}/#{name}")
    end
    File.unlink("#{folder}/other/jobs.sqlite3")
    File.link(path, "#{folder}/other/jobs.sqlite3")
    assert_equal [false, false, true, true, true], told << refuses?("#{folder}/other/jobs.sqlite3")
  end

  def refuses?(name)
    main = Sqlite.const_get(:Location).identity(path)
    pairing = Sqlite.const_get(:Pairing).new(path, nil)
    pairing.define_singleton_method(:holders) { |*| { 1 => [[main, name.b]] } }
    pairing.__send__(:refuse_second_name, main)
    false
  rescue Jobs::StorageError
    true
  end
end
