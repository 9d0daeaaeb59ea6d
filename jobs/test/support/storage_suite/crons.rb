# frozen_string_literal: true

module StorageSuite
  # The ticks of a schedule: which of them are pushed, and which entries there are.
  module Crons
    # Far from now, where a clock that goes on during a test changes nothing.
    HOUR = 3600.0

    def cron(name, schedule: "daily", text: "{}") = Storage::Cron.new(name:, schedule:, text:)

    def define(*names, source: "shop", **) = storage.cron_define(source, names.map { |name| cron(name) }, **)

    def names = storage.crons.map(&:name)

    def the_cron(name = "nightly") = storage.crons.find { |one| one.name == name }

    # Ticks are in the future here, for an entry that is new has now as its last one.
    def tick(name, tick, jid = "job", **) = storage.cron_push(name, tick, push_of(jid, **))

    def test_a_new_entry_begins_now
      before = storage.time
      now, ticks = define("nightly", "weekly")
      assert_operator before, :<=, now
      assert_in_delta now, ticks.first, 0.001
      assert_equal [%w[nightly weekly], "shop", "daily", "{}", false, []],
                   [names, *the_cron.to_a.values_at(1, 2, 3, 6, 7)]
      assert_in_delta now, the_cron.seen, 0.001
      assert_equal ticks, define("nightly", "weekly").last
    end

    def test_a_tick_is_pushed_once
      now, = define("nightly")
      assert_equal :pushed, tick("nightly", now + 5, "a")
      assert_equal %i[passed passed passed], [5, 4.5, 0].map { |seconds| tick("nightly", now + seconds, "b") }
      assert_equal :pushed, tick("nightly", now + 6, "c")
      assert_equal %w[a c], jids(fetch)
      assert_in_delta now + 6, define("nightly").last.first, 0.001
      runs = the_cron.runs
      assert_equal %w[c a], runs.map(&:jid)
      runs.zip([6, 5]) { |run, seconds| assert_in_delta now + seconds, run.tick, 0.001 }
      runs.each { |run| assert_in_delta now, run.at, 60 }
    end

    def test_of_two_who_push_a_tick_one_does
      now, = define("nightly")
      answers = Ringspun.run do
        Array.new(5) { |number| machine.spin { tick("nightly", now + 5, "j#{number}") } }.map(&:await)
      end
      assert_equal [1, 4], [answers.count(:pushed), answers.count(:passed)]
      assert_equal 1, fetch.size
    end

    def test_an_entry_that_nobody_has_defined_pushes_nothing
      assert_equal [:unknown, :unknown, nil], [tick("nightly", 5), tick("nightly", nil), storage.cron_pause("nightly", true)]
      assert_equal [[], []], [fetch, storage.crons]
    end

    def test_an_entry_is_paused_and_goes_on
      now, = define("nightly", "weekly")
      assert_equal [true, false, nil], %w[nightly nightly nobody].map { |name| storage.cron_pause(name, true) }
      assert_equal [true, false], storage.crons.map(&:paused)
      assert_equal %i[paused pushed pushed], [tick("nightly", now + 5), tick("weekly", now + 5, "w"), tick("nightly", nil, "n")]
      define("nightly", "weekly")
      assert_equal [true, false], storage.crons.map(&:paused)
      assert_equal [true, false], [false, false].map { |paused| storage.cron_pause("nightly", paused) }
      assert_equal [:pushed, %w[w n later]], [tick("nightly", now + 5, "later"), jids(fetch)]
    end

    def test_a_run_by_hand_is_no_tick
      now, = define("nightly")
      assert_equal %i[pushed pushed pushed], [tick("nightly", nil, "a"), tick("nightly", nil, "b"), tick("nightly", now + 1, "c")]
      assert_equal [%w[c b a], [nil, nil]], [the_cron.runs.map(&:jid), the_cron.runs.last(2).map(&:tick)]
    end

    def test_a_tick_may_pass_without_a_job
      now, = define("nightly")
      assert_equal :pushed, storage.cron_push("nightly", now + 1, nil)
      storage.lock("t", "other", 60)
      assert_equal :held, tick("nightly", now + 2, "a", lock: "t", lock_seconds: 60)
      assert_equal [:passed, [nil, nil], []], [tick("nightly", now + 2), the_cron.runs.map(&:jid), fetch]
    end

    def test_the_job_is_stored_as_any_other
      now, = define("nightly")
      job = Storage::Push.new(queue: "mail", entry: entry("p", queue: "mail").sub("{", '{"ringspun_priority":-5,'), jid: "p",
                              priority: -5)
      push("q", queue: "mail")
      assert_equal :pushed, storage.cron_push("nightly", now + 1, job)
      assert_equal %w[p q], jids(fetch(queues: ["mail"]))
      assert_equal :pushed, tick("nightly", now + 2, "u", lock: "t", lock_seconds: 60)
      assert_equal "u", storage.lock("t", "nobody", 60)
    end

    def test_so_many_runs_are_kept
      now, = define("nightly")
      most = Storage::CRON_RUNS_MAX
      (most + 3).times { |number| tick("nightly", now + number + 1, "j#{number}") }
      assert_equal [most, "j#{most + 2}", "j3"], [the_cron.runs.size, the_cron.runs.first.jid, the_cron.runs.last.jid]
    end

    # Missed are only ticks of what an entry is now.
    def test_another_schedule_begins_now
      now, = define("nightly")
      tick("nightly", now + HOUR)
      assert_in_delta now + HOUR, storage.cron_define("shop", [cron("nightly", text: "new")]).last.first, 0.001
      later = storage.cron_define("shop", [cron("nightly", schedule: "hourly")])
      assert_in_delta later.first, later.last.first, 0.001
      assert_equal %w[hourly {}], [the_cron.schedule, the_cron.text]
      assert_equal 1, the_cron.runs.size
    end

    # A worker of before a deploy must not turn back what the new one has said.
    def test_who_is_not_fresh_leaves_what_is_there
      define("nightly")
      storage.cron_define("shop", [cron("nightly", schedule: "hourly", text: "new"), cron("more")], fresh: false)
      assert_equal [%w[more nightly], "daily", "{}"], [names, the_cron.schedule, the_cron.text]
    end

    def test_a_tick_far_ahead_was_of_a_wrong_clock
      now, = define("nightly", "weekly")
      tick("nightly", now + (2 * Storage::CRON_AHEAD_SECONDS))
      tick("weekly", now + HOUR)
      again, ticks = define("nightly", "weekly", fresh: false)
      assert_in_delta again, ticks.first, 0.001
      assert_in_delta now + HOUR, ticks.last, 0.001
    end

    def test_what_a_program_has_no_more_is_forgotten_once_no_worker_has_it
      define("nightly", "weekly")
      tick("nightly", storage.time + 1)
      define("weekly")
      assert_equal %w[nightly weekly], names
      define("weekly", stale: 0)
      assert_equal %w[weekly], names
      now, ticks = define("nightly", "weekly")
      assert_in_delta now, ticks.first, 0.5
      assert_empty the_cron.runs
    end

    def test_what_other_programs_have_stays
      define("nightly")
      define("weekly", source: "blog")
      define(source: "shop", stale: 0)
      assert_equal %w[weekly], names
    end

    # Unless that one is gone.
    def test_a_name_that_another_program_has_stays_that_ones
      define("nightly")
      _, ticks = define("nightly", "weekly", source: "blog")
      assert_equal [nil, "shop"], [ticks.first, the_cron.source]
      assert_operator ticks.last, :>, 0
      now, = define("nightly")
      tick("nightly", now + HOUR)
      _, ticks = define("nightly", source: "blog", stale: 0)
      assert_in_delta now + HOUR, ticks.first, 0.001
      assert_equal "blog", the_cron.source
    end

    def test_names_and_texts_come_out_as_they_went_in
      name = "ä: \"runs\":entry 1"
      storage.cron_define("ß", [cron(name, schedule: "日本", text: '{"a":["ü"]}')])
      assert_equal [name, "ß", "日本", '{"a":["ü"]}'], storage.crons.first.to_a.first(4)
      assert_equal [:pushed, true], [tick(name, nil), storage.cron_pause(name, true)]
      assert_empty define(source: "none", stale: 0).last
      assert_equal [name], names
    end
  end
end
