# frozen_string_literal: true

require "jobs_helper"
require "timeout"
require_relative "../support/sqlite_case"

# Verbs in the caller's transaction: on which connections, in which files, and beside the writers of other processes.
class SqliteTransactionsTest < SqliteCase
  include Strands
  include AnyBackend

  def teardown
    @connections&.each { |one| one.close unless one.closed? }
    super
  end

  # A connection of the program's.
  def connection(at = path)
    Extralite::Database.new(at).tap do |one|
      one.busy_timeout = 10
      (@connections ||= []) << one
    end
  end

  # A file with tables that have names which ours would have as well.
  def app_s
    query("CREATE TABLE jobs (title TEXT, salary INTEGER)")
    query("CREATE TABLE queues (length INTEGER)")
    query("PRAGMA user_version = 20260101")
    query("PRAGMA journal_mode = WAL")
  end

  def in_app(**) = open_storage(path, library: :extralite, **)

  def push_on(connection, *jids, **) = storage.push(jids.map { |jid| push_of(jid, **) }, connection:)

  def known = Sqlite.const_get(:Schema)::STEPS.size

  def enqueued = jids(storage.list("default", 0, 99))

  def test_jobs_in_a_file_of_the_program_s_own
    app_s
    @storage = in_app
    db = connection
    db.transaction do
      db.execute("INSERT INTO jobs VALUES ('baker', 2)")
      push_on(db, "a")
    end
    push("b")
    assert_equal [%w[a b], [["baker", 2]], [[20_260_101]]], [enqueued, query("SELECT * FROM jobs"), query("PRAGMA user_version")]
    assert_equal [[0]], query("PRAGMA application_id")
    ours = query("SELECT name FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'").flatten - %w[jobs queues]
    assert_empty(ours.grep_v(/\Aringspun_/))
    other = open_storage(path) # as a command without the program does
    assert_equal %w[a b], jids(other.fetch(NODE, ["default"], 9))
  end

  # The next one makes them.
  def test_tables_that_a_transaction_has_made_go_with_it
    app_s
    @storage = in_app
    db = connection
    db.execute("BEGIN IMMEDIATE")
    push_on(db, "a")
    db.execute("ROLLBACK")
    assert_equal [["jobs"], ["queues"]], query("SELECT name FROM sqlite_schema ORDER BY 1")
    db.transaction { push_on(db, "b", "c") }
    assert_equal %w[b c], enqueued
  end

  # The order in which the two open it does not matter.
  def test_a_new_file_that_the_program_has_opened_is_its_own
    db = connection
    storage
    db.transaction do
      db.execute("CREATE TABLE jobs (title TEXT)")
      push_on(db, "a")
    end
    assert_equal [%w[a], []], [enqueued, query("SELECT * FROM jobs")]
    assert_equal [[known]], query("SELECT number FROM ringspun_version")
  end

  # What is in memory is no file either.
  def test_a_file_that_was_removed_before_its_first_use
    storage
    connection(":memory:")
    File.delete(path)
    push("a")
    assert_equal [%w[a], [[known]]], [enqueued, query("PRAGMA user_version")]
  end

  def test_a_file_of_jobs_alone_stays_one
    push("a")
    db = connection
    db.transaction { push_on(db, "b") }
    assert_equal [%w[a b], [[known]]], [enqueued, query("PRAGMA user_version")]
  end

  # Each version of the tables says whether programs before it may go on.
  def test_tables_of_a_later_version_in_a_file_of_the_program_s_own
    app_s
    @storage = in_app
    push("a")
    later_program(oldest: known)
    db = connection
    db.transaction { push_on(db, "b") }
    push("c")
    later_program(oldest: known + 2, by: 2)
    [-> { db.transaction { push_on(db, "d") } }, -> { push("d") }, -> { storage.stats }].each do |call|
      assert_match(/has version #{known + 2} of the tables, .* know version #{known + 2}/,
                   assert_raises(Jobs::StorageError, &call).message)
    end
    assert_equal [[known + 2, known, known + 2]] * 2, [storage.version, storage.version(connection: db)].map(&:to_a)
    assert_equal [[3]], query("SELECT count(*) FROM ringspun_jobs")
  end

  def later_program(oldest:, by: 1)
    query("UPDATE ringspun_version SET number = #{known + by}")
    query("UPDATE ringspun_state SET oldest = #{oldest}")
  end

  # With a job in a queue, as an earlier program has left it.
  def test_a_file_of_the_program_s_own_is_brought_to_this_version_by_a_transaction
    app_s
    schema = Sqlite.const_get(:Schema)
    [*schema::FIRST.split(";\n"), "INSERT INTO jobs VALUES (1, '#{entry("a")}')", "UPDATE state SET next = 2",
     "INSERT INTO queues (id, name, used) VALUES (1, 'default', 1)", "INSERT INTO ready VALUES (1, 0, 1, 1)"]
      .each { |statement| query(schema.prefixed(statement)) }
    query("CREATE TABLE ringspun_version (number INTEGER NOT NULL)")
    query("INSERT INTO ringspun_version VALUES (1)")
    @storage = in_app
    db = connection
    { "ROLLBACK" => 1, "COMMIT" => known }.each do |ending, version|
      db.execute("BEGIN IMMEDIATE")
      push_on(db, "b")
      db.execute(ending)
      assert_equal version, storage.version.there
    end
    assert_equal [%w[a b], 2, [], 0], [enqueued, storage.stats[:enqueued], storage.check, storage.migrate(connection: db)]
    assert_equal [[20_260_101]], query("PRAGMA user_version")
  end

  # Whoever writes keeps them.
  def test_how_many_jobs_are_where_after_transactions
    app_s
    @storage = in_app
    push("a", "b", "c", "d")
    push("s", at: 5e9)
    fetched = storage.fetch(NODE, ["default"], 2)
    after = { "ROLLBACK" => [[2, 1, 0, 0, 2], [], []], "COMMIT" => [[4, 0, 1, 1, 0], [["a", 1.5, "Work"]], ["c1"]] }
    after.each do |ending, expected|
      db = connection
      db.execute("BEGIN IMMEDIATE")
      change_all(db, *fetched)
      assert_empty storage.check(connection: db)
      db.execute(ending)
      assert_empty storage.check, ending
      done = storage.done(0, 9).map { |one| [*jids([one]), one.seconds, one.class_name] }
      assert_equal expected, [storage.stats.values_at(:enqueued, :scheduled, :retries, :dead, :in_flight), done,
                              storage.crons.map(&:name)]
    end
  end

  def change_all(db, first, second)
    push_on(db, "e", "f")
    ack = Storage::Ack.new(queue: "default", token: first.token, jid: "a", ran: Storage::Ran.new(1.5, "Work"))
    assert_equal [true], storage.ack(NODE, [ack], connection: db)
    failure = Storage::Failure.new(queue: "default", token: second.token, jid: "b", to: :retry, delay: 9)
    assert_equal [true], storage.fail(NODE, [failure], connection: db)
    assert_equal [true], storage.kill("default", [storage.list("default", 0, 1, connection: db).first.token], connection: db)
    assert_equal 1, storage.clear(:schedule, connection: db)
    cron = Storage::Cron.new(name: "c1", schedule: "daily", text: "{}")
    _, (tick,) = storage.cron_define("shop", [cron], connection: db)
    assert_equal %i[pushed passed],
                 Array.new(2) { storage.cron_push("c1", tick + 5, push_of("g"), connection: db) }
  end

  def test_a_damaged_file_of_the_program_s_own
    app_s
    @storage = in_app
    push(*Array.new(500) { |number| "j#{number}" })
    storage.close
    damage
    assert_match(/\Athe file is damaged; go back to a copy: /, storage.check(connection: connection).first)
  end

  def test_connections_to_elsewhere
    elsewhere = "#{folder}/elsewhere.sqlite3"
    closed = connection(elsewhere).tap(&:close)
    { connection(elsewhere) => /is one to .*elsewhere.sqlite3, and jobs are kept in .*jobs.sqlite3; .*after_commit: true/,
      connection(":memory:") => /is one to memory/, closed => /is closed/,
      Object.new => /must be one of Active Record, SQLite3::Database or Extralite::Database on .*got Object/,
      "text" => /got String/ }.each do |wrong, message|
      assert_match message, assert_raises(Ringspun::UsageError) { push_on(wrong, "a") }.message
    end
    assert_equal 0, storage.stats[:enqueued]
  end

  def test_a_connection_that_only_reads
    push("a")
    reading = Extralite::Database.new(path, read_only: true)
    (@connections ||= []) << reading
    error = assert_raises(Ringspun::UsageError) { push_on(reading, "b") }
    assert_match(/does not write to .*jobs.sqlite3, for it only reads.*give one that writes/, error.message)
    assert_equal %w[a], jids(storage.list("default", 0, 9, connection: reading))
  end

  # What is written there has no name any more.
  def test_a_connection_to_a_file_that_was_replaced
    push("a")
    db = connection
    db.transaction { push_on(db, "b") }
    File.rename(path, "#{folder}/old")
    told = /was replaced or removed since connection: has opened it, and nothing was done; open it anew/
    assert_match told, assert_raises(Jobs::UnavailableError) { push_on(db, "c") }.message
    File.write(path, "")
    %w[-wal -shm].each { |name| File.delete(path + name) if File.exist?(path + name) }
    assert_match told, assert_raises(Jobs::UnavailableError) { push_on(db, "d") }.message
    new = connection
    new.transaction { push_on(new, "e") }
    assert_raises(Jobs::UnavailableError) { push("f") }
    push("g")
    assert_equal %w[e g], enqueued
  end

  # In two files of one process.
  def test_connections_of_two_storages
    other = "#{folder}/other.sqlite3"
    second = open_storage(other)
    one, two = [path, other].map { |each| connection(each) }
    push_on(one, "a")
    second.push([push_of("b")], connection: two)
    assert_raises(Ringspun::UsageError) { push_on(two, "c") }
    second.push([push_of("d")], connection: two)
    assert_equal [%w[a], %w[b d]], [enqueued, jids(second.list("default", 0, 9))]
  end

  # Where readers and writers wait for each other. A transaction stays as it is; the first writer of ours changes the mode.
  def test_a_file_of_the_program_s_own_without_wal
    query("CREATE TABLE notes (text TEXT)")
    @storage = in_app
    db = connection
    ["ROLLBACK", "COMMIT"].each do |ending|
      db.execute("BEGIN IMMEDIATE")
      db.execute("INSERT INTO notes VALUES ('a')")
      push_on(db, ending)
      db.execute(ending)
    end
    assert_equal [[["delete"]], [["a"]], %w[COMMIT]], [query("PRAGMA journal_mode"), query("SELECT text FROM notes"), enqueued]
    push("b")
    db.transaction { push_on(db, "c") }
    assert_equal [[["wal"]], %w[COMMIT b c]], [query("PRAGMA journal_mode"), enqueued]
  end

  # The mode changes as soon as nobody reads.
  def test_a_reader_of_the_program_s_that_holds_up_the_change_of_the_mode
    query("CREATE TABLE notes (text TEXT)")
    connection_class = Sqlite.const_get(:Connection)
    before, connection_class.patience = connection_class.patience, 0.05
    @storage = in_app
    db = connection
    db.execute("BEGIN")
    db.query("SELECT * FROM notes")
    assert_match(/by a transaction of this one that does not end/, assert_raises(Jobs::UnavailableError) { push("a") }.message)
    db.execute("COMMIT")
    push("b")
    assert_equal [[["wal"]], %w[b]], [query("PRAGMA journal_mode"), enqueued]
  ensure
    connection_class.patience = before
  end

  # A part of the transaction that is rolled back alone.
  def test_savepoints_of_the_caller_s
    db = connection
    db.transaction do
      push_on(db, "a")
      db.execute("SAVEPOINT mine")
      push_on(db, "b")
      db.execute("SAVEPOINT inner")
      push_on(db, "c", lock: "token", lock_seconds: 60)
      db.execute("ROLLBACK TO inner")
      db.execute("RELEASE mine")
      db.execute("SAVEPOINT ringspun_verb")
      push_on(db, "d")
      db.execute("ROLLBACK TO ringspun_verb")
      assert_equal [nil], [storage.push([push_of("e", lock: "token", lock_seconds: 60)], connection: db)]
    end
    assert_equal %w[a b e], enqueued
  end

  # By another name of the same file.
  def test_a_connection_by_a_link
    storage
    File.symlink(path, "#{folder}/link")
    db = connection("#{folder}/link")
    db.transaction { push_on(db, "a") }
    assert_equal %w[a], enqueued
  end

  def test_verbs_that_take_no_connection
    db = connection
    [-> { storage.fetch(NODE, ["default"], 1, connection: db) }, -> { storage.wait_any(NODE, ["default"], 1, connection: db) },
     -> { storage.wait_due(1, connection: db) }, -> { storage.leave(NODE, connection: db) }].each do |verb|
      assert_match(/takes no connection:.*leave it out/, assert_raises(Ringspun::UsageError, &verb).message)
    end
  end

  def test_all_other_verbs_take_one
    push("a", "b", "c")
    push("s", at: 7)
    db = connection
    db.transaction do
      queue = storage.list("default", 0, 9, connection: db)
      assert_equal [true], storage.remove("default", [queue.first.token], connection: db)
      assert_equal [true], storage.kill("default", [queue[1].token], connection: db)
      assert_equal [%w[c], 1], [jids(storage.list("default", 0, 9, connection: db)), storage.stats(connection: db)[:dead]]
      storage.pause("default", connection: db)
      assert_equal "a", storage.lock("token", "b", 60, connection: db) if storage.lock("token", "a", 60, connection: db).nil?
      assert_equal "c", storage.find("c", connection: db).then { |found| jids([found]).first }
      assert_equal 1, storage.clear(:schedule, connection: db)
      assert_equal [3, []], [storage.stats[:enqueued], storage.paused], "all others see it after the commit"
    end
    assert_equal [1, ["default"], 0], [storage.stats[:enqueued], storage.paused, storage.stats[:scheduled]]
  end

  # What was read may be no longer true, and SQLite does not wait then.
  def test_a_transaction_that_has_read_before_somebody_wrote
    push("a")
    db = connection
    db.execute("BEGIN")
    db.query("SELECT * FROM jobs")
    push("b")
    error = assert_raises(Jobs::UnavailableError) { push_on(db, "c") }
    assert_match(/begins with BEGIN IMMEDIATE/, error.message)
    db.execute("ROLLBACK")
    assert_equal %w[a b], enqueued
  end

  # Whoever asks for one of another gem is told before both have the file open.
  def test_a_library_that_does_not_exist
    assert_match(/library must be sqlite3 or extralite, got :other/,
                 assert_raises(Jobs::ConfigError) { Sqlite.new(path, library: :other) }.message)
  end

  def test_an_old_library_of_the_program_s_is_refused
    storage
    library = Sqlite.const_get(:Library)
    error = assert_raises(Jobs::ConfigError) { library.check_app_s(path, "3.46.1") } # of sqlite3 2.1.0
    assert_match(/has SQLite 3.46.1. Before 3.51.3 it can corrupt the file; run: bundle update sqlite3; or give/, error.message)
    error = assert_raises(Jobs::ConfigError) { library.check_app_s(path, "3.51.2", packaged: false) }
    assert_match(/run: bundle update sqlite3; it was built with the SQLite of the system.*bundle pristine sqlite3/, error.message)
    assert_nil library.check_app_s(path, "3.51.3")
  end

  # The other process has the turn, and waits for the lock that this transaction has. What the transaction does waits for no turn.
  def test_a_transaction_beside_a_process_that_has_the_turn
    push("a")
    reader, writer = IO.pipe
    pid = forked do # which must inherit no connection
      writer.close
      reader.read
      Sqlite.new(path).push([push_of("c")])
    end
    db = connection
    db.execute("BEGIN IMMEDIATE")
    push_on(db, "b")
    writer.close
    Timeout.timeout(60) { Thread.pass until turn_of?(pid) }
    mine = Thread.new { push("d") } # waits for its turn
    push_on(db, "e")
    storage.ack(NODE, [Storage::Ack.new("default", "none", "none")], connection: db)
    assert_equal %w[a], enqueued
    db.execute("COMMIT")
    assert_predicate status_of(pid), :success?
    mine.join
    assert_equal [%w[a b c d e], %w[a b e]], [enqueued.sort, enqueued.first(3)]
  ensure
    [reader, writer].each(&:close)
  end

  # It has the lock of the turn.
  def turn_of?(pid) = File.read("/proc/locks").match?(/ #{pid} \S+:#{File.stat("#{path}-locks").ino} 1 1$/)

  # Each has transactions of its own, and pushes without a connection. Some transactions are rolled back.
  def test_transactions_of_several_processes_at_the_same_time
    push("first")
    query("CREATE TABLE notes (text TEXT)")
    pids = Array.new(3) { |number| forked { transactions(number) } }
    assert_equal [true] * 3, pids.map { |pid| status_of(pid).success? }
    expected = [0, 1, 2].product((1...20).step(2).to_a).map { |names| names.join(" ") }
    assert_equal expected.sort, query("SELECT text FROM notes").flatten.sort
    all = jids(storage.list("default", 0, 999))
    assert_equal [expected.sort, 60], [all.grep(/\A\d/).sort, all.grep(/\Awithout/).size]
    assert_equal [["ok"]], query("PRAGMA integrity_check")
  end

  def transactions(number)
    own = Sqlite.new(path)
    db = connection
    20.times do |index|
      db.execute("BEGIN IMMEDIATE")
      db.execute("INSERT INTO notes VALUES (?)", "#{number} #{index}")
      own.push([push_of("#{number} #{index}", lock: "#{number} #{index}", lock_seconds: 60)], connection: db)
      db.execute(index.odd? ? "COMMIT" : "ROLLBACK")
      own.push([push_of("without #{number} #{index}")])
    end
  end

  # Nobody tells the storage of the commit. Whoever waits looks.
  def test_a_process_that_waits_gets_what_was_committed
    reader, writer = IO.pipe
    push("z", queue: "other")
    pid = forked do
      fetched = Thread.new { Sqlite.new(path).wait_any("its", ["default"], 60) }
      Thread.pass until fetched.stop?
      writer << "waits"
      assert_equal %w[a], jids(fetched.value)
    end
    assert_equal "waits", reader.read(5)
    db = connection
    db.transaction { push_on(db, "a") }
    assert_predicate status_of(pid), :success?
  ensure
    [reader, writer].each(&:close)
  end

  # SQLite there believes that it holds what this process has locked.
  def test_a_connection_that_was_inherited
    push("a")
    db = connection
    db.execute("BEGIN IMMEDIATE")
    push_on(db, "b")
    pid = forked do
      error = assert_raises(Ringspun::UsageError) { push_on(db, "c") }
      assert_match(/was opened before this process was forked, and SQLite cannot be used so; open one here/, error.message)
    end
    assert_predicate status_of(pid), :success?
    db.execute("COMMIT")
    assert_equal %w[a b], enqueued
  end

  # A child's storage and connections are its own.
  def test_a_fork_between_transactions
    push("a")
    db = connection
    db.transaction { push_on(db, "b") }
    db.close
    pid = forked do
      own = connection
      own.transaction { push_on(own, "c") }
    end
    assert_predicate status_of(pid), :success?
    assert_equal %w[a b c], enqueued
  end
end
