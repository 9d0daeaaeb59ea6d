# frozen_string_literal: true

require "jobs_helper"
require_relative "../support/command"
require_relative "../support/sqlite_case"
require_relative "../support/worked"

# Jobs that acknowledge themselves in a transaction of their own.
class OwnAckTest < SqliteCase
  include WorkedInTime

  def setup
    super
    query("CREATE TABLE notes (text TEXT)")
    @storage = open_storage(path, library: :extralite)
  end

  def teardown
    @command&.close
    super
  end

  attr_reader :storage

  def with_worker(**) = super(concurrency: 5, **)

  # Runs one job.
  def run_one(jid = "j", settings: {}, **)
    storage.push([Storage::Push.new(queue: "default", entry: entry("own", jid: jid, ringspun_retry_in: 60, **), jid: jid)])
    with_worker(**settings) { yield_until("it has ended") { sleep(0.002) && worker.counts.values.sum.positive? } }
    worker.counts.select { |_, count| count.positive? }
  end

  def notes = query("SELECT text FROM notes").flatten

  # What a job does in its transaction.
  def own(before: "BEGIN IMMEDIATE", after: "COMMIT")
    db = Extralite::Database.new(path)
    db.busy_timeout = 10
    db.execute(before)
    db.execute("INSERT INTO notes VALUES ('effect')")
    yield db
    db.execute(after)
  ensure
    db&.close # which rolls back what is open
  end

  def test_a_job_and_its_effect
    on("own") { |job| own { |db| assert_nil job.done!(connection: db) } }
    assert_equal({ done: 1 }, run_one)
    assert_equal [%w[effect], 1, 0, 0], [notes, *storage.stats.values_at(:processed, :in_flight, :twice)]
    refute_match(/warn|error/, lines.to_s)
  end

  # As any other one, with what is known of it at that time.
  def test_a_job_that_is_done_is_kept
    on("own") do |job|
      own { |db| job.done!(connection: db) }
      kept = storage.done(0, 9)
      assert_equal [%w[j], "Worked::Task", "default"], [jids(kept), kept.first.class_name, kept.first.queue]
      assert_includes 0.0..60.0, kept.first.seconds
    end
    assert_equal({ done: 1 }, run_one(settings: { keep_done: 60 }))
    assert_equal [%w[j], []], [jids(storage.done(0, 9)), storage.check]
  end

  def test_a_job_that_is_done_is_not_kept_where_none_is
    on("own") { |job| own { |db| job.done!(connection: db) } }
    assert_equal [{ done: 1 }, [], []], [run_one, storage.done(0, 9), storage.check]
  end

  def test_an_error_before_the_commit_is_a_failure
    on("own") do |job|
      own do |db|
        job.done!(connection: db)
        raise "no"
      end
    end
    assert_equal({ retry: 1 }, run_one)
    assert_equal [[], 0, 1, 1], [notes, *storage.stats.values_at(:in_flight, :retries, :failed)]
    assert_equal [:retry], storage.history("j").map(&:kind)
  end

  # What it returns normally is done as ever.
  def test_a_transaction_that_the_job_rolls_back
    on("own") { |job| own(after: "ROLLBACK") { |db| job.done!(connection: db) } }
    assert_equal({ done: 1 }, run_one)
    assert_equal [[], 1, 0], [notes, *storage.stats.values_at(:processed, :in_flight)]
  end

  def test_a_transaction_that_is_tried_again
    on("own") do |job|
      own(after: "ROLLBACK") { |db| job.done!(connection: db) }
      own { |db| job.done!(connection: db) }
    end
    assert_equal({ done: 1 }, run_one)
    assert_equal [%w[effect], 1], [notes, storage.stats[:processed]]
  end

  # By another one, for the lease had run out.
  def test_a_job_that_was_taken_away_rolls_back
    error = nil
    on("own") do |job|
      taken_away do
        own { |db| job.done!(connection: db) }
      rescue Jobs::TakenAwayError => error
        raise
      end
    end
    assert_equal({ taken_away: 1 }, run_one)
    assert_match(/the job j was taken away.*must not be committed/, error.message)
    assert_equal [[], 0, 0], [notes, *storage.stats.values_at(:processed, :in_flight)]
    assert_equal %w[j], jids(storage.list(Storage::QUARANTINE, 0, 9))
  end

  # This worker itself may be given it anew, and have it in flight again.
  def test_a_job_that_was_taken_away_and_is_here_again
    ended = nil
    on("own") do |job|
      taken_away do
        own { |db| job.done!(connection: db) }
      rescue Jobs::TakenAwayError
        assert_equal 1, storage.fetch(worker.node, [Storage::QUARANTINE], 1).size
        ended = job.ended?
        raise
      end
    end
    assert_equal({ taken_away: 1 }, run_one)
    assert ended, "Active Job would enqueue it once more"
    assert_equal [[], %w[j], 0], [notes, jids(storage.list(Storage::QUARANTINE, 0, 9)), storage.stats[:retries]]
  end

  # Runs a block when others have the job. A heartbeat may come at any time: it would extend the lease, or end the run.
  def taken_away
    Ringspun.shield do
      query("CREATE TRIGGER late AFTER UPDATE OF lease ON ringspun_nodes WHEN new.lease > 0 BEGIN " \
            "UPDATE ringspun_nodes SET lease = 0; END")
      query("UPDATE ringspun_nodes SET lease = 0")
      assert_equal 1, storage.recover(100).size
      query("DROP TRIGGER late")
      yield
    end
  end

  def test_what_happens_after_the_commit_changes_nothing
    { "raise" => -> { raise "late" }, "snooze" => ->(job) { job.snooze(5) }, "value" => -> { 7 } }.each do |name, late|
      on("own") do |job|
        own { |db| job.done!(connection: db) }
        late.arity.zero? ? late.call : late.call(job)
      end
      assert_equal({ done: 1 }, run_one(name))
    end
    assert_equal [3, 0, 0, 0, 0], storage.stats.values_at(:processed, :in_flight, :retries, :scheduled, :failed)
    assert_match(/warn .*has raised RuntimeError: late after done!, and is done all the same/, lines.to_s)
    assert_match(/warn .*was to be snoozed after done!/, lines.to_s)
  end

  def test_what_follows_and_the_lock_are_in_the_transaction
    Jobs.storage = storage # for the client, which makes what follows
    storage.lock("token", "j", 60)
    on("own") do |job|
      storage.pause("default") # or the worker would fetch what follows
      job.follow_with("Next", 5)
      own do |db|
        job.done!(connection: db)
        assert_match(/before done!/, assert_raises(Ringspun::UsageError) { job.follow_with("Late") }.message)
        assert_equal 0, storage.stats[:enqueued]
      end
      assert_equal 1, storage.stats[:enqueued]
    end
    run_one(queue: "default", unique_token: "token", unique_until: "success")
    assert_equal ["Next"], storage.list("default", 0, 9).map { |job| JSON.parse(job.entry)["class"] }
    assert_nil storage.lock("token", "other", 60)
  ensure
    Jobs.storage = nil
  end

  def test_wrong_uses
    errors = []
    on("own") do |job|
      errors << assert_raises(Ringspun::UsageError) { job.done!(connection: nil) }
      db = Extralite::Database.new(path)
      errors << assert_raises(Ringspun::UsageError) { job.done!(connection: db) }
      db.close
      own { |open| job.done!(connection: open) }
      errors << assert_raises(Ringspun::UsageError) { own { |open| job.done!(connection: open) } }
    end
    assert_equal({ done: 1 }, run_one)
    ["takes the connection of an open transaction", "no transaction is open", "and has not been rolled back"]
      .zip(errors) do |text, error|
      assert_includes error.message, text
    end
    assert_equal %w[effect], notes
    assert_nil Task.new.done!(connection: Object.new), "outside of a worker"
  end

  def test_a_storage_that_has_no_part_in_it
    @storage = Storage::Memory.new
    error = nil
    on("own") { |job| error = assert_raises(Ringspun::UsageError) { job.done!(connection: Object.new) } }
    assert_equal({ done: 1 }, run_one)
    assert_match(/no part in a transaction on Object/, error.message)
  end

  PROGRAM = <<~'RUBY'
    class Own
      include Ringspun::Jobs::Job

      def perform(ending)
        db = Extralite::Database.new("jobs.sqlite3")
        db.busy_timeout = 10
        db.execute("BEGIN IMMEDIATE")
        db.execute("INSERT INTO notes VALUES (?)", ending)
        done!(connection: db)
        raise "no" if ending == "raise"

        db.execute("COMMIT")
        raise "late" if ending == "late"
      ensure
        db&.close
      end
    end
  RUBY

  # In a child of the quarantine.
  def test_a_job_from_a_process_that_has_died
    File.write("#{folder}/app.rb", PROGRAM)
    File.write("#{folder}/fast.yml", "lease: 3\nbeat: 0.25\nkeep_done: 60\n" \
                                     "storage: {name: sqlite, path: jobs.sqlite3, library: extralite}\n")
    storage.extend(["dead:1:aa"], -1)
    storage.push(%w[well raise late].map do |ending|
      text = Jobs::Wire.dump("class" => "Own", "args" => [ending], "queue" => "default", "jid" => ending)
      Storage::Push.new(queue: "default", entry: text, jid: ending)
    end)
    storage.fetch("dead:1:aa", ["default"], 5)
    assert_equal 3, storage.recover(9).size
    @command = Command.new("-r", "./app.rb", "-C", "fast.yml", chdir: folder)
    yield_until("all have ended") { sleep(0.01) && storage.stats.then { |now| now[:processed] == 3 && now[:in_flight].zero? } }
    assert_predicate @command.finish, :success?
    assert_equal [%w[late well], %w[raise]], [notes.sort, jids(storage.scan(:retry, 0, 9))]
    assert_equal [%w[late well], []], [jids(storage.done(0, 9)).sort, storage.check]
    refute_match(/taken away/, @command.lines.join)
  end
end
