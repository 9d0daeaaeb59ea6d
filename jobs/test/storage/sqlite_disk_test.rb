# frozen_string_literal: true

require "io/nonblock"
require "jobs_helper"
require_relative "../support/sqlite_case"
require_relative "../support/disk_faults"

# rubies: one

# A disk that fails at any write, sync, cut or read of the files, by its number, while a process does one call after the other.
# What that was told is true, the file stays whole, and it goes on as soon as the disk does.
class SqliteDiskTest < SqliteCase
  include AnyBackend

  # By a process of another program, for SQLite does that by itself after a thousand pages only.
  def checkpoint = query("PRAGMA wal_checkpoint(TRUNCATE)")

  def ack(fetched, **) = Storage::Ack.new(queue: fetched.queue, token: fetched.token, jid: jids([fetched]).first, **)

  def failure(fetched)
    Storage::Failure.new(queue: fetched.queue, token: fetched.token, jid: jids([fetched]).first, to: :retry, delay: 100)
  end

  # In flight are f1 and f2, and w1 and w2 wait.
  def prepare
    push("f1", "f2", "w1", "w2")
    storage.extend([NODE], 600)
    storage.fetch(NODE, ["default"], 2)
    storage.close
  end

  # Each call, and the jobs that it pushes.
  CALLS = {
    push: [%w[p1], ->(it) { it.push("p1") }],
    push_many: [%w[p2 p3], ->(it) { it.push("p2", "p3") }],
    push_later: [%w[p4], ->(it) { it.push("p4", at: 5) }],
    fetch: [[], ->(it) { it.storage.fetch(NODE, ["default"], 2).size }],
    ack: [%w[n1], ->(it) { it.storage.ack(NODE, it.flying("f1").map { |one| it.ack(one, pushes: [it.push_of("n1")]) }) }],
    fail: [[], ->(it) { it.storage.fail(NODE, it.flying("f2").map { |one| it.failure(one) }) }],
    checkpoint: [[], ->(it) { (it.checkpoint rescue $!) && nil }],
    push_again: [%w[p5], ->(it) { it.push("p5") }]
  }.freeze

  # The first calls of a new file.
  FIRST = { push: [%w[p1], ->(it) { it.push("p1") }], stats: [[], ->(it) { it.storage.stats && nil }],
            push_again: [%w[p5], ->(it) { it.push("p5") }] }.freeze

  def flying(jid) = storage.in_flight(NODE).select { |one| jids([one]) == [jid] }

  # Runs the calls in a process whose disk fails after `number` of its own calls.
  #
  # @return [Array(Hash, Integer)] what each call that has ended said: an error's class and message, or its value; and how often
  #   the disk was called
  def run_with_fault(calls, number, kind)
    told = File.join(folder, "told")
    pid = forked do
      DiskFaults.install
      out = File.open(told, File::WRONLY | File::CREAT | File::TRUNC | File::APPEND)
      DiskFaults.plan(number, kind)
      @storage = Sqlite.new(path) # whose connections are new
      calls.each { |name, (_, call)| out.syswrite("#{JSON.generate([name, *outcome_of(call)])}\n") }
      count = DiskFaults.count
      DiskFaults.heal
      out.syswrite("#{JSON.generate(["healed", *outcome_of(->(it) { it.push("z") }), count])}\n")
    end
    status = status_of(pid)
    assert_equal kind == :killed ? Signal.list["KILL"] : nil, status.termsig if number >= 0 && !status.success?
    lines = File.readlines(told).map { |line| JSON.parse(line) }
    healed = lines.pop if lines.last&.first == "healed"
    assert_equal ["healed", nil, nil], healed.first(3), "after #{number} #{kind}" if healed
    [lines.to_h { |name, *outcome| [name.to_sym, outcome] }, healed&.last]
  end

  # @return [Array(Object, String)] a value, or an error's class and message
  def outcome_of(call)
    [call.call(self), nil]
  rescue StandardError => error
    [error.class.name, error.message]
  end

  # What was accepted is there once, what was refused is not, and of what nobody knows either.
  def judge(calls, outcomes, context)
    there = tables? ? places : [] # a process that was killed may have made none
    counts = there.map(&:first).tally
    calls.each do |name, (pushed, _)|
      value, message = outcomes[name]
      unknown = !outcomes.key?(name) || value == "Ringspun::Jobs::UnknownOutcomeError"
      assert_includes %w[Ringspun::Jobs::UnavailableError Ringspun::Jobs::StorageError Ringspun::Jobs::UnknownOutcomeError],
                      value, "#{context} #{name}: #{message}" if message
      pushed.each do |jid|
        expected = unknown ? [nil, 1] : [message ? nil : 1]
        assert_includes expected, counts[jid], "#{context} #{name} #{jid}: #{outcomes[name]}"
      end
      assert_operator pushed.map { |jid| counts[jid] }.uniq.size, :<=, 1, "#{context} #{name} is done, or it is not"
    end
    there.to_h
  end

  def tables? = query("PRAGMA user_version").first.first.positive?

  # What was in the file before, by what was said of it.
  def judge_flights(outcomes, there, context)
    assert_equal [1, 1], [there.keys.count("w1"), there.keys.count("w2")], context
    acked, message = outcomes.fetch(:ack, [nil, "killed"])
    assert_nil there["f1"], context if acked == [true]
    assert there["f1"] || there["n1"], "#{context}: lost"
    refute there["f1"] && there["n1"], "#{context}: done and there"
    assert there["f1"], "#{context}: not done, and gone" if message && acked&.match?(/Unavailable|StorageError/)
    failed, = outcomes[:fail]
    assert there["f2"], "#{context}: lost"
    assert_equal "set 1", there["f2"], context if failed == [true]
  end

  def fresh(kept)
    Dir["#{path}*"].each { |file| FileUtils.rm_rf(file) }
    kept.each { |file, bytes| File.binwrite(file, bytes) }
  end

  # @yieldparam outcomes [Hash]
  # @yieldparam there [Hash] each job, and where it is
  # @yieldparam context [String]
  def each_fault(calls, kind, kept)
    tried = points_of_the_day.find do |number|
      fresh(kept)
      Supervised.tick
      outcomes, count = run_with_fault(calls, number, kind)
      context = "#{kind} after #{number}"
      yield outcomes, judge(calls, outcomes, context), context
      count && number >= count # the fault was never reached
    end
    assert_operator tried, :>, kind == :unread ? 5 : 20
  end

  def setup
    super
    DiskFaults.build
  end

  # @yield in a process whose disk is counted, with a storage that is warm
  # @yieldreturn [Object] what is answered
  def on_a_disk(**options)
    told = File.join(folder, "told")
    pid = forked do
      DiskFaults.install
      @storage = Sqlite.new(path, **options)
      push("warm")
      File.write(told, JSON.generate(yield))
    end
    assert_predicate status_of(pid), :success?
    JSON.parse(File.read(told))
  end

  def syncs
    before = DiskFaults.synced
    yield
    DiskFaults.synced - before
  end

  # What was enqueued or acknowledged is on the disk before the call returns; who fetches does not wait for it.
  def test_who_waits_for_the_disk
    counts = lambda do
      [syncs { push("a") }, syncs { push("b", "c") }, syncs { storage.fetch(NODE, ["default"], 1) },
       syncs { storage.ack(NODE, storage.in_flight(NODE).map { |one| ack(one) }) }, syncs { storage.extend([NODE], 60) }]
    end
    assert_equal [[1, 1, 0, 1, 0], [1, 1, 0, 1, 0], [0, 0, 0, 0, 0]],
                 [on_a_disk(&counts), on_a_disk(durable: :full, &counts), on_a_disk(durable: :normal, &counts)]
  end

  # The disk is done when a strand of the same thread says so.
  def test_other_strands_go_on_while_one_waits_for_the_disk
    turns = on_a_disk do
      IO.pipe do |gate, open|
        gate.nonblock = false
        DiskFaults.gate(gate)
        Ringspun.run do |machine|
          before = DiskFaults.synced
          strand = machine.spin { push("a") }
          machine.sleep(0.001) until DiskFaults.synced > before
          turns = (1..100).count { machine.sleep(0) && strand.alive? }
          DiskFaults.gate(nil)
          open.syswrite("x")
          strand.join
          turns
        end
      end
    end
    assert_equal 100, turns
  end

  DiskFaults::KINDS.each do |kind|
    define_method("test_each_call_and_a_disk_with_the_fault_#{kind}") do
      prepare
      kept = Dir["#{path}*"].select { |file| File.file?(file) }.to_h { |file| [file, File.binread(file)] }
      each_fault(CALLS, kind, kept) do |outcomes, there, context|
        judge_flights(outcomes, there, context)
        failed = outcomes.count { |_, (_, message)| message }
        assert_operator failed, :<=, 1, "#{context}: #{outcomes}" if %i[once torn unread].include?(kind)
        if kind == :full
          outcomes.each_value { |_, message| assert_match(/the disk is full, and nothing was done/, message, context) if message }
        end
      end
    end

    define_method("test_a_new_file_and_a_disk_with_the_fault_#{kind}") do
      each_fault(FIRST, kind, {}) do |outcomes, _, context|
        failed = outcomes.count { |_, (_, message)| message }
        assert_operator failed, :<=, 1, "#{context}: #{outcomes}" if %i[once torn unread].include?(kind)
      end
    end
  end
end
