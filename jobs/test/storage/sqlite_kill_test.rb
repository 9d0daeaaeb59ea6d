# frozen_string_literal: true

require "jobs_helper"
require_relative "../support/sqlite_case"

# A process that is killed before any of its statements, and after the last. Each verb that writes has happened then, or has not.
class SqliteKillTest < SqliteCase
  include AnyBackend

  # Ends the process before the statement with some number.
  module Killer
    class << self
      attr_accessor :left

      def count
        return unless left

        Process.kill(:KILL, Process.pid) if left.zero?
        self.left = left - 1
      end
    end

    def guard(...)
      Killer.count
      super
    end
  end

  OTHER = "host:2:bb"
  # A tick later than any clock shows.
  FAR = 9e9

  # In every place there is something.
  def prepare
    storage.extend([NODE, OTHER], 60)
    push("f1", "f2", "f3", "f4", "f5")
    fetched = storage.fetch(NODE, ["default"], 5)
    storage.fail(NODE, [failure(fetched[3], :retry), failure(fetched[4], :dead)])
    push("q1", "q2", "q3", "p1")
    push("s1", "s2", at: 5)
    push("d1", queue: "done")
    storage.ack(NODE, storage.fetch(NODE, ["done"], 1).map { |one| ack(one, ran: Storage::Ran.new(1.0, "Work")) })
    storage.push([push_with_lock("u1", "token")])
    storage.extend([OTHER], -1)
    push("o1", queue: "other")
    storage.fetch(OTHER, ["other"], 1)
    storage.cron_define("shop", [cron("c1"), cron("c2")])
    prepare_nodes
    storage.close
    query("CREATE TABLE notes (text TEXT)") # the program's own
  end

  # What is known beside jobs.
  def prepare_nodes
    push("z1", queue: Storage::QUARANTINE)
    storage.fetch(OTHER, [Storage::QUARANTINE], 1)
    storage.announce(OTHER, { "concurrency" => 1 }, [])
    storage.signal(OTHER, "quiet")
    storage.pause("held")
  end

  def push_with_lock(jid, token)
    Storage::Push.new(queue: "default", entry: entry(jid, unique_token: token), jid: jid, lock: token, lock_seconds: 60)
  end

  def failure(fetched, to, **)
    Storage::Failure.new(queue: fetched.queue, token: fetched.token, jid: jids([fetched]).first, to: to, delay: 100,
                         event: Storage::Event.new(kind: :retry), **)
  end

  def ack(fetched, **) = Storage::Ack.new(queue: fetched.queue, token: fetched.token, jid: jids([fetched]).first, **)

  def cron(name) = Storage::Cron.new(name: name, schedule: "daily", text: "{}")

  # With data of the program's own.
  def in_transaction
    connection = Extralite::Database.new(path)
    sql = lambda do |text|
      Killer.count
      connection.execute(text)
    end
    sql["BEGIN IMMEDIATE"]
    sql["INSERT INTO notes VALUES ('before')"]
    yield connection
    sql["INSERT INTO notes VALUES ('after')"]
    sql["COMMIT"]
  end

  def tokens(all) = all.map(&:token)

  VERBS = {
    push: ->(it) { it.push("n1", "n2") },
    push_later: ->(it) { it.push("n1", at: 7) },
    push_with_lock: ->(it) { it.storage.push([it.push_with_lock("n1", "other")]) },
    fetch: ->(it) { it.storage.fetch(NODE, %w[default other], 3) },
    ack: lambda do |it|
      acks = it.storage.in_flight(NODE).map { |one| it.ack(one, pushes: [it.push_of("n")], result: "5", keep_seconds: 60) }
      it.storage.ack(NODE, acks)
    end,
    ack_and_keep: lambda do |it|
      acks = it.storage.in_flight(NODE).map { |one| it.ack(one, ran: Storage::Ran.new(1.0, "Work")) }
      it.storage.ack(NODE, acks)
    end,
    fail: lambda do |it|
      retried, dead, queued = it.storage.in_flight(NODE)
      it.storage.fail(NODE, [it.failure(retried, :retry, new_entry: it.entry("f1", retry_count: 1)), it.failure(dead, :dead),
                             it.failure(queued, :queue)])
    end,
    push_in_a_transaction: lambda do |it|
      it.in_transaction do |connection|
        it.storage.push([it.push_with_lock("n1", "other"), it.push_of("n2", at: 7)], connection:)
      end
    end,
    ack_in_a_transaction: lambda do |it|
      it.in_transaction do |connection|
        acks = it.storage.in_flight(NODE).map { |one| it.ack(one, pushes: [it.push_of("n")], result: "5", keep_seconds: 60) }
        it.storage.ack(NODE, acks, connection:)
      end
    end,
    ack_and_keep_in_a_transaction: lambda do |it|
      it.in_transaction do |connection|
        acks = it.storage.in_flight(NODE).map { |one| it.ack(one, ran: Storage::Ran.new(1.0, "Work")) }
        it.storage.ack(NODE, acks, connection:)
      end
    end,
    cron_push_in_a_transaction: lambda do |it|
      it.in_transaction { |connection| it.storage.cron_push("c1", FAR, it.push_of("n1"), connection:) }
    end,
    fail_in_a_transaction: lambda do |it|
      it.in_transaction do |connection|
        it.storage.fail(NODE, [it.failure(it.storage.in_flight(NODE).first, :retry)], connection:)
      end
    end,
    due: ->(it) { it.storage.due(100, by: NODE) },
    recover: ->(it) { it.storage.recover(100) },
    leave: ->(it) { it.storage.leave(NODE) },
    remove: ->(it) { it.storage.remove("default", it.tokens(it.storage.list("default", 1, 2))) },
    clear: ->(it) { it.storage.clear("default") },
    kill: ->(it) { it.storage.kill("default", it.tokens(it.storage.list("default", 0, 2))) },
    retry_now: ->(it) { it.storage.retry_now(:dead, it.tokens(it.storage.scan(:dead, 0, 9))) },
    move: ->(it) { it.storage.move("default", it.storage.list("default", 0, 2).map { |one| Storage::Move.new(one.token) }, "x") },
    restore: ->(it) { it.storage.restore(:dead, [Storage::Stored.new(nil, it.entry("n1"), 7)]) },
    trim_dead: ->(it) { it.storage.trim_dead(0, 100) },
    trim_done: ->(it) { it.storage.trim_done(0) },
    cron_define: ->(it) { it.storage.cron_define("shop", [it.cron("c2"), it.cron("c3")], stale: -1) },
    cron_push: ->(it) { it.storage.cron_push("c1", FAR, it.push_with_lock("n1", "other")) },
    cron_pause: ->(it) { it.storage.cron_pause("c1", true) },
    extend: ->(it) { it.storage.extend([NODE, "host:3:cc"], 600) },
    begin_quarantined: lambda do |it|
      suspects = it.storage.in_flight(OTHER).select { |one| one.queue == Storage::QUARANTINE }
      it.storage.begin_quarantined(OTHER, suspects.map { |one| Storage::Begun.new(one, 1) })
    end,
    announce: ->(it) { it.storage.announce(NODE, { "concurrency" => 5 }, [["1", "default", it.entry("f1"), 1.0]]) },
    retract: ->(it) { it.storage.retract(OTHER) },
    measure: ->(it) { it.storage.measure([Storage::Measure.new(29_000_000, "Work", 4, 1, 400_010, { 0 => 1, 2 => 1 })]) },
    counters: ->(it) { it.storage.counters(processed: 3, failed: 2, twice: 1) },
    signal: ->(it) { it.storage.signal(NODE, "quiet") },
    signals: ->(it) { it.storage.signals(OTHER) },
    lock: ->(it) { it.storage.lock("lone", "x", 60) },
    unlock: ->(it) { it.storage.unlock("token", "u1") },
    pause: ->(it) { it.storage.pause("default") },
    resume: ->(it) { it.storage.resume("held") }
  }.freeze

  # What there is beside jobs, without times.
  REST = <<~SQL
    SELECT 'lock ' || token, jid FROM locks UNION ALL SELECT 'result ' || jid, text FROM results
    UNION ALL SELECT 'history of ' || jid, '' FROM histories
    UNION ALL SELECT 'trials ' || jid, json_array(tries, isolated, deaths) FROM trials
    UNION ALL SELECT 'node ' || name, json_array(listed, lasts, losses) FROM nodes
    UNION ALL SELECT 'signal ' || node, message FROM signals UNION ALL SELECT 'announced ' || node, work FROM announced
    UNION ALL SELECT 'queue ' || name, json_array(paused, size) FROM queues
    UNION ALL SELECT 'measured ' || class, json_array(processed, failed) FROM measured
    UNION ALL SELECT 'counts', json_array(processed, failed, twice) FROM state
    UNION ALL SELECT 'paused ' || name, paused FROM crons ORDER BY 1, 2
  SQL

  # Which entries of a schedule there are, and whether a tick far away was pushed.
  CRONS = "SELECT name, tick = #{FAR}, json_array_length(runs) FROM crons ORDER BY 1"

  NOTES = "SELECT text, 'note' FROM notes ORDER BY 1"

  def places = super + query(CRONS) + query(NOTES) + query(REST)

  # Runs it in a process that is killed before its statement with that number.
  #
  # @return [Boolean] whether it was
  def killed_at?(number, verb)
    pid = forked do
      %i[Connection Borrowed].each { |name| Sqlite.const_get(name).prepend(Killer) }
      @storage = Sqlite.new(path) # a new one, whose connections are new
      storage.stats
      Killer.left = number
      verb.call(self)
    end
    status = status_of(pid)
    assert_includes [nil, Signal.list["KILL"]], status.termsig
    assert_predicate status, :success? unless status.signaled?
    status.signaled?
  end

  VERBS.each do |name, verb|
    define_method("test_a_kill_in_#{name}") do
      prepare
      kept = Dir["#{path}*"].select { |file| File.file?(file) }.to_h { |file| [file, File.binread(file)] }
      before = places
      killed_at?(-1, verb)
      after = places
      refute_equal before, after

      seen = []
      tried = points_of_the_day.find do |number|
        kept.each { |file, bytes| File.binwrite(file, bytes) }
        killed = killed_at?(number, verb)
        seen << places
        assert_includes [before, after], seen.last, "before statement #{number}"
        !killed
      end
      assert_operator tried, :>, 3
      assert_equal [before, after], [seen.first, seen.last]
    end
  end
end
