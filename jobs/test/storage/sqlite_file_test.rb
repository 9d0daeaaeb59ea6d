# frozen_string_literal: true

require "jobs_helper"
require_relative "../support/sqlite_case"

# The file itself: whose it is, who else is there, and what happens to processes that share it.
class SqliteFileTest < SqliteCase
  include Strands
  include AnyBackend

  def files = Dir.children(folder).sort

  def mode(name) = File.stat(File.join(folder, name)).mode & 0o777

  def test_all_files_are_for_the_owner_alone
    push("a")
    Ringspun.run { storage.wait_any(NODE, ["none"], 0.01) } # must pass
    assert_equal %w[jobs.sqlite3 jobs.sqlite3-locks jobs.sqlite3-shm jobs.sqlite3-wake jobs.sqlite3-wal], files
    assert_equal [0o600] * 4, %w[jobs.sqlite3 jobs.sqlite3-locks jobs.sqlite3-shm jobs.sqlite3-wal].map { |name| mode(name) }
    assert_equal 0o700, mode("jobs.sqlite3-wake")
    storage.close
    assert_equal [%w[jobs.sqlite3 jobs.sqlite3-locks jobs.sqlite3-wake], []], [files, Dir.children("#{path}-wake")]
    assert_equal %w[a], jids(storage.list("default", 0, 9)), "it is opened again"
  end

  def test_two_storages_of_one_process_share_a_file
    push("a")
    other = open_storage("#{folder}/../#{File.basename(folder)}/jobs.sqlite3")
    assert_equal [storage.path, %w[a]], [other.path, jids(other.fetch(NODE, ["default"], 5))]
    other.close
    push("b")
    assert_equal 1, storage.stats[:in_flight]
  end

  def test_a_file_of_another_program_is_refused
    query("CREATE TABLE things (name TEXT)")
    error = assert_raises(Jobs::StorageError) { push("a") }
    assert_match(/has tables of another program; give jobs a file of their own/, error.message)
    assert_raises(Jobs::StorageError) { storage.stats }
    assert_equal [["things"]], query("SELECT name FROM sqlite_schema")
  end

  def test_a_file_of_the_version_before_gets_the_tables_that_are_new
    push("a")
    storage.close
    query("DROP TABLE crons")
    query("DROP INDEX done_of_queue")
    query("PRAGMA user_version = 2")
    assert_equal [1, []], [open_storage.stats[:enqueued], open_storage.crons]
    assert_equal [[4]], query("PRAGMA user_version")
  end

  def test_what_is_no_database_is_refused
    File.write(path, "no database" * 1000)
    assert_match(/file is not a database/, assert_raises(Jobs::StorageError) { push("a") }.message)
  end

  # One fails, and the others are stored.
  def test_what_many_want_at_once_is_done_without_the_one_that_fails
    storage # a strand that makes it may let others go on, which make theirs
    Ringspun.run do
      strands = Array.new(20) do |number|
        machine.spin { number == 7 ? storage.clear(:none) : push("j#{number}") }
      end
      errors = strands.map { |strand| strand.await.then { nil } rescue $! }
      assert_equal [7], errors.each_index.select { |number| errors[number] }
      assert_instance_of ArgumentError, errors[7]
    end
    assert_equal (Array.new(20) { |number| "j#{number}" } - %w[j7]).sort, jids(storage.list("default", 0, 99)).sort
  end

  # The lock of a program that takes no turns, such as the shell of SQLite.
  def test_a_foreign_writer_is_waited_for
    push("a")
    foreign = Extralite::Database.new(path)
    foreign.execute("BEGIN IMMEDIATE")
    Ringspun.run do
      strand = parked { push("b") }
      assert_equal 1, storage.stats[:enqueued], "whoever reads does not wait"
      foreign.execute("COMMIT")
      strand.await
    end
    assert_equal 2, storage.stats[:enqueued]
  ensure
    foreign&.close
  end

  # It sends no datagram.
  def test_what_a_foreign_program_writes_is_seen_by_who_waits
    push("a", queue: "other")
    Ringspun.run do
      strand = parked { storage.wait_any(NODE, ["default"], 60) }
      query("UPDATE ready SET queue = (SELECT id FROM queues WHERE name = 'default') RETURNING 1") if queue_of_its_own
      assert_equal %w[a], jids(strand.await)
    end
  end

  # Without a push, which would wake who waits.
  def queue_of_its_own = query("INSERT INTO queues (name, used) VALUES ('default', 1) RETURNING id").any?

  def test_another_process_wakes_who_waits
    storage.stats
    Ringspun.run do
      3.times do |number|
        strand = parked { storage.wait_any(NODE, ["default"], 60) }
        assert_predicate status_of(forked { Sqlite.new(path).push([push_of("j#{number}")]) }), :success?
        assert_equal ["j#{number}"], jids(strand.await)
      end
      strand = parked { storage.wait_due(60) }
      assert_predicate status_of(forked { Sqlite.new(path).push([push_of("soon", delay: 1)]) }), :success?
      assert_equal true, strand.await
    end
  end

  # It has left its socket.
  def test_the_socket_of_a_process_that_was_killed_goes
    storage.stats
    reader, writer = IO.pipe
    pid = forked do
      Thread.new { Sqlite.new(path).wait_any("x", ["none"], 60) }
      sleep 0.01 until Dir.exist?("#{path}-wake") && Dir.children("#{path}-wake").any?
      writer << "waits"
      writer.close
      sleep
    end
    writer.close
    assert_equal "waits", reader.read(5)
    Process.kill(:KILL, pid)
    status_of(pid)
    push("a")
    assert_empty Dir.children("#{path}-wake")
  ensure
    reader&.close
  end

  # Its lease has a minute left, but the kernel knows.
  def test_what_a_process_had_that_was_killed_is_recovered_at_once
    push("a", "b")
    ready, told = IO.pipe
    pid = forked do
      own = Sqlite.new(path)
      own.extend(["its"], 60)
      own.fetch("its", ["default"], 1)
      told << "!"
      sleep
    end
    ready.read(1)
    storage.extend([NODE], 60)
    storage.fetch(NODE, ["default"], 1)
    assert_empty storage.recover(100), "both live"
    Process.kill(:KILL, pid)
    status_of(pid)
    assert_equal [["its", %w[a]]], storage.recover(100).map { |one| [one.node, jids([one])] }
    assert_equal %w[b], jids(storage.in_flight(NODE))
  ensure
    [ready, told].each(&:close)
  end

  # A process that closes its storage in good order lives, as far as anybody knows.
  def test_who_has_closed_it_lives_until_its_lease_is_over
    push("a")
    storage.extend([NODE], 60)
    storage.fetch(NODE, ["default"], 1)
    storage.close
    assert_predicate status_of(forked { Sqlite.new(path).recover(100).empty? || exit!(1) }), :success?
  end

  def test_a_host_that_was_started_again_has_no_leases
    push("a")
    storage.extend([NODE], 1e9)
    storage.fetch(NODE, ["default"], 1)
    storage.close
    query("UPDATE state SET boot = 'another' RETURNING 1")
    assert_equal %w[a], jids(storage.recover(100))
  end

  def test_a_forked_child_begins_anew
    push("a")
    Ringspun.run do
      waits = parked { storage.wait_any(NODE, ["none"], 60) }
      pid = forked do
        storage.push([push_of("b")])
        storage.close
      end
      assert_predicate status_of(pid), :success?
      storage.rouse(NODE)
      assert_empty waits.await
    end
    push("c")
    assert_equal [%w[a b c], [["ok"]]], [jids(storage.list("default", 0, 9)), query("PRAGMA integrity_check")]
  end

  # Process.daemon forks past Process._fork. What the child had open it must not use.
  def test_a_daemon_is_told_to_close_the_file_before
    push("a")
    told = "#{path}.told"
    [false, true].each do |closes|
      pid = forked do
        own = Sqlite.new(path)
        own.stats
        own.close if closes
        Process.daemon(true, true)
        result = begin
          own.stats[:enqueued].to_s
        rescue Ringspun::UsageError => error
          error.message
        end
        File.write("#{told}.new", result)
        File.rename("#{told}.new", told)
        exit!(0)
      end
      status_of(pid)
      Ringspun.run { yield_until("the daemon has told") { sleep(0.005) && File.exist?(told) } }
      expected = closes ? /\A1\z/ : /was open when Process.daemon was called.*call Ringspun::Jobs.close before/
      assert_match expected, File.read(told)
      File.unlink(told)
    end
  end

  # While others write in the same process, a child is never in the middle of something, and ends.
  def test_forks_beside_writers
    storage.stats
    turns = Thread::Queue.new
    writers = Array.new(2) { |number| Thread.new { push("t#{number}") while turns.pop } }
    20.times do |number|
      10.times { turns << true }
      Thread.pass until turns.size < 10
      assert_predicate status_of(fork { number.even? ? storage.push([push_of("c")]) : nil }), :success?
    end
    turns.clear.close
    writers.each(&:join)
    assert_equal 10, jids(storage.list("default", 0, 1_000_000)).count("c")
    assert_equal [["ok"]], query("PRAGMA integrity_check")
  end

  # Each has a turn, and no turn is anybody's for long.
  def test_processes_that_push_at_the_same_time
    storage.stats
    pids = Array.new(3) do |number|
      forked { Sqlite.new(path).then { |own| 40.times { |index| own.push([push_of("#{number} #{index}")]) } } }
    end
    assert_equal [true] * 3, pids.map { |pid| status_of(pid).success? }
    all = jids(storage.list("default", 0, 999)).group_by { |jid| jid.split.first }
    assert_equal [Array.new(40, &:to_s)] * 3, (all.each_value.map { |some| some.map { |jid| jid.split.last } })
  end

  # Whoever stores is told, and then stores in the new one.
  def test_a_file_that_is_replaced
    push("a")
    File.rename(path, "#{path}.old")
    error = assert_raises(Jobs::UnavailableError) { push("b") }
    assert_match(/was replaced or removed, and nothing was done/, error.message)
    push("c")
    assert_equal [%w[c], 0o600], [jids(storage.list("default", 0, 9)), mode("jobs.sqlite3")]
    assert_equal [["ok"]], query("PRAGMA integrity_check")
  end

  def test_processes_that_open_a_new_file_at_the_same_time
    folder
    reader, writer = IO.pipe
    pids = Array.new(6) do |number|
      forked do
        writer.close
        reader.read # all begin at once
        number.even? ? Sqlite.new(path).push([push_of(number.to_s)]) : Sqlite.new(path).stats
      end
    end
    [reader, writer].each(&:close)
    assert_equal [true] * 6, pids.map { |pid| status_of(pid).success? }
    assert_equal %w[0 2 4], jids(storage.list("default", 0, 9)).sort
  end

  # Whoever opens a file looks several times, and the first who writes to it may make the tables between any two of them.
  def test_a_file_that_gets_its_tables_between_two_looks
    looks = looks_at(path)
    assert_operator looks, :>, 2
    looks.times do |number|
      new = "#{path}-#{number}"
      looks_at(new) { |before| open_storage(new).push([push_of("a")]) if before == number }
      assert_equal %w[a], jids(open_storage(new).list("default", 0, 9))
    end
  end

  # @yieldparam before [Integer] the number of looks that were taken
  # @return [Integer] how many it takes
  def looks_at(path)
    connection = Sqlite.const_get(:Connection).new(path)
    looks = 0
    connection.define_singleton_method(:value) do |sql, *values|
      yield looks if block_given?
      looks += 1
      super(sql, *values)
    end
    Sqlite.const_get(:Schema).there?(connection)
    looks
  ensure
    connection&.close
  end

  # Its disk is full, or fails: what it says was stored is stored, and the file is whole.
  def test_a_disk_that_takes_no_more
    push("a")
    storage.close
    pid = forked do
      trap("XFSZ", "IGNORE")
      Process.setrlimit(:FSIZE, 200_000)
      own = Sqlite.new(path)
      stored = 0
      error = begin
        loop do
          own.push([push_of("x" * 1000)])
          stored += 1
        end
      rescue Jobs::Error => error
        error
      end
      File.write("#{path}.told", "#{stored} #{error.class}")
      exit!(stored.positive? ? 0 : 1)
    end
    assert_predicate status_of(pid), :success?
    stored, error = File.read("#{path}.told").split
    assert_includes %w[Ringspun::Jobs::StorageError Ringspun::Jobs::UnknownOutcomeError], error
    assert_equal [["ok"]], query("PRAGMA integrity_check")
    assert_includes [Integer(stored), Integer(stored) + 1], storage.stats[:enqueued] - 1
    assert_nil push("b")
  end

  def test_an_old_library_is_refused
    storage
    library = Sqlite.const_get(:Library)
    error = assert_raises(Jobs::ConfigError) { library.check("3.51.2") }
    assert_match(/needs SQLite 3.51.3 or later.* has loaded 3.51.2; run: bundle update/, error.message)
    assert_nil library.check(Extralite.sqlite3_version)
  end

  def test_large_numbers_of_jobs_are_fetched_by_the_keys
    storage.stats
    plans = ["SELECT job, entry FROM ready JOIN jobs ON jobs.id = job WHERE queue = 1 ORDER BY priority, place LIMIT 9",
             "DELETE FROM ready WHERE queue = 1 AND (priority, place) <= (0, 5)",
             "SELECT sets.job FROM sets JOIN jobs ON jobs.id = sets.job WHERE kind = 0 AND at <= 5 ORDER BY at, sets.job LIMIT 9"]
    steps = plans.map { |sql| query("EXPLAIN QUERY PLAN #{sql}").map(&:last) }
    assert_empty steps.flatten.grep(/SCAN|TEMP B-TREE/)
    assert_includes steps[1].first, "(queue=? AND (priority,place)<(?,?))"
  end
end
