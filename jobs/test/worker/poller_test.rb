# frozen_string_literal: true

require "jobs_helper"
require_relative "../support/worked"

# When jobs that are due come into their queues.
class WorkerPollerTest < Minitest::Test
  include AnyBackend
  include Worked

  LATE = 0.02

  class Soon < Task
    retry_in { 0.2 }
  end

  # Jobs that note how late they run.
  def define_note
    @late = []
    on("note") { |at, _| @late << (machine.now - at) }
  end

  def push_due(delay) = storage.push([Storage::Push.new(queue: "default", entry: entry("note", machine.now + delay), delay:)])

  def test_a_job_that_is_stored_while_nothing_is_due_runs_in_time
    define_note
    with_worker do
      machine.sleep(10)
      [0.3, 0.2, 1, 3.5, 0.01, 8, 60].each { |delay| push_due(delay) && machine.sleep(0.02) }
      until_done
      assert_equal 7, @late.size
      assert_operator @late.max, :<, LATE
    end
  end

  def test_a_retry_that_is_asked_for_soon_comes_soon
    times = []
    on("flaky") { times << machine.now && times.size < 4 && raise("not yet") }
    with_worker do
      machine.sleep(10)
      push_entry(entry("flaky").sub("Worked::Task", "WorkerPollerTest::Soon"))
      until_done
      assert_equal 4, times.size
      times.each_cons(2) { |one, other| assert_in_delta 0.2, other - one, LATE }
    end
  end

  # From when a job is due until it begins: one look moves it into its queue, and the wait that lies at the queue brings it. No
  # poll is between them and no second look, so it comes as late as these answers take.
  def test_the_way_of_a_job_that_is_due
    times, calls = note_calls(:due, :fetch)
    on("flaky") { calls << :runs && times << machine.now && times.size < 26 && raise("not yet") }
    with_worker do
      machine.sleep(10)
      push_entry(entry("flaky").sub("Worked::Task", "WorkerPollerTest::Soon"))
      until_done
    end
    assert_equal 26, times.size
    late = times.each_cons(2).map { |one, other| other - one - 0.2 }
    assert_operator late.max, :<, 0.000_5
    assert_equal [[:runs, :due, :due]], calls.slice_before(:runs).to_a[1..-2].uniq, "one finds when it is due, one moves it"
  end

  # @return [Array(Array, Array)] the second has the names of these verbs, as they are called
  def note_calls(*verbs)
    calls = []
    memory = Storage::Memory.new(clock: -> { machine.now })
    verbs.each do |verb|
      memory.define_singleton_method(verb) { |*all, **options| calls << verb && super(*all, **options) }
    end
    @storage = Faulty.new(memory)
    [[], calls]
  end

  # Other clients tell nobody.
  def test_what_nobody_was_told_of_comes_with_the_next_look
    define_note
    with_worker do
      machine.sleep(10)
      push_due(0.1)
      storage.__getobj__.instance_variable_set(:@due_unheard, false)
      until_done
      assert_operator @late.max, :<, Storage::POLL_SECONDS + 0.5
    end
  end

  # Of many that sleep until the next is due one wakes then, and the others when they would look in any case.
  def test_one_of_many_wakes
    define_note
    looks = []
    simulate do
      @storage = Faulty.new(Storage::Memory.new(clock: -> { machine.now }))
      memory = storage
      memory.define_singleton_method(:due) { |*all, **options| looks << Ringspun::Machine.current.now && super(*all, **options) }
      workers = Array.new(40) do |number|
        config = Jobs::Config.new.update({ concurrency: 1 })
        Jobs::Worker.new(config, storage: memory, logger: lines, random: Random.new(number))
      end
      strands = workers.map { |one| machine.spin { one.run } }
      push_due(30)
      at = machine.now + 30
      yield_slowly { @late.size == 1 }
      assert_operator @late.first, :<, LATE
      assert_operator looks.count { |time| (time - at).abs < 0.01 }, :<=, 3, "few look at once"
      before = looks.size
      push_due(1)
      machine.sleep(0.1)
      assert_operator looks.size - before, :<=, 5, "few are told"
      yield_slowly { @late.size == 2 }
      assert_operator @late.last, :<, LATE
      workers.each(&:stop)
      strands.each(&:join)
    end
  end

  # The one that was to wake is gone.
  def test_another_one_wakes_in_the_end
    define_note
    with_worker do
      storage.due(1, by: "dead:1:aa")
      push_due(1)
      storage.due(1, by: "dead:1:aa")
      until_done
      assert_operator @late.max, :<, Storage::POLL_SECONDS + 0.5
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
end
