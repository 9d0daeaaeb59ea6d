# frozen_string_literal: true

require "jobs_helper"
require_relative "../support/sqlite_case"

# Versions of the tables in a file, and what is wrong in it.
class SqliteUpkeepTest < SqliteCase
  include AnyBackend

  def schema = Sqlite.const_get(:Schema)

  def known = schema::STEPS.size

  def version_in_file = query("PRAGMA user_version").first.first

  # As an earlier program has left it: two jobs in a queue, one in flight, one in a set, and a lock.
  def make_old(jobs: 4)
    statements = schema::FIRST.split(";\n")
    texts = Array.new(jobs) { |number| "INSERT INTO jobs VALUES (#{number + 1}, '#{entry("j#{number + 1}")}')" }
    statements.push(*texts, "INSERT INTO queues (id, name, used) VALUES (1, 'default', 1)",
                    "INSERT INTO nodes (id, name, listed) VALUES (1, '#{NODE}', 1)",
                    "INSERT INTO ready VALUES (1, 0, 1, 1), (1, 0, 2, 2)", "INSERT INTO flight VALUES (3, 1, 1, 3)",
                    "INSERT INTO sets VALUES (4, 0, 5e9, 0)", "UPDATE state SET next = 5",
                    "INSERT INTO locks VALUES ('until it ends', 'nobody', 5e9)",
                    "PRAGMA application_id = #{schema::APPLICATION}", "PRAGMA user_version = 1")
    change(*statements)
  end

  # What another program does to the file.
  def change(*statements)
    connection = Extralite::Database.new(path)
    connection.busy_timeout = 10
    statements.each { |statement| connection.execute(statement) }
  ensure
    connection&.close
  end

  def later_program(oldest:, by: 1)
    change("PRAGMA user_version = #{known + by}", "UPDATE state SET oldest = #{oldest}")
  end

  def test_a_file_of_the_version_before_is_brought_to_this_one
    make_old
    assert_equal [1, known, 1], storage.version.to_a
    assert_equal 1, version_in_file, "asking changes nothing"
    assert_equal [[2, 1, 1], { "default" => 2 }],
                 [storage.stats.values_at(:enqueued, :scheduled, :in_flight), storage.stats[:queues]]
    assert_equal [known, []], [version_in_file, storage.check]
    assert_equal %w[j1 j2], jids(storage.fetch(NODE, ["default"], 5))
    assert_equal [[0, 1], []], [storage.stats.values_at(:enqueued, :scheduled), storage.check]
  end

  def test_to_migrate_says_by_how_much
    make_old
    assert_equal [known - 1, 0], [storage.migrate, storage.migrate]
    assert_equal known, version_in_file
  end

  def test_a_new_file_has_no_version_yet
    assert_equal [0, known, 0], storage.version.to_a
    assert_equal [known, 0], [storage.migrate, storage.migrate]
  end

  TOO_NEW = /has version \d+ of the tables, which programs need that know version \d+, and this one knows \d+ at most: run: /

  def test_a_file_that_is_too_new_is_refused_with_what_to_do
    push("a")
    storage.close
    later_program(oldest: known + 1)
    [-> { push("b") }, -> { storage.stats }, -> { storage.migrate }, -> { storage.check }].each do |call|
      assert_match(TOO_NEW, assert_raises(Jobs::StorageError, &call).message)
    end
    assert_equal [known + 1, known, known + 1], storage.version.to_a
    assert_equal [[1]], query("SELECT count(*) FROM jobs")
  end

  def test_a_later_version_that_this_program_can_use
    push("a")
    storage.close
    later_program(oldest: known)
    push("b")
    assert_equal [%w[a b], 0, []], [jids(storage.list("default", 0, 9)), storage.migrate, storage.check]
    assert_equal known + 1, version_in_file, "it stays as new as it is"
  end

  # Each version of the tables says whether programs before it may go on.
  def test_a_program_that_runs_while_another_one_migrates_goes_on_or_says_why_not
    push("a")
    later_program(oldest: known)
    push("b")
    assert_equal 2, storage.stats[:enqueued]
    later_program(oldest: known + 2, by: 2)
    assert_match(TOO_NEW, assert_raises(Jobs::StorageError) { push("c") }.message)
    assert_match(TOO_NEW, assert_raises(Jobs::StorageError) { storage.stats }.message)
    later_program(oldest: known, by: 3)
    push("d")
    assert_equal %w[a b d], jids(storage.list("default", 0, 9))
  end

  # One that is killed before any statement leaves the version before, or this one.
  def test_a_kill_while_it_migrates
    make_old
    kept = File.binread(path)
    number = 0
    versions = []
    loop do
      Dir["#{path}{-wal,-shm}"].each { |file| File.delete(file) }
      File.binwrite(path, kept)
      killed = killed_at?(number)
      versions << version_in_file
      checked = Sqlite.new(path)
      assert_equal [[], [2, 1, 1]], [checked.check, checked.stats.values_at(:enqueued, :scheduled, :in_flight)]
      checked.close
      break unless killed

      number += 1
    end
    assert_operator number, :>, 10
    assert_equal [1, known], versions.uniq
  end

  def killed_at?(number)
    pid = forked do
      killer = Module.new
      left = number
      killer.define_method(:guard) do |**options, &block|
        Process.kill(:KILL, Process.pid) if left.zero?
        left -= 1
        super(**options, &block)
      end
      Sqlite.const_get(:Connection).prepend(killer)
      Sqlite.new(path).migrate
    end
    status_of(pid).signaled?
  end

  # What only a fault or a person can do.
  WRONG = {
    "DELETE FROM ready WHERE job = 1" => /jobs in no place, so that nobody will run them: 1, the first is number 1 /,
    "INSERT INTO sets (job, kind, at, sum) VALUES (2, 1, 5, 0)" => /jobs in two places, so that they run twice: 1, .* number 2 /,
    "DELETE FROM jobs WHERE id = 2" => /jobs in a place and have no entry, .*: 1, the first is number 2 /,
    "DELETE FROM nodes" => /jobs in flight at a process that is not on the list, .*: 1, the first is number 3 /,
    "DELETE FROM queues" => /jobs of a queue that is not on the list, so that nobody finds them: 3, /,
    "UPDATE state SET next = 3" => /the next number of a job is one that a job has/,
    "UPDATE queues SET size = 7" => /the queue default has 2 jobs and says 7; storage migrate counts anew/,
    "UPDATE set_sizes SET size = 0" => /the set schedule has 1 job and says 0; storage migrate counts anew/,
    "INSERT INTO locks VALUES ('t', 'j9', 5e9, 0)" => /the unique lock t is held by j9, which is no job; it ends by itself/
  }.freeze

  def test_what_is_wrong_is_told
    WRONG.each do |statement, message|
      FileUtils.rm_f(Dir["#{path}*"].select { |file| File.file?(file) })
      make_old
      storage.migrate
      assert_empty storage.check
      change(statement)
      assert_match(message, storage.check.join("\n"), statement)
      storage.close
    end
  end

  def test_sizes_are_counted_anew
    push("a", "b")
    push("c", at: 5e9)
    change("UPDATE queues SET size = 7", "UPDATE set_sizes SET size = 8")
    assert_equal 4, storage.check.size
    assert_equal [0, []], [storage.migrate, storage.check]
    assert_equal [2, 1], storage.stats.values_at(:enqueued, :scheduled)
  end

  # The lock of one that is there, that is done and kept, and one that outlives its job.
  def test_locks
    %w[success expiry].each do |ending|
      text = entry(ending, unique_token: ending, unique_until: ending)
      storage.push([Storage::Push.new(queue: "default", entry: text, jid: ending, lock: ending, lock_seconds: 60)])
    end
    assert_empty storage.check
    acks = storage.fetch(NODE, ["default"], 2).map do |one|
      Storage::Ack.new(queue: "default", token: one.token, jid: jids([one]).first, ran: Storage::Ran.new(1.0, "Work"))
    end
    assert_equal [true, true], storage.ack(NODE, acks)
    assert_equal ["the unique lock success is held by success, which is no job; it ends by itself, or: " \
                  'Ringspun::Jobs.storage.unlock("success", "success")'], storage.check
    assert storage.unlock("success", "success")
    assert_empty storage.check
  end

  def test_a_damaged_file
    push(*Array.new(500) { |number| "j#{number}" })
    storage.close
    damage
    assert_match(/\Athe file is damaged; go back to a copy: /, storage.check.first)
  end
end
