# frozen_string_literal: true

require "jobs_helper"
require_relative "../support/worked"

# What was in flight at nodes that died, and how it runs alone.
class WorkerRecoveryTest < Minitest::Test
  include AnyBackend
  include Worked

  # Makes no processes. `deeds` says how each run ends, in order; and then each ends well.
  class Runner
    Result = Ringspun::Jobs::Quarantine::Result

    attr_reader :begun, :most

    def initialize(*deeds)
      @deeds = deeds
      @begun = []
      @now = @most = 0
    end

    def run(fetched, job)
      @begun << [fetched.queue, job["jid"]]
      @most = [@most, @now += 1].max
      Ringspun::Machine.current.sleep(1)
      case (deed = @deeds.shift)
      when Exception then raise deed
      when :die then Result.new(nil, "SIGKILL", false)
      when :told then Result.new(nil, "SIGTERM", false, true)
      else Result.new(Marshal.load(Marshal.dump(yield(fetched, job))), "exit 0", true)
      end
    ensure
      @now -= 1
    end
  end

  def setup
    super
    @runs = Hash.new(0)
    on("note") { |name, _| @runs[name] += 1 }
  end

  # A node that has fetched jobs and is gone.
  def died(*entries, node: "dead:1:aa", lease: 12, queue: "default")
    push_entry(*entries, queue: queue)
    storage.extend([node], lease)
    storage.fetch(node, [queue], entries.size)
  end

  def with_runner(*deeds, **settings, &)
    @runner_of = Runner.new(*deeds)
    with_worker(options: { quarantine: @runner_of }, **settings, &)
  end

  def note(name, **) = entry("note", name, jid: name, **)

  def left = storage.stats.values_at(:enqueued, :in_flight, :retries, :dead)

  def test_what_a_dead_process_had_in_flight_runs_alone_within_twenty_seconds
    with_runner(queues: %w[other]) do
      died(note("a"), note("b"))
      began = machine.now
      yield_slowly { @runs.size == 2 }
      assert_operator machine.now - began, :<, 20
      assert_equal [[Storage::QUARANTINE, "a"], [Storage::QUARANTINE, "b"]], @runner_of.begun.sort
      assert_equal 1, @runner_of.most
      until_done
      assert_equal [0, 0, 0, 0], left
      assert_equal({ done: 2 }, worker.counts)
    end
    assert_equal 2, lines.all.grep(/jid=[ab] class=Worked::Told queue=default node=dead:1:aa taken over .*: runs alone next/).size
  end

  def test_one_that_ends_its_process_each_time_is_dead
    with_runner(:die, :die, :die, queues: %w[other]) do
      died(note("pill", x: 7))
      died(note("innocent"), node: "dead:2:bb", lease: 60)
      yield_slowly { storage.stats[:dead] == 1 }
      until_done
      job = JSON.parse(dead.first)
      assert_equal ["pill", 7, "Ringspun::Jobs::Worker::Alone::DiedError"], job.values_at("jid", "x", "error_class")
      assert_match(/the process in which it ran alone has ended \(SIGKILL\), 3 times/, job["error_message"])
      assert_equal [{ "innocent" => 1 }, { died: 2, dead: 1, done: 1 }], [@runs, worker.counts]
    end
    assert_equal 2, lines.all.grep(/jid=pill .*died \(SIGKILL\); it runs alone again/).size
  end

  # The last of its processes has ended together with the worker, so nobody there could say so.
  def test_one_that_has_ended_its_process_often_enough_is_dead_and_does_not_run
    with_runner(queues: %w[other]) do
      died(note("pill"), queue: Storage::QUARANTINE)
      3.times { |run| storage.begin_alone("dead:1:aa", storage.in_flight("dead:1:aa").first, run: run) }
      yield_slowly { storage.stats[:dead] == 1 }
      until_done
      assert_equal ["pill", "the process in which it ran alone has ended (with its worker), 3 times"],
                   JSON.parse(dead.first).values_at("jid", "error_message")
      assert_equal [{}, [], { dead: 1 }], [@runs, @runner_of.begun, worker.counts]
    end
  end

  def test_only_deaths_one_after_the_other_count
    with_runner(:die, :die, queues: %w[other]) do
      died(note("a"))
      yield_slowly { @runs["a"] == 1 }
      until_done
      assert_equal [0, 0, 0, 0], left
      @runner_of.instance_variable_get(:@deeds).push(:die, :die)
      died(note("a"), node: "dead:2:bb")
      yield_slowly { @runs["a"] == 2 }
      until_done
      assert_equal [0, 0, 0, 0], left
    end
  end

  def test_one_that_fails_alone_is_tried_again_among_the_others
    on("fail") { |name, _| (@runs[name] += 1) == 1 && raise(IOError, "once") }
    with_runner(queues: %w[other]) do
      died(entry("fail", "a", jid: "a", queue: "other"), queue: "other")
      yield_slowly { storage.stats[:retries] == 1 }
      assert_equal %w[other IOError once], JSON.parse(storage.scan(:retry, 0, 1).first.first)
        .values_at("queue", "error_class", "error_message")
      until_done
      assert_equal [{ "a" => 2 }, 1], [@runs, @runner_of.begun.size]
    end
    assert_match(/error=IOError message=once/, lines.to_s)
  end

  def test_who_can_make_no_processes_leaves_it_to_others
    with_worker(queues: %w[other]) do
      died(note("a"))
      machine.sleep(60)
      assert_equal [1, {}], [list(Storage::QUARANTINE).size, @runs]
    end
  end

  def test_a_quarantine_that_is_paused
    with_runner do
      storage.pause(Storage::QUARANTINE)
      push_entry(note("a"), queue: Storage::QUARANTINE)
      machine.sleep(30)
      assert_equal [1, {}], [list(Storage::QUARANTINE).size, @runs]
      storage.resume(Storage::QUARANTINE)
      until_done
      assert_equal({ "a" => 1 }, @runs)
    end
  end

  def test_what_comes_when_the_quarantine_has_just_been_paused_goes_back
    @storage = Faulty.new(Storage::Memory.new(clock: -> { Ringspun::Machine.current.now }))
    storage.slow(:ack, 3) # who is to give it back has something else to do then
    with_runner do
      machine.sleep(5) # it waits by now
      storage.pause(Storage::QUARANTINE)
      push_entry(note("c"))
      machine.sleep(0.01)
      push_entry(note("a"), note("b"), queue: Storage::QUARANTINE)
      machine.sleep(30)
      assert_equal [2, { "c" => 1 }], [list(Storage::QUARANTINE).size, @runs]
      storage.resume(Storage::QUARANTINE)
      until_done
      assert_equal({ "a" => 1, "b" => 1, "c" => 1 }, @runs)
    end
  end

  # As often as it has ended its process, and not as often as that was told.
  def test_answers_that_are_lost_are_no_deaths
    @storage = Faulty.new(Storage::Memory.new(clock: -> { Ringspun::Machine.current.now }))
    storage.lose(:begin_alone, 4)
    with_runner(:die, :die) do
      push_entry(note("a"), queue: Storage::QUARANTINE)
      yield_slowly { @runs["a"] == 1 }
      until_done
      assert_equal [{ "a" => 1 }, [0, 0, 0, 0]], [@runs, left]
    end
  end

  def test_one_that_is_taken_away_before_it_begins
    @storage = Faulty.new(Storage::Memory.new(clock: -> { Ringspun::Machine.current.now }))
    storage.refuse(:begin_alone, 3)
    with_runner do
      push_entry(note("a"), queue: Storage::QUARANTINE)
      yield_slowly { storage.calls[:begin_alone].any? }
      storage.ack(worker.node, storage.in_flight(worker.node).map { |one| Storage::Ack.new(one.queue, one.entry, "a") })
      until_done
      assert_equal [[], { taken_away: 1 }], [@runner_of.begun, worker.counts]
    end
  end

  def test_when_no_process_can_be_made
    with_runner(Errno::EAGAIN.new, Errno::EAGAIN.new, queues: %w[other]) do
      push_entry(note("a"), queue: Storage::QUARANTINE)
      yield_slowly { @runs["a"] == 1 }
      until_done
      assert_equal [3, 1], [@runner_of.begun.size, lines.all.grep(/fork fails, and is tried again/).size]
    end
  end

  def test_what_was_in_flight_and_is_no_job
    with_runner do
      died("nonsense")
      yield_slowly { storage.stats[:dead] == 1 }
    end
    assert_equal 1, lines.all.grep(/queue=default node=dead:1:aa taken over from a dead process: back in its queue/).size
  end

  def test_what_is_no_job
    with_runner do
      push_entry("nonsense", queue: Storage::QUARANTINE)
      yield_slowly { storage.stats[:dead] == 1 }
      assert_empty @runner_of.begun
    end
  end

  # The worker ends, and whoever gets its job next begins the first run.
  def assert_counts_no_death
    worker.stop
    @runner.join
    assert_equal [1, { returned: 1 }], [list(Storage::QUARANTINE).size, worker.counts]
    storage.extend(["x"], 10)
    assert_equal 1, storage.begin_alone("x", storage.fetch("x", [Storage::QUARANTINE], 1).first)
  end

  def test_who_is_stopped_counts_no_death
    on("sleep") { machine.sleep(1000) }
    with_runner(timeout: 1) do
      push_entry(entry("sleep", jid: "a"), queue: Storage::QUARANTINE)
      yield_slowly { @runner_of.begun.any? }
      assert_counts_no_death
    end
  end

  def test_a_signal_that_all_get_counts_no_death
    with_runner(:told) do
      push_entry(note("a"), queue: Storage::QUARANTINE)
      yield_slowly { @runner_of.begun.any? }
      machine.sleep(1.1) # it has ended, and this process has not heard of the signal yet
      assert_counts_no_death
    end
  end

  def test_one_that_is_told_to_end_and_no_other_has_died
    with_runner(:told, :told, :told) do
      push_entry(note("a"), queue: Storage::QUARANTINE)
      yield_slowly { storage.stats[:dead] == 1 }
      assert_equal({ died: 2, dead: 1 }, worker.counts)
    end
  end

  def test_one_that_runs_alone_is_cancelled
    on("sleep") { machine.sleep(1000) }
    with_runner do
      push_entry(entry("sleep", jid: "a"), queue: Storage::QUARANTINE)
      yield_slowly { worker.running.any? }
      worker.cancel("a")
      until_done
      assert_equal({ cancelled: 1 }, worker.counts)
    end
  end

  def test_one_that_is_cancelled_before_it_begins
    with_runner do
      worker.define_singleton_method(:start_alone) do |fetched|
        super(fetched).tap { running.each { |run| __send__(:finish_early, run, :cancel) if run.jid == "first" } }
      end
      push_entry(note("first"), note("second"), queue: Storage::QUARANTINE)
      until_done
      assert_equal [{ "second" => 1 }, { cancelled: 1, done: 1 }], [@runs, worker.counts]
    end
  end

  def test_no_wait_begins_when_the_worker_is_to_end
    with_runner do
      machine.sleep(3)
      storage.slow(:paused, 1)
      asked = storage.calls[:paused].size
      yield_slowly { storage.calls[:paused].size > asked }
      began = machine.now
      worker.stop
      @runner.join
      assert_operator machine.now - began, :<, 1.5
    end
  end

  def test_others_run_beside_it
    on("sleep") { machine.sleep(1000) }
    with_runner(timeout: 1) do
      push_entry(entry("sleep", jid: "a"), queue: Storage::QUARANTINE)
      yield_slowly { worker.running.any? }
      push_entry(note("b"))
      yield_slowly { @runs["b"] == 1 }
    end
  end

  def test_the_oldest_of_the_dead_are_forgotten
    @storage = Faulty.new(Storage::Memory.new(clock: -> { Ringspun::Machine.current.now }))
    with_worker(dead_max: 3) do
      5.times { |number| push_entry("no job #{number}") && machine.sleep(1) }
      machine.sleep(200)
      assert_equal 3, storage.stats[:dead]
    end
  end

  def test_a_job_that_is_due_runs_then_and_not_before
    at = nil
    on("time") { at = machine.now }
    with_worker do
      machine.sleep(1)
      began = machine.now
      storage.push([Storage::Push.new(queue: "default", entry: entry("time"), delay: 30.25)])
      until_done
      assert_in_delta 30.25, at - began, 0.05
    end
  end

  def test_hundreds_that_are_due_at_once
    with_worker(concurrency: 50) do
      storage.push(Array.new(1050) { |number| Storage::Push.new(queue: "default", entry: note(number.to_s), delay: 10) })
      machine.sleep(9)
      assert_empty @runs
      machine.sleep(2)
      until_done
      assert_equal 1050, @runs.size
    end
  end
end
