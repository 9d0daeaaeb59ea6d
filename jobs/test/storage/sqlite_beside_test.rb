# frozen_string_literal: true

require "jobs_helper"
require_relative "../support/sqlite_case"
require_relative "../support/beside"

# Somebody removes, moves or replaces what is beside the file while processes have it open: nothing that was accepted is lost.
class SqliteBesideTest < SqliteCase
  include AnyBackend

  PARTS = %w[-wal -shm -locks].freeze

  def other
    @other ||= Beside::Process.new(path)
  end

  def teardown
    @other&.stop
    super
  end

  def remove(*parts) = parts.each { |part| File.unlink("#{path}#{part}") }

  # As whoever enqueues does.
  def push_until_it_is_stored(jid)
    push(jid)
  rescue Jobs::UnavailableError => error
    @told = error.message
    assert_nil push(jid)
  end

  def read_elsewhere
    reader, writer = IO.pipe
    pid = forked { writer << JSON.generate(jids(Sqlite.new(path).list("default", 0, 99))) }
    writer.close
    assert_predicate status_of(pid), :success?
    JSON.parse(reader.read)
  ensure
    reader&.close
  end

  [%w[-wal], %w[-shm], %w[-wal -shm], PARTS].each do |parts|
    define_method("test_#{parts.join} is removed under a process") do
      push("a")
      remove(*parts)
      push_until_it_is_stored("b")
      assert_match(/the -wal or the -shm of .* was removed or replaced, and what was stored is in the file; nothing/, @told)
      assert_equal [%w[a b]] * 2, [jids(storage.list("default", 0, 9)), read_elsewhere]
      assert_equal [["ok"]], query("PRAGMA integrity_check")
    end

    define_method("test_#{parts.join} is removed under two processes, and one of them finds it") do
      assert_nil other.push("a") # it begins with a fork, which closes what this one has open
      push("b")
      remove(*parts)
      push_until_it_is_stored("c")
      push("d")
      assert_equal ["Ringspun::Jobs::UnavailableError", nil], [other.push("e"), other.push("f")]
      assert_equal [%w[a b c d f]] * 3, [jids(storage.list("default", 0, 9)), other.call(:list), read_elsewhere]
    end

    # As one that has just been started.
    define_method("test_#{parts.join} is removed, and the first to come knows nothing of it") do
      assert_nil other.push("a")
      remove(*parts)
      error = assert_raises(Jobs::UnavailableError) { push("b") }
      assert_match(/was removed or replaced, and 1 process \(\d+\) still has the old one, .* nothing was done/, error.message)
      assert_raises(Jobs::UnavailableError) { storage.stats }
      other.push("c")
      push("d")
      assert_nil other.push("e")
      assert_equal %w[a d e], read_elsewhere
    end
  end

  def checkpoint(kind) = query("PRAGMA wal_checkpoint(#{kind})")

  # What somebody writes over the -wal, made when a and b are in the file and c is not.
  OVER = {
    an_old_one: ->(_) {}, # a copy of the time of b
    one_of_before: ->(it) { it.checkpoint("RESTART") }, # the front of the -wal is used anew after the copy
    one_of_another_file: lambda do |it|
      other = it.open_storage("#{it.folder}/other.sqlite3")
      9.times { |number| other.push([it.push_of("o#{number}")]) }
      FileUtils.cp("#{other.path}-wal", "#{it.path}.copy")
    end,
    nothing: ->(it) { File.write("#{it.path}.copy", "") },
    bytes: ->(it) { File.binwrite("#{it.path}.copy", "x" * 100_000) }
  }.freeze

  # As `cp` does, by which the file stays the same one: what is stored after that would be lost as well.
  OVER.each do |name, make|
    define_method("test_a_wal_over_which_#{name}_is_written_takes_no_more_jobs") do
      push("a")
      checkpoint("TRUNCATE")
      push("b")
      FileUtils.cp("#{path}-wal", "#{path}.copy")
      make.call(self)
      push("c")
      IO.copy_stream("#{path}.copy", "#{path}-wal")
      told = Array.new(2) { assert_raises(Jobs::StorageError) { push("d") }.message }
      told << assert_raises(Jobs::StorageError) { storage.stats }.message
      assert_match(/written over .*-wal .* is lost; nothing is read or done: end all .* move the -wal/, told.uniq.join)
      storage.close
      %w[-wal -shm -locks].each { |part| FileUtils.rm_f("#{path}#{part}") }
      assert_equal [name == :one_of_before ? %w[a b] : %w[a], [["ok"]]], [read_elsewhere, query("PRAGMA integrity_check")]
    end
  end

  # By which SQLite begins anew at the front, or cuts it: nothing of that is somebody's writing over it.
  def test_a_wal_that_sqlite_begins_anew_takes_jobs
    %w[PASSIVE FULL RESTART TRUNCATE].repeated_combination(2).each_with_index do |kinds, number|
      kinds.each { |kind| checkpoint(kind) }
      assert_nil push("j#{number}")
      query("UPDATE queues SET used = used RETURNING 1")
      assert_nil push("k#{number}")
    end
    assert_equal 20, storage.stats[:enqueued]
  end
end
