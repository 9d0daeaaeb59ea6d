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
end
