# frozen_string_literal: true

require "jobs_helper"
require_relative "../support/client_storage"
require_relative "../support/worked"

# Jobs that come by a schedule, on a clock that jumps.
class WorkerTickerTest < Minitest::Test
  include AnyBackend
  include Worked
  include ClientStorage

  MINUTE = { "schedule" => "every minute", "class" => "Worked::Task", "args" => ["note"] }.freeze
  HOUR = { **MINUTE, "schedule" => "every hour" }.freeze
  DAY = 86_400

  def setup
    super
    @ran = []
    @offset = 0
    on("note") { |*| @ran << machine.now }
  end

  # Its clock is the machine's, and may be set.
  def new_storage = Faulty.new(Storage::Memory.new(clock: -> { machine.now + @offset }))

  def working(cron, **, &)
    simulate do
      @storage = new_storage
      run_worker(cron, **, &)
    end
  end

  # Within a machine.
  def run_worker(cron, **)
    worker = new_worker(cron:, **)
    strand = machine.spin { worker.run }
    yield worker
  ensure
    worker.stop
    strand.join
  end

  # Until the next whole hour and a half.
  def sleep_to_half_past = machine.sleep(3600 - (now % 3600) + 1800)

  def now = machine.now + @offset

  def the_cron(name = "a") = storage.crons.find { |one| one.name == name }

  def ticks(name = "a") = the_cron(name).runs.map(&:tick).reverse

  def minutes(ticks) = ticks.each_cons(2).map { |one, other| ((other - one) / 60).round }

  def test_a_job_runs_at_each_tick
    working({ "a" => MINUTE }) do
      began = machine.now
      machine.sleep(300)
      assert_equal 5, @ran.size
      first = (began / 60).floor * 60
      @ran.each_with_index { |at, index| assert_in_delta first + (60 * (index + 1)), at, 0.1 }
      assert_equal [1] * 4, minutes(ticks)
    end
    assert_match(/cron: enqueued/, lines.to_s)
  end

  # Every worker ticks, in whichever order.
  def test_of_many_workers_one_pushes_a_tick
    simulate do
      @storage = new_storage
      workers = Array.new(8) do |number|
        config = Jobs::Config.new.update({ concurrency: 1, cron: { "a" => MINUTE, "b" => MINUTE } })
        Jobs::Worker.new(config, storage: storage, logger: lines, random: Random.new(number))
      end
      strands = workers.map { |one| machine.spin { one.run } }
      machine.sleep(601)
      assert_equal 20, @ran.size
      assert_equal [1] * 9, minutes(ticks)
      workers.each(&:stop)
      strands.each(&:join)
    end
  end

  # --- what was missed ---

  # A worker, a pause in which none runs, and another worker: how many jobs come by which ticks.
  def after_a_pause(seconds, **fields)
    simulate do
      @storage = new_storage
      run_worker({ "a" => { **HOUR, **fields.transform_keys(&:to_s) } }) { sleep_to_half_past }
      @ran.clear
      @last = the_cron.tick
      machine.sleep(seconds)
      run_worker({ "a" => { **HOUR, **fields.transform_keys(&:to_s) } }) { machine.sleep(5) }
    end
    @ran.size
  end

  def test_after_a_day_the_last_is_made_up_for_unless_told
    assert_equal 1, after_a_pause(DAY)
    assert_equal [@last + DAY], ticks.last(1)
    assert_match(/warn .*ticks were missed, and the last one is made up for/, lines.to_s)
  end

  def test_after_a_day_none_is_made_up_for_by_skip
    assert_equal 0, after_a_pause(DAY, catch_up: "skip")
    assert_equal 1, lines.all.grep(/ticks were missed, and none is made up for/).size
  end

  def test_after_a_day_all_are_made_up_for
    assert_equal 24, after_a_pause(DAY, catch_up: "all")
    refute_match(/missed/, lines.to_s)
  end

  def test_all_are_so_many_at_most
    assert_equal 100, after_a_pause(10 * DAY, catch_up: "all")
    assert_match(/ticks were missed, and the last 100 are made up for/, lines.to_s)
  end

  # A worker may be told late.
  def test_a_tick_that_is_half_a_minute_late_is_not_missed
    simulate do
      @storage = new_storage
      skip = { "a" => { **HOUR, "catch_up" => "skip" } }
      run_worker(skip) { machine.sleep(1) }
      machine.sleep(3600 - (now % 3600) + 30)
      run_worker(skip) { machine.sleep(1) }
    end
    assert_equal 1, @ran.size
    refute_match(/missed/, lines.to_s)
  end

  def test_a_new_entry_has_missed_nothing
    working({ "a" => { **HOUR, "catch_up" => "all" } }) { machine.sleep(1) }
    assert_empty @ran
  end

  # --- a clock that is set ---

  def test_a_clock_that_is_put_forward_by_an_hour
    working({ "a" => MINUTE }) do
      machine.sleep(130)
      @ran.clear
      @offset = 3600
      machine.sleep(31) # from round to round
      assert_equal 1, @ran.size
      machine.sleep(120)
      assert_equal 3, @ran.size
      assert_operator ticks.last(3).first - ticks.first, :>, 3500
    end
  end

  # What was pushed does not come again.
  def test_a_clock_that_is_put_back_by_an_hour
    working({ "a" => MINUTE }) do
      machine.sleep(130)
      last = the_cron.tick
      @ran.clear
      @offset = -3600
      machine.sleep(3500)
      assert_empty @ran
      machine.sleep(300)
      assert_includes 2..4, @ran.size
      assert_equal ticks, ticks.uniq
      assert_operator the_cron.tick, :>, last
    end
  end

  def test_a_clock_that_was_years_ahead
    working({ "a" => MINUTE }) do
      @offset = 1000 * DAY
      machine.sleep(61)
      @offset = 0
      @ran.clear
      machine.sleep(150)
      assert_includes 1..2, @ran.size
    end
  end

  # --- trouble ---

  def test_a_push_that_fails_is_told_and_tried_again
    working({ "a" => MINUTE, "b" => MINUTE }) do
      machine.sleep(1)
      storage.refuse(:cron_push, 6, Jobs::StorageError.new("full")) { |name, *| name == "a" }
      machine.sleep(60)
      yield_slowly { @ran.size == 2 }
      assert_operator @ran.last - @ran.first, :>, 2
    end
    assert_match(/error .*cron entry a fails, and is tried again: full/, lines.to_s)
  end

  def test_a_push_whose_answer_is_lost_is_pushed_once
    working({ "a" => MINUTE }) do
      storage.lose(:cron_push, 2)
      machine.sleep(121)
      assert_equal 2, @ran.size
    end
  end

  def test_the_storage_may_be_away_at_first
    simulate do
      @storage = new_storage
      storage.refuse(:cron_define, 3)
      run_worker({ "a" => MINUTE }) { machine.sleep(100) }
    end
    refute_empty @ran
    assert_match(/the storage is away/, lines.to_s)
  end

  def test_an_entry_that_cannot_be_made_does_not_hold_up_the_others
    nobody = { **MINUTE, "class" => "Nobody", "queue" => "other" }
    working({ "a" => { **MINUTE, "class" => "String" }, "b" => MINUTE, "c" => nobody }) do
      machine.sleep(61)
      assert_equal [1, 1], [@ran.size, list("other").size]
    end
    assert_match(/cron entry a fails, and is tried again: String does not include Ringspun::Jobs::Job/, lines.to_s)
    assert_match(/warn .*this program has no class Nobody: jobs of the cron entry are enqueued by its name/, lines.to_s)
  end

  def test_another_job_holds_the_lock
    on("long") { |*| machine.sleep(150) }
    working({ "a" => { **MINUTE, "args" => ["long"], "unique_for" => 600 } }) { machine.sleep(200) }
    assert_match(/cron: not enqueued, for another job holds its lock/, lines.to_s)
    assert_includes the_cron.runs.map(&:jid), nil
  end

  # The program has set both while it runs.
  def test_a_name_that_is_twice_is_told_and_the_worker_goes_on
    working({ "a" => MINUTE }) do
      machine.sleep(1)
      config.instance_variable_set(:@coded_crons, config.cron)
      on("other") { |*| @ran << :other }
      push("other")
      machine.sleep(61)
      assert_equal [:other], @ran
    end
    assert_match(/cron fails, and is tried again: the cron entry a is in the setting cron, and the program adds it/, lines.to_s)
  end

  # --- pauses, and runs by hand ---

  def test_a_paused_entry_pushes_nothing_and_then_what_it_has_missed
    working({ "a" => { **MINUTE, "schedule" => "every 10 minutes" } }) do
      machine.sleep(600 - (now % 600) + 300)
      storage.cron_pause("a", true)
      @ran.clear
      machine.sleep(3 * 600)
      assert_empty @ran
      storage.cron_pause("a", false)
      machine.sleep(31)
      assert_equal 1, @ran.size
    end
  end

  # --- what changes while it runs ---

  def test_the_schedule_changes_while_it_runs
    working({ "a" => MINUTE, "b" => MINUTE }) do |worker|
      machine.sleep(61)
      config.reload_cron({ "b" => { **MINUTE, "schedule" => "every 2 minutes" }, "c" => MINUTE })
      worker.look_at_schedule
      @ran.clear
      machine.sleep(120)
      assert_equal 3, @ran.size
      machine.sleep(Storage::CRON_STALE_SECONDS)
      assert_equal %w[b c], storage.crons.map(&:name)
      config.reload_cron({})
      machine.sleep(5000)
      assert_empty storage.crons
    end
  end

  # An older worker still has what the newer one has no more, until it ends.
  def test_in_a_deploy_each_worker_ticks_what_it_has
    simulate do
      @storage = new_storage
      run_worker({ "a" => HOUR, "b" => HOUR }) do
        machine.sleep(10)
        run_worker({ "b" => HOUR, "c" => HOUR }) do
          sleep_to_half_past
          assert_equal %w[a b c], storage.crons.map(&:name)
          assert_equal [1, 1, 1], %w[a b c].map { |name| ticks(name).size }
        end
      end
      run_worker({ "b" => HOUR, "c" => HOUR }) { machine.sleep(400) }
      assert_equal %w[b c], storage.crons.map(&:name)
    end
  end

  def test_two_programs_beside_each_other
    simulate do
      @storage = new_storage
      run_worker({ "a" => HOUR, "b" => HOUR }, tag: "shop") do
        machine.sleep(10)
        run_worker({ "b" => HOUR, "c" => HOUR }, tag: "blog") do
          sleep_to_half_past
          machine.sleep(600)
        end
      end
    end
    assert_equal %w[a b c], storage.crons.map(&:name)
    assert_equal %w[shop shop blog], storage.crons.map(&:source)
    assert_equal 3, @ran.size
    assert_equal 1, lines.all.grep(/another program has a cron entry of that name .*name=b|name=b .*another program has/).size
  end

  def test_without_entries_it_asks_for_nothing
    working({}) do
      machine.sleep(200)
      assert_empty storage.calls[:cron_define]
    end
  end
end
