# frozen_string_literal: true

require "jobs_helper"
require_relative "../support/scripted_quarantine"
require_relative "../support/worked"

# What was in flight at nodes that died, and how it runs isolated.
class WorkerRecoveryTest < Minitest::Test
  include AnyBackend
  include Worked

  def setup
    super
    @runs = Hash.new(0)
    on("note") { |name, _| @runs[name] += 1 }
  end

  def with_quarantine(*deeds, **settings, &)
    @quarantine = ScriptedQuarantine.new(*deeds)
    with_worker(options: { quarantine: @quarantine }, **settings, &)
  end

  def note(name, **) = entry("note", name, jid: name, **)

  def left = storage.stats.values_at(:enqueued, :in_flight, :retries, :dead)

  def test_what_a_dead_process_had_in_flight_runs_in_a_child_within_twenty_seconds
    with_quarantine(queues: %w[other]) do
      died(note("a"), note("b"))
      began = machine.now
      yield_slowly { @runs.size == 2 }
      assert_operator machine.now - began, :<, 20
      assert_equal [%w[a b]], @quarantine.begun.map(&:sort)
      until_done
      assert_equal [0, 0, 0, 0], left
      assert_equal({ done: 2 }, worker.counts)
    end
    assert_equal 2, lines.all.grep(/jid=[ab] class=Worked::Task queue=default node=dead:1:aa taken over .*: in quarantine/).size
  end

  # The children that die halve what may have ended them, and nobody else's death is counted.
  def test_a_poison_job_among_many_is_found_by_halves
    names = (1..40).map { |number| "innocent #{number}" }
    with_quarantine(->(jids) { :die if jids.include?("poison") }, queues: %w[other], concurrency: 100) do
      died(*(names + ["poison"]).shuffle(random: Random.new(1)).map { |name| note(name) })
      yield_slowly { storage.stats[:dead] == 1 }
      until_done
      assert_equal [names.to_h { |name| [name, 1] }, { done: 40, dead: 1, died: 2 }], [@runs, worker.counts]
      with_poison = @quarantine.begun.select { |jids| jids.include?("poison") }.map(&:size)
      assert_equal [[1, 1, 1], true], [with_poison.last(3), with_poison.size <= 10]
    end
    assert_match(/warn jobs=41 a child in quarantine has ended \(SIGKILL\): its jobs run anew in halves/, lines.to_s)
  end

  # One that never ends holds up one child, and not each half in which the other one is.
  def test_a_poison_job_beside_one_that_never_ends
    on("endless") { machine.sleep(100_000) }
    names = (1..40).map { |number| "innocent #{number}" }
    deed = ->(jids) { jids.include?("endless") && jids.size > 1 ? { cut: "endless" } : (:die if jids.include?("poison")) }
    with_quarantine(deed, queues: %w[other], concurrency: 100, timeout: 1) do
      died(entry("endless", jid: "endless"), *names.map { |name| note(name) }, note("poison"))
      began = machine.now
      yield_slowly { storage.stats[:dead] == 1 && @runs.size == 40 }
      # The lease, the next look for dead processes, and a second for each of 7 halvings and 3 deaths.
      assert_operator machine.now - began, :<, 12 + 4 + 6 + 10
      assert_equal [42, 1], (@quarantine.begun.select { |jids| jids.include?("endless") }.map(&:size))
    end
  end

  def test_two_poison_jobs_among_many
    with_quarantine(->(jids) { :die if jids.grep(/poison/).any? }, queues: %w[other], concurrency: 100) do
      died(*(1..20).map { |number| note(number.to_s) }, note("poison 1"), note("poison 2"))
      yield_slowly { storage.stats[:dead] == 2 }
      until_done
      assert_equal({ done: 20, dead: 2, died: 4 }, worker.counts)
    end
  end

  def test_a_child_has_as_many_as_a_worker_runs_at_once
    with_quarantine(concurrency: 4) do
      push_entry(*(1..10).map { |number| note(number.to_s) }, queue: Storage::QUARANTINE)
      until_done
      assert_equal [[4, 4, 2], 10], [@quarantine.begun.map(&:size), worker.counts[:done]]
    end
  end

  # Jobs in children take no places from the others.
  def test_others_run_beside_as_many_as_there_may_be
    on("sleep") { machine.sleep(1000) }
    with_quarantine(concurrency: 2, timeout: 1) do
      push_entry(*(1..4).map { |number| entry("sleep", jid: number.to_s) }, queue: Storage::QUARANTINE)
      yield_slowly { @quarantine.begun.flatten.size == 4 }
      push_entry(note("a"), note("b"))
      yield_slowly { @runs.size == 2 }
    end
  end

  def test_one_that_never_ends_delays_nobody
    on("endless") { machine.sleep(100_000) }
    with_quarantine(concurrency: 2, timeout: 1) do
      push_entry(entry("endless", jid: "endless"), *(1..20).map { |number| note(number.to_s) }, queue: Storage::QUARANTINE)
      began = machine.now
      yield_slowly { @runs.size == 20 }
      # Two at a time, a second each in two places, one of them for two seconds the endless one's.
      assert_operator machine.now - began, :<, 10
      assert_equal 1, worker.busy
    end
    assert_equal [1, 0], storage.stats.values_at(:enqueued, :in_flight)
  end

  # As when other programs give memory back.
  def test_a_place_that_nobody_tells_of_is_found_within_seconds
    on("endless") { machine.sleep(100_000) }
    @quarantine = ScriptedQuarantine.new(places: 1)
    with_worker(timeout: 1, options: { quarantine: @quarantine }) do
      push_entry(entry("endless", jid: "a"), queue: Storage::QUARANTINE)
      yield_slowly { worker.busy == 1 }
      push_entry(note("b"), queue: Storage::QUARANTINE)
      machine.sleep(10)
      assert_empty @runs
      @quarantine.places = 2
      machine.sleep(5)
      assert_equal({ "b" => 1 }, @runs)
    end
  end

  def test_children_that_do_not_end_hold_all_places
    on("endless") { machine.sleep(100_000) }
    @quarantine = ScriptedQuarantine.new(places: 3)
    with_worker(concurrency: 1, timeout: 1, options: { quarantine: @quarantine }) do
      push_entry(*(1..3).map { |number| entry("endless", jid: number.to_s) }, note("a"), queue: Storage::QUARANTINE)
      machine.sleep(50)
      refute_match(/no place left/, lines.to_s)
      machine.sleep(200)
      assert_equal [{}, 3, 1], [@runs, worker.busy, list(Storage::QUARANTINE).size]
      assert_includes 3..4, lines.all.grep(/error jobs=3 the quarantine has no place left/).size # once a minute
      worker.cancel("2")
      yield_slowly { @runs["a"] == 1 }
      assert_equal 3, @quarantine.most
    end
  end

  # The others go on meanwhile.
  def test_one_that_was_cut_short_is_isolated
    on("sleep") { |name, _| machine.sleep(20).then { @runs[name] += 1 } }
    ended = {}
    on("holder") { ended["holder"] = machine.now }
    with_quarantine(->(jids) { %w[holder] if jids.include?("holder") && jids.size > 1 }, queues: %w[other]) do
      died(*%w[1 2 holder 3 4].map { |name| entry(name == "holder" ? name : "sleep", name, jid: name) })
      until_done
      assert_equal [5, %w[holder]], [@quarantine.begun.first.size, *@quarantine.begun.drop(1)]
      assert_equal [{ done: 5 }, %w[1 2 3 4], 1], [worker.counts, @runs.keys, ended.size]
      assert_operator ended["holder"], :<, machine.now - 10
    end
    assert_match(/warn jid=holder a job holds up the others of its child; it runs anew, isolated/, lines.to_s)
  end

  def test_one_that_was_cut_short_goes_back_when_none_begins_any_more
    on("sleep") { machine.sleep(5) }
    deed = ->(jids) { worker.stop.then { %w[holder] } if jids.include?("holder") }
    with_quarantine(deed) do
      push_entry(*%w[1 holder].map { |name| entry("sleep", jid: name) }, queue: Storage::QUARANTINE)
      @strand.join
      assert_equal [{ returned: 1, done: 1 }, 1], [worker.counts, list(Storage::QUARANTINE).size]
    end
  end

  # Those whose child was ended for its sake were ended by nobody's fault.
  def test_one_that_holds_up_its_child_is_isolated
    deed = ->(jids) { { held: "holder" } if jids.include?("holder") && jids.size > 1 }
    with_quarantine(deed, queues: %w[other]) do
      died(*%w[1 2 holder 3 4].map { |name| note(name) })
      yield_slowly { @runs.size == 5 }
      until_done
      assert_equal [5, %w[1 2], %w[3 4], %w[holder]], [@quarantine.begun.first.size, *@quarantine.begun.drop(1)]
      assert_equal({ done: 5 }, worker.counts)
    end
    assert_match(/warn jobs=4 jid=holder a job holds up the others of its child, which run anew/, lines.to_s)
  end

  # As when something holds Ruby's lock: nobody knows which.
  def test_a_child_that_is_held_up_by_nobody_knows_whom
    deed = ->(jids) { { held: nil } if jids.include?("holder") && jids.size > 1 }
    with_quarantine(deed, queues: %w[other]) do
      died(*%w[1 2 holder 3 4].map { |name| note(name) })
      until_done
      yield_slowly { @runs.size == 5 }
      until_done
      assert_equal [{ done: 5 }, %w[holder]], [worker.counts, @quarantine.begun.last]
    end
  end

  def test_one_that_ends_its_process_each_time_is_dead
    with_quarantine(:die, :die, :die, queues: %w[other]) do
      died(note("poison", x: 7))
      died(note("innocent"), node: "dead:2:bb", lease: 60)
      yield_slowly { storage.stats[:dead] == 1 }
      until_done
      job = JSON.parse(dead.first)
      assert_equal ["poison", 7, "Ringspun::Jobs::Worker::Isolation::DiedError"], job.values_at("jid", "x", "error_class")
      assert_match(/the process in which it ran isolated has ended \(SIGKILL\), 3 times/, job["error_message"])
      assert_equal [{ "innocent" => 1 }, { died: 2, dead: 1, done: 1 }], [@runs, worker.counts]
      assert_equal [[:taken_over, "dead:1:aa", nil], *([[:died, worker.node, "SIGKILL"]] * 2),
                    [:dead, worker.node, job["error_message"]]],
                   (storage.history("poison").map { |event| [event.kind, event.node, event.error_message] })
      assert_equal %i[taken_over done], storage.history("innocent").map(&:kind)
    end
    assert_equal 2, lines.all.grep(/jid=poison .*died \(SIGKILL\); it runs isolated again/).size
  end

  # Nobody knows what it has done, and whoever says that it is not tried again wants no second run.
  def test_one_that_is_not_tried_again_does_not_run_in_the_quarantine
    with_quarantine(queues: %w[other]) do
      died(note("never", retry: false), note("zero", retry: 0), note("for", retry: 0, retry_for: 60), note("innocent"))
      yield_slowly { storage.stats[:dead] == 2 }
      until_done
      assert_equal [{ "innocent" => 1, "for" => 1 }, { dead: 2, done: 2 }], [@runs, worker.counts]
      jobs = dead.to_h { |text| JSON.parse(text).then { |job| [job["jid"], job.values_at("error_class", "queue")] } }
      assert_equal %w[never zero].to_h { |jid| [jid, ["Ringspun::Jobs::Worker::Isolation::DiedError", "default"]] }, jobs
      assert_match(/its process ended while it ran, by this job's fault or another's: .*retry: 0 or false/,
                   JSON.parse(dead.first)["error_message"])
      assert_equal %i[taken_over dead], storage.history("zero").map(&:kind)
    end
  end

  def test_where_no_job_is_tried_again_none_runs_in_the_quarantine
    with_quarantine(queues: %w[other], retries: 0) do
      died(note("a"), note("b", retry: 1))
      until_done
      assert_equal [{ "b" => 1 }, { dead: 1, done: 1 }], [@runs, worker.counts]
    end
  end

  # What the job says comes before the settings, and before that it is not tried again.
  def test_how_often_a_job_may_end_its_process_is_an_option
    with_quarantine(->(jids) { :die if jids.include?("poison") }, queues: %w[other], deaths: 9) do
      died(note("poison", retry: 0, ringspun_deaths: 2), note("none", ringspun_deaths: 0), note("odd", ringspun_deaths: "x"))
      yield_slowly { storage.stats[:dead] == 2 }
      until_done
      assert_equal [{ "odd" => 1 }, { died: 1, dead: 2, done: 1 }], [@runs, worker.counts]
      assert_equal 2, @quarantine.begun.count(%w[poison])
    end
  end

  # Takes it so often from the quarantine and dies.
  def lose_workers(times, isolated: false)
    times.times do |number|
      node = "dead:#{number}:aa"
      storage.extend([node], 0.5)
      fetched = storage.fetch(node, [Storage::QUARANTINE], 100)
      runs = fetched.map { |one| Storage::Begun.new(one, 1) }
      storage.begin_quarantined(node, runs)
      storage.begin_quarantined(node, runs, isolated: true) if isolated
      machine.sleep(1)
      storage.recover(100)
    end
  end

  def with_suspects(*entries)
    simulate do
      @storage = Faulty.new(Storage::Memory.new(clock: -> { machine.now }))
      push_entry(*entries, queue: Storage::QUARANTINE)
      yield
    end
    # What follows has a machine of its own, whose clock begins anew.
    storage.__getobj__.instance_variable_get(:@leases).clear
  end

  # A job that ends its worker is isolated in the end, and those who were with it are not.
  def test_the_more_workers_have_died_with_them_the_fewer_share_a_child
    { 1 => [25, 5], 2 => [3] * 10, 3 => [1] * 30, 9 => [1] * 30 }.each do |times, sizes|
      with_suspects(*(1..30).map { |number| note(number.to_s) }) { lose_workers(times) }
      with_quarantine(concurrency: 100) do
        until_done
        assert_equal [sizes, 30], [@quarantine.begun.map(&:size), worker.counts[:done]]
      end
    end
  end

  # Four poison jobs in a normal queue end four workers, each time while this one runs isolated.
  def test_the_deaths_of_workers_are_not_those_of_a_job
    with_suspects(note("report")) { lose_workers(24, isolated: true) }
    with_quarantine(:die, :die) do
      yield_slowly { @runs["report"] == 1 }
      until_done
      assert_equal({ died: 2, done: 1 }, worker.counts)
    end
  end

  def test_one_with_which_a_worker_has_died_very_often_is_dead
    with_suspects(note("a")) { lose_workers(25, isolated: true) }
    with_quarantine do
      yield_slowly { storage.stats[:dead] == 1 }
      until_done
      assert_equal ["a", "Ringspun::Jobs::Worker::Isolation::WorkerDiedError",
                    "its worker has died while it ran isolated, 25 times"],
                   JSON.parse(dead.first).values_at("jid", "error_class", "error_message")
      assert_equal [{}, [], { dead: 1 }], [@runs, @quarantine.begun, worker.counts]
    end
  end

  def test_how_often_a_worker_may_die_is_a_setting
    with_suspects(note("a")) { lose_workers(2, isolated: true) }
    with_quarantine(worker_deaths: 2) { yield_slowly { storage.stats[:dead] == 1 } }
  end

  def test_jobs_that_wait_for_a_place_go_back_at_once
    on("sleep") { machine.sleep(100_000) }
    deed = ->(jids) { :die if jids.size > 1 }
    @quarantine = ScriptedQuarantine.new(deed, places: 2)
    with_worker(timeout: 30, options: { quarantine: @quarantine }) do
      push_entry(*(1..8).map { |number| entry("sleep", jid: number.to_s) }, queue: Storage::QUARANTINE)
      yield_slowly { @quarantine.begun.count { |jids| jids.size == 1 } == 2 }
      worker.stop
      machine.sleep(1)
      assert_equal [6, 2], [list(Storage::QUARANTINE).size, worker.busy]
      @strand.join
      assert_equal [8, 0], storage.stats.values_at(:enqueued, :in_flight)
    end
  end

  def test_one_of_several_in_a_child_is_cancelled
    on("sleep") { machine.sleep(100) }
    with_quarantine do
      push_entry(entry("sleep", jid: "a"), entry("sleep", jid: "b"), queue: Storage::QUARANTINE)
      yield_slowly { worker.running.size == 2 && machine.now > 3 }
      worker.cancel("a")
      until_done
      assert_equal [[%w[a b]], { cancelled: 1, done: 1 }], [@quarantine.begun.map(&:sort), worker.counts]
    end
  end

  # Its child ends, and the other job of that child runs in another.
  def test_one_that_does_not_end_when_it_is_cancelled
    on("stubborn") { Ringspun.shield { machine.sleep(20) } }
    on("sleep") { machine.sleep(10) && @runs["b"] += 1 }
    with_quarantine do
      push_entry(entry("stubborn", jid: "a"), entry("sleep", jid: "b"), queue: Storage::QUARANTINE)
      yield_slowly { worker.running.size == 2 && machine.now > 3 }
      worker.cancel("a")
      until_done
      assert_equal [%w[a b], %w[b]], @quarantine.begun.map(&:sort)
      assert_equal [{ cancelled: 1, done: 1 }, 1], [worker.counts, @runs["b"]]
    end
  end

  def test_only_deaths_one_after_the_other_count
    with_quarantine(:die, :die, queues: %w[other]) do
      died(note("a"))
      yield_slowly { @runs["a"] == 1 }
      until_done
      assert_equal [0, 0, 0, 0], left
      @quarantine.instance_variable_get(:@deeds).push(:die, :die)
      died(note("a"), node: "dead:2:bb")
      yield_slowly { @runs["a"] == 2 }
      until_done
      assert_equal [0, 0, 0, 0], left
    end
  end

  def test_one_that_fails_isolated_is_tried_again_among_the_others
    on("fail") { |name, _| (@runs[name] += 1) == 1 && raise(IOError, "once") }
    with_quarantine(queues: %w[other]) do
      died(entry("fail", "a", jid: "a", queue: "other"), queue: "other")
      yield_slowly { storage.stats[:retries] == 1 }
      assert_equal %w[other IOError once], JSON.parse(storage.scan(:retry, 0, 1).first.entry)
        .values_at("queue", "error_class", "error_message")
      until_done
      assert_equal [{ "a" => 2 }, 1], [@runs, @quarantine.begun.size]
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
    with_quarantine do
      storage.pause(Storage::QUARANTINE)
      push_entry(note("a"), queue: Storage::QUARANTINE)
      machine.sleep(30)
      assert_equal [1, {}], [list(Storage::QUARANTINE).size, @runs]
      storage.resume(Storage::QUARANTINE)
      until_done
      assert_equal({ "a" => 1 }, @runs)
    end
  end

  def test_what_comes_when_the_quarantine_has_just_been_paused_stays_there
    with_quarantine do
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
    storage.lose(:begin_quarantined, 4)
    with_quarantine(:die, :die) do
      push_entry(note("a"), queue: Storage::QUARANTINE)
      yield_slowly { @runs["a"] == 1 }
      until_done
      assert_equal [{ "a" => 1 }, [0, 0, 0, 0]], [@runs, left]
    end
  end

  def test_one_that_is_taken_away_before_it_begins
    @storage = Faulty.new(Storage::Memory.new(clock: -> { Ringspun::Machine.current.now }))
    storage.refuse(:begin_quarantined, 3)
    with_quarantine do
      push_entry(note("a"), queue: Storage::QUARANTINE)
      yield_slowly { storage.calls[:begin_quarantined].any? }
      storage.ack(worker.node, storage.in_flight(worker.node).map { |one| Storage::Ack.new(one.queue, one.token, "a") })
      until_done
      assert_equal [[], { taken_away: 1 }], [@quarantine.begun, worker.counts]
    end
  end

  def test_when_no_process_can_be_made
    with_quarantine(Errno::EAGAIN.new, Errno::EAGAIN.new, queues: %w[other]) do
      push_entry(note("a"), queue: Storage::QUARANTINE)
      yield_slowly { @runs["a"] == 1 }
      until_done
      assert_equal [3, 1], [@quarantine.begun.size, lines.all.grep(/fork fails, and is tried again/).size]
    end
  end

  # What could not begin has not died, and what has died before is not forgotten by that.
  def test_when_no_process_can_be_made_for_one_that_has_died_before
    with_quarantine(:die, *Array.new(30) { Errno::EAGAIN.new }, :die, :die, deaths: 3, worker_deaths: 2) do
      push_entry(note("a"), queue: Storage::QUARANTINE)
      yield_slowly { storage.stats[:dead] == 1 }
      assert_equal [{ died: 2, dead: 1 }, "Ringspun::Jobs::Worker::Isolation::DiedError"],
                   [worker.counts, JSON.parse(dead.first)["error_class"]]
    end
  end

  # A start costs most.
  def test_no_more_children_begin_at_once_than_there_are_cores
    on("sleep") { machine.sleep(100) }
    began = []
    deed = ->(_) { (began << machine.now) && nil }
    with_quarantine(deed, concurrency: 1, timeout: 1) do
      push_entry(*(1..8).map { |number| entry("sleep", jid: number.to_s) }, queue: Storage::QUARANTINE)
      yield_slowly { began.size == 8 }
      assert_operator began.each_cons(3).map { |first, _, third| third - first }.min, :>=, 2
    end
  end

  # It did not run isolated from the start.
  # The next need not wait until a child is older, when its jobs only wait, which here they do after a second.
  def test_children_whose_jobs_wait_delay_no_others
    on("wait") { machine.sleep(1000) }
    seconds = []
    [false, true].each do |settles|
      @quarantine = ScriptedQuarantine.new(places: 20)
      @quarantine.settles = settles
      with_worker(concurrency: 1, timeout: 1, options: { quarantine: @quarantine }) do
        push_entry(*(1..20).map { |number| entry("wait", jid: number.to_s) }, queue: Storage::QUARANTINE)
        yield_slowly { @quarantine.begun.size == 20 }
        seconds << machine.now
      end
      @storage = nil
    end
    assert_operator seconds.first, :>, 18
    assert_operator seconds.last, :<, 13
  end

  def test_the_last_one_that_is_left_when_a_child_dies_is_not_counted
    deed = ->(jids) { { ended: %w[a] } if jids.size == 2 }
    with_quarantine(deed) do
      push_entry(note("a"), note("b"), queue: Storage::QUARANTINE)
      until_done
      assert_equal [{ done: 2 }, %w[b]], [worker.counts, @quarantine.begun.last]
    end
  end

  def test_what_was_in_flight_and_is_no_job
    with_quarantine do
      died("nonsense")
      yield_slowly { storage.stats[:dead] == 1 }
    end
    assert_equal 1, lines.all.grep(/queue=default node=dead:1:aa taken over from a dead process: back in its queue/).size
  end

  def test_what_is_no_job
    with_quarantine do
      push_entry("nonsense", queue: Storage::QUARANTINE)
      yield_slowly { storage.stats[:dead] == 1 }
      assert_empty @quarantine.begun
    end
  end

  # The worker ends, and whoever gets its job next begins the first run.
  def assert_counts_no_death
    worker.stop
    @strand.join
    assert_equal [1, { returned: 1 }], [list(Storage::QUARANTINE).size, worker.counts]
    storage.extend(["x"], 10)
    begun = storage.fetch("x", [Storage::QUARANTINE], 1).map { |fetched| Storage::Begun.new(fetched, 1) }
    assert_equal [[1, 0, 0]], storage.begin_quarantined("x", begun).map(&:to_a)
  end

  def test_who_is_stopped_counts_no_death
    on("sleep") { machine.sleep(1000) }
    with_quarantine(timeout: 1) do
      push_entry(entry("sleep", jid: "a"), queue: Storage::QUARANTINE)
      yield_slowly { @quarantine.begun.any? }
      assert_counts_no_death
    end
  end

  def test_a_signal_that_all_get_counts_no_death
    with_quarantine(:told) do
      push_entry(note("a"), queue: Storage::QUARANTINE)
      yield_slowly { @quarantine.begun.any? }
      machine.sleep(1.1) # it has ended, and this process has not heard of the signal yet
      assert_counts_no_death
    end
  end

  def test_one_that_is_told_to_end_and_no_other_has_died
    with_quarantine(:told, :told, :told) do
      push_entry(note("a"), queue: Storage::QUARANTINE)
      yield_slowly { storage.stats[:dead] == 1 }
      assert_equal({ died: 2, dead: 1 }, worker.counts)
    end
  end

  def test_one_that_runs_isolated_is_cancelled
    on("sleep") { machine.sleep(1000) }
    with_quarantine do
      push_entry(entry("sleep", jid: "a"), queue: Storage::QUARANTINE)
      yield_slowly { worker.running.any? }
      worker.cancel("a")
      until_done
      assert_equal({ cancelled: 1 }, worker.counts)
    end
  end

  def test_one_that_is_cancelled_before_it_begins
    with_quarantine do
      yield_slowly { processor }
      processor.define_singleton_method(:start_quarantined) { |fetched| super(fetched).tap { cancel("first") } }
      push_entry(note("first"), note("second"), queue: Storage::QUARANTINE)
      until_done
      assert_equal [{ "second" => 1 }, { cancelled: 1, done: 1 }], [@runs, worker.counts]
    end
  end

  def test_others_run_beside_it
    on("sleep") { machine.sleep(1000) }
    with_quarantine(timeout: 1) do
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
