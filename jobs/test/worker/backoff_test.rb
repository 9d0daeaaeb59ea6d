# frozen_string_literal: true

require "jobs_helper"
require_relative "../support/scripted_quarantine"
require_relative "../support/worked"

# The storage is away, refuses, or its answers are lost.
class WorkerBackoffTest < Minitest::Test
  include AnyBackend
  include Worked

  Refused = Jobs::StorageError

  def setup
    super
    @runs = Hash.new(0)
    on("note") { |name, _| @runs[name] += 1 }
  end

  def logged(pattern) = lines.all.grep(pattern).size

  def test_no_acknowledgement_is_lost
    with_worker do
      storage.refuse(:ack, 20)
      push("note", 1)
      until_done
      assert_equal [{ 1 => 1 }, { done: 1 }, 21], [@runs, worker.counts, storage.calls[:ack].size]
      assert_equal [1, 1], [logged(/the storage is away: away/), logged(/the storage is back/)]
    end
  end

  def test_a_run_keeps_its_place_until_it_is_settled
    with_worker(concurrency: 1) do
      storage.refuse(:ack, 5)
      push("note", 1)
      push("note", 2)
      yield_slowly { @runs[1] == 1 }
      assert_equal [1, { 1 => 1 }], [worker.busy, @runs]
      until_done
      assert_equal({ 1 => 1, 2 => 1 }, @runs)
    end
  end

  # A wait that has brought a job may take long to end, as where the log is slow. The next one is counted nevertheless.
  def test_only_one_strand_waits_at_a_queue
    lines.define_singleton_method(:info) { |text| text.include?("is back") ? Ringspun::Machine.current.sleep(0.5) : super(text) }
    with_worker do
      count_waits
      storage.refuse(:wait_any)
      yield_slowly { storage.calls[:wait_any].size == 2 }
      push("note", 1)
      until_done
      machine.sleep(5)
      assert_equal 1, @most_waits
    end
  end

  def count_waits
    waits = @most_waits = 0
    count = ->(more) { @most_waits = [@most_waits, waits += more].max }
    storage.define_singleton_method(:wait_any) do |*arguments, **options|
      count.call(1)
      super(*arguments, **options)
    ensure
      count.call(-1)
    end
  end

  def test_an_answer_that_was_lost_to_what_was_done
    on("fail") { raise "no" }
    with_worker do
      storage.lose(:ack)
      storage.lose(:fail)
      push("note", 1)
      push("fail", retry: 0)
      until_done
      assert_equal [{ done: 1, dead: 1 }, 0, 1], [worker.counts, logged(/taken away/), dead.size]
    end
  end

  def test_acknowledgements_of_long_entries_go_in_several_calls
    gate = Ringspun::Queue.new
    on("long") { gate.pop }
    with_worker do
      3.times { |number| push("long", "x" * 1_500_000, number) }
      yield_slowly { worker.running.size == 3 }
      gate.close
      until_done
      assert_equal [{ done: 3 }, [2, 1]], [worker.counts, storage.calls[:ack].map { |_, acks| acks.size }]
    end
  end

  def test_one_that_is_refused_for_good_holds_up_no_other
    with_worker do
      bad = ->(_, acks, _ = nil) { acks.any? { |ack| ack.jid == "bad" } }
      storage.refuse(:ack, 1000, Refused.new("too large"), &bad)
      push("note", "bad", jid: "bad")
      20.times { |number| push("note", number, jid: number.to_s) }
      yield_slowly { worker.counts[:done] == 20 }
      machine.sleep(10)
      push("note", 20)
      yield_slowly { worker.counts[:done] == 21 }
      assert_equal [["bad"], 1], [worker.running.map(&:jid) | storage.in_flight(worker.node).map { |one|
        JSON.parse(one.entry)["jid"]
      },
                                  worker.busy]
      storage.mend
      until_done
      assert_equal 22, worker.counts[:done]
      assert(@runs.values.all? { |count| count == 1 })
    end
  end

  # As Redis does: that one cannot be moved and stays in flight, all others are moved.
  def refuse_to_fail(jid)
    real = storage.__getobj__
    storage.define_singleton_method(:fail) do |node, failures, **|
      bad, others = failures.partition { |failure| failure.jid == jid }
      answers = real.fail(node, others)
      bad.any? ? raise(Refused, "too large") : answers
    end
  end

  def test_failures_that_were_moved_beside_one_that_was_refused
    gate = Ringspun::Queue.new
    on("fail") { gate.pop || raise("no") }
    with_worker do
      refuse_to_fail("1")
      3.times { |number| push("fail", jid: number.to_s, retry: 0) }
      yield_slowly { worker.running.size == 3 }
      gate.close
      yield_slowly { worker.counts.values.sum == 2 }
      assert_equal [{ dead: 2 }, 0], [worker.counts, logged(/taken away/)]
      storage.singleton_class.remove_method(:fail)
      until_done
      assert_equal [{ dead: 3 }, 3], [worker.counts, dead.size]
    end
  end

  def test_an_answer_that_does_not_come_before_the_worker_ends
    with_worker(timeout: 1) do
      storage.slow(:ack, 1000)
      push("note", 1)
      yield_slowly { storage.calls[:ack].any? }
    end
    assert_equal [{ done: 1 }, 0, 2], [worker.counts, logged(/taken away/), storage.calls[:ack].size]
  end

  def test_jobs_that_were_dropped_while_the_storage_was_away
    on("fail") { raise "no" }
    with_worker do
      storage.refuse(:counters, 3)
      push("fail", retry: false)
      yield_slowly { storage.calls[:counters].size == 4 }
      assert_equal [{ dropped: 1 }, 1], [worker.counts, storage.stats[:failed]]
    end
  end

  # No error of a storage's, and so a fault of ours.
  def test_a_part_that_fails_ends_the_worker
    error = nil
    simulate do
      @storage = Faulty.new(Storage::Memory.new(clock: -> { machine.now }))
      @worker = new_worker(timeout: 5)
      storage.refuse(:recover, 1, NotImplementedError.new("what?"))
      on("wait") { machine.sleep(1000) }
      push("wait")
      strand = machine.spin { worker.run }
      error = error_of { strand.join }
      assert_equal [1, 0, 0], storage.stats.values_at(:enqueued, :in_flight, :nodes)
    end
    assert_kind_of NotImplementedError, error
  end

  def test_what_lasts_is_told_again_each_minute
    with_worker do
      yield_slowly { worker.busy.zero? && storage.nodes.any? }
      storage.refuse(:due, 100, Jobs::UnavailableError.new("away"))
      machine.sleep(10)
      storage.mend
      storage.refuse(:due, 1_000_000, Jobs::AccessError.new("WRONGPASS"))
      machine.sleep(5)
      assert_equal [1, 1], [logged(/the storage is away: away/), logged(/no access to the storage: WRONGPASS/)]
      storage.refuse(:trim_dead, 1_000_000, Refused.new("wrong type"))
      machine.sleep(180)
      assert_includes 3..4, logged(/no access to the storage: WRONGPASS/)
      assert_includes 1..3, logged(/trim_dead fails, and is tried again: wrong type/)
    end
  end

  # At once, when the lease is over, and then each minute; and when it fails again.
  def test_a_heartbeat_that_fails_is_told_again_each_minute
    with_worker(lease: 12, beat: 3) do
      machine.sleep(1)
      2.times do |before|
        %i[extend signals].each { |verb| storage.refuse(verb, 1_000_000, Refused.new("no beat")) }
        machine.sleep(140)
        assert_equal before + 1, logged(/no heartbeat: no beat/)
        assert_equal 3 * (before + 1), logged(/no heartbeat, and until there is one no jobs are fetched: no beat/)
        storage.mend
        machine.sleep(10)
      end
    end
  end

  def test_what_the_storage_threatens_jobs_with_is_told_at_the_start
    @storage = Faulty.new(Storage::Memory.new(clock: -> { Ringspun::Machine.current.now }))
    storage.define_singleton_method(:risks) { ["it forgets"] }
    with_worker { machine.sleep(1) }
    assert_equal 1, logged(/warn it forgets/)
  end

  def test_what_is_due_and_no_job_is_told
    with_worker do
      storage.push([Storage::Push.new(queue: "default", entry: '{"class":"A","jid":"a"}', at: machine.now + 1)])
      yield_slowly { storage.stats[:dead] == 1 }
      assert_equal "the entry's args is missing", JSON.parse(dead.first)["error_message"]
    end
    assert_equal 1, logged(/error entry=.* no job: the entry's args is missing/)
  end

  # Of which all that are dead fill one page.
  def test_what_is_due_behind_a_hundred_that_are_no_jobs
    @storage = Faulty.new(Storage::Memory.new(clock: -> { Ringspun::Machine.current.now }))
    looked = []
    storage.define_singleton_method(:due) { |*all, **options| super(*all, **options).tap { looked << Ringspun::Machine.current.now } }
    with_worker do
      bad = Array.new(100) { |number| %({"class":"A","jid":"#{number}"}) }
      storage.push(bad.map { |one| Storage::Push.new(queue: "default", entry: one, at: machine.now + 5) })
      storage.push([Storage::Push.new(queue: "default", entry: entry("note", "a"), at: machine.now + 5)])
      yield_slowly { @runs["a"] == 1 }
      assert_equal 1, looked.each_cons(2).count { |one, next_one| one == next_one }, "it has not looked again at once"
    end
  end

  def test_a_storage_that_is_not_there_yet
    @storage = Faulty.new(Storage::Memory.new)
    storage.refuse(:extend, 5)
    push("note", 1)
    with_worker do
      until_done
      assert_equal({ 1 => 1 }, @runs)
    end
    assert_equal 1, logged(/the storage is back/)
  end

  def test_one_that_is_stopped_before_the_storage_is_there
    with_worker do
      storage.refuse(:extend, 1_000_000)
      machine.sleep(30)
      worker.stop
      @strand.join
      assert_operator machine.now, :<, 40
    end
  end

  def test_errors_end_no_loop
    with_worker do
      %i[due recover trim_dead announce signals extend fetch wait_any].each do |verb|
        storage.refuse(verb, 3, verb == :due ? TypeError.new("a bug") : Refused.new("wrong type"))
      end
      storage.push([Storage::Push.new(queue: "default", entry: entry("note", 1), delay: 30)])
      until_done
      machine.sleep(300)
      push("note", 2)
      until_done
      assert_equal({ 1 => 1, 2 => 1 }, @runs)
      assert_equal 1, logged(/due fails, and is tried again: a bug/)
      assert_equal 1, logged(/due goes on/)
    end
  end

  def test_jobs_whose_coming_was_not_heard_run_all_the_same
    with_worker do
      machine.sleep(1)
      storage.lose(:wait_any) { |_, _, _, fetched| fetched.any? }
      push("note", 1)
      yield_slowly { storage.in_flight(worker.node).size == 1 }
      began = machine.now
      until_done
      assert_operator machine.now - began, :<, 10
      assert_equal({ 1 => 1 }, @runs)
      assert_match(/1 job was in flight here without an answer/, lines.to_s)
    end
  end

  def test_a_whole_burst_whose_coming_was_not_heard
    @storage = Faulty.new(Storage::Memory.new)
    storage.lose(:fetch)
    entries = Array.new(50) { |number| entry("note", number % 25, jid: (number % 25).to_s) } # each twice
    push_entry(*entries)
    with_worker(concurrency: 7) do
      until_done
      assert_equal({ done: 50 }, worker.counts)
      assert_equal (0...25).to_h { |number| [number, 2] }, @runs
    end
  end

  # As after a restart of a Redis that writes to its disk once a second.
  def test_a_storage_that_has_forgotten_an_acknowledgement
    with_worker do
      push("note", 1)
      until_done
      push("note", 2, queue: "other")
      assert_equal 1, storage.__getobj__.fetch(worker.node, ["other"], 1).size
      began = machine.now
      until_done
      assert_equal({ 1 => 1, 2 => 1 }, @runs)
      assert_operator machine.now - began, :<, 70
    end
  end

  # What is in flight because it runs, is being acknowledged or is being fetched is no orphan.
  def test_what_is_known_is_not_run_twice
    on("sleep") { |name, seconds, _| machine.sleep(seconds) and @runs[name] += 1 }
    with_worker(concurrency: 50) do
      40.times { |number| push("sleep", number, number) }
      storage.lose(:wait_any) { |_, _, _, fetched| fetched.any? }
      60.times do |number|
        machine.sleep(0.5)
        push("note", 100 + number)
        storage.lose(:fetch) if (number % 7).zero?
        storage.lose(:wait_any) { |_, _, _, fetched| fetched.any? } if (number % 5).zero?
      end
      until_done
      assert_equal 100, @runs.size
      assert(@runs.values.all? { |count| count == 1 }, @runs.inspect)
    end
  end

  # When the worker looks for the first one, the second is in flight and its answer is still on the way.
  def test_what_is_on_its_way_is_no_orphan
    with_worker(queues: %w[default other]) do
      machine.sleep(1)
      storage.lose(:wait_any) { |_, _, _, fetched| fetched.any? }
      push("note", 1)
      yield_slowly { lines.to_s.include?("away") }
      storage.slow(:wait_any, 3)
      push("note", 2, queue: "other")
      until_done
      machine.sleep(60)
      assert_equal [{ 1 => 1, 2 => 1 }, { done: 2 }], [@runs, worker.counts]
    end
  end

  def test_a_command_that_comes_late
    with_worker do
      storage.refuse(:wait_any, 1, Jobs::UnknownOutcomeError.new("lost"))
      yield_slowly { lines.to_s.include?("away") }
      machine.sleep(8)
      worker.quiet # so that nobody else fetches it
      push("note", 1)
      storage.__getobj__.fetch(worker.node, ["default"], 1)
      machine.sleep(60)
      assert_equal [1, 0, {}], [list.size, storage.stats[:in_flight], @runs] # found, and given back
    end
  end

  def test_a_lease_that_ran_out
    with_worker do
      machine.sleep(5)
      storage.refuse(:extend, 1_000_000)
      machine.sleep(20)
      push("note", 1)
      machine.sleep(10)
      assert_empty @runs, "fetched without a lease"
      storage.mend
      until_done
      assert_equal({ 1 => 1 }, @runs)
      assert_match(/this worker's lease had run out/, lines.to_s)
    end
  end

  def test_nothing_is_taken_from_the_quarantine_without_a_lease
    with_worker(options: { quarantine: ScriptedQuarantine.new }) do
      machine.sleep(5)
      storage.refuse(:extend, 1_000_000)
      machine.sleep(20)
      push("note", 1, queue: Storage::QUARANTINE)
      machine.sleep(10)
      assert_equal [{}, 1], [@runs, list(Storage::QUARANTINE).size]
      storage.mend
      began = machine.now
      until_done
      assert_equal({ 1 => 1 }, @runs)
      assert_operator machine.now - began, :<, 20
    end
  end

  # Nobody could say that he lives while the storage was away.
  def test_when_the_storage_is_back_others_may_say_first_that_they_live
    with_worker(queues: %w[other]) do
      machine.sleep(10)
      storage.extend(["live:1:aa"], 12)
      push("note", 1)
      storage.fetch("live:1:aa", ["default"], 1)
      %i[recover time].each { |verb| storage.refuse(verb, 1_000_000) }
      machine.sleep(30)
      storage.mend
      machine.sleep(config.beat + 1)
      5.times do
        storage.extend(["live:1:aa"], 12)
        machine.sleep(3)
      end
      assert_equal 1, storage.in_flight("live:1:aa").size
      yield_slowly { list(Storage::QUARANTINE).size == 1 } # it has died meanwhile
    end
  end

  def test_who_begins_lets_others_say_that_they_live
    with_worker(queues: %w[other]) do
      storage.extend(["live:1:aa"], 0.01)
      push("note", 1)
      storage.fetch("live:1:aa", ["default"], 1)
      machine.sleep(config.beat + 1)
      assert_equal [false], storage.extend(["live:1:aa"], 12)
      machine.sleep(10)
      assert_equal 1, storage.in_flight("live:1:aa").size
    end
  end

  def test_what_others_have_taken_over_is_not_counted
    on("frozen") do
      storage.refuse(:extend, 1_000_000)
      machine.sleep(60)
    end
    with_worker do
      push("frozen", jid: "a1")
      yield_slowly { worker.busy == 1 }
      yield_slowly { list(Storage::QUARANTINE).size == 1 }
      yield_slowly { worker.busy.zero? }
      assert_equal({ taken_away: 1 }, worker.counts)
      assert_match(/jid=a1 .*taken away: others have run it, or will/, lines.to_s)
      assert_equal 0, storage.stats[:processed]
      storage.mend
      yield_slowly { storage.stats[:twice] == 1 }
    end
    assert_equal 1, storage.stats[:twice]
  end

  def test_locks_of_a_storage_that_is_away
    with_worker do
      storage.refuse(:unlock, 3)
      job = entry("note", 1, unique_token: "t", unique_until: "start", jid: "a1")
      storage.push([Storage::Push.new(queue: "default", entry: job, jid: "a1", lock: "t", lock_seconds: 1000)])
      until_done
      assert_equal [{ 1 => 1 }, { done: 1 }], [@runs, worker.counts]
    end
  end

  def test_goodbye_to_a_storage_that_is_away
    with_worker do
      machine.sleep(1)
      storage.refuse(:leave)
      worker.stop
      @strand.join
    end
    assert_match(/what is in flight stays until the lease runs out: away/, lines.to_s)
  end
end
