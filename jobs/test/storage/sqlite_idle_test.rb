# frozen_string_literal: true

require "jobs_helper"
require "socket"
require_relative "../support/sqlite_case"
require_relative "../support/beside"

# What a process does with a file while nobody calls it: it hears of the commits of other programs, and lets go of what others
# have put away.
class SqliteIdleTest < SqliteCase
  include Strands
  include AnyBackend

  Looks = Sqlite.const_get(:Looks)
  private_constant :Looks

  # Looks whose time stands still, at zero.
  def looks(folder = self.folder)
    @reader, @writer = Socket.pair(:UNIX, :DGRAM)
    Looks.new(folder, @reader).tap { |made| made.define_singleton_method(:now) { 0 } }
  end

  def teardown
    [@reader, @writer].each { |socket| socket&.close }
    @beside&.stop
    super
  end

  # @return [Numeric] seconds to the next look
  def pause_after(looks, written, changed)
    looks.looked(written, changed)
    looks.instance_variable_get(:@at)
  end

  def write = File.write("#{folder}/jobs.sqlite3-wal", "x")

  def test_a_write_asks_for_a_look_at_once
    looks = self.looks
    assert_predicate looks, :due?
    looks.looked(false, true)
    looks.looked(false, false)
    refute_predicate looks, :due?
    refute looks.take_writes
    write
    looks.wait(true)
    assert_predicate looks, :due?
    assert_equal [true, false], Array.new(2) { looks.take_writes }
  ensure
    looks&.close
  end

  # Else a program that writes all the time would wake the thread for each of its writes.
  def test_beside_a_look_that_is_due_soon_a_write_asks_for_none
    looks = self.looks
    looks.looked(true, false)
    write
    @writer.send("x", 0)
    looks.wait(true)
    refute_predicate looks, :due?
  ensure
    looks&.close
  end

  def test_looks_become_rare_where_nobody_writes
    looks = self.looks
    assert_equal [0.05, 0.1, 0.2, 0.4, 0.8, 1, 1], [true, *[false] * 6].map { |written| pause_after(looks, written, false) }
    assert_equal [0.05, 1, 1], [true, false, false].map { |changed| pause_after(looks, false, changed) }
  ensure
    looks&.close
  end

  # As where the user has too many watches.
  def test_without_word_from_the_kernel_looks_go_on
    looks = self.looks("#{folder}/none")
    assert_equal [0.05] * 3, Array.new(3) { pause_after(looks, false, false) }
    refute looks.take_writes
  ensure
    looks&.close
  end

  def test_a_forked_child_has_no_part_in_it
    storage.stats
    Ringspun.run do
      waits = parked { storage.wait_any(NODE, ["none"], 60) }
      assert_equal [1, 0], [watches, status_of(forked { exit!(watches) }).exitstatus]
      storage.rouse(NODE)
      waits.await
    end
    storage.close
    assert_equal 0, watches
  end

  def watches = Dir["/proc/self/fd/*"].count { |fd| (File.readlink(fd) rescue "").include?("inotify") }

  Lane = Sqlite.const_get(:Lane)
  private_constant :Lane

  # Another process, which looks around all the time while it is idle.
  def beside
    @beside ||= begin
      idle = Lane.idle
      Lane.idle = 0.01 # must pass
      Beside::Process.new(path)
    ensure
      Lane.idle = idle
    end
  end

  def push_until_it_is_stored(jid)
    error = nil
    stored = Patience.poll(60, pause: 0.01) do
      push(jid)
      true
    rescue Jobs::UnavailableError => error
      false
    end
    assert stored, error&.message
  end

  # As one of the web that enqueues now and then: nobody else could begin before.
  [%w[-wal], %w[-shm], %w[-wal -shm]].each do |parts|
    %i[push list].each do |call|
      define_method("test_a_process_that_is_idle_lets_go_of_a_#{parts.join}_that_was_removed_after_a_#{call}") do
        storage.push([push_of("a")]) if call == :list
        beside.call(call, %w[a])
        parts.each { |part| File.unlink("#{path}#{part}") }
        push_until_it_is_stored("b")
        assert_equal %w[a b], jids(storage.list("default", 0, 9))
        told = [beside.push("c"), beside.push("d")]
        # Whoever writes is told once, as if nobody had looked around.
        assert_equal [call == :push ? ["Ringspun::Jobs::UnavailableError", nil] : [nil, nil], [["ok"]]],
                     [told, query("PRAGMA integrity_check")]
        assert_equal call == :push ? %w[a b d] : %w[a b c d], jids(storage.list("default", 0, 9))
      end
    end
  end
end
