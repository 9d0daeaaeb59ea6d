# frozen_string_literal: true

require "jobs_helper"
require_relative "../support/scripted_quarantine"
require_relative "../support/worked"

# The limit of a queue in workers of which one loses its storage for longer than its lease.
class WorkerLimitsTest < Minitest::Test
  include AnyBackend
  include Worked

  SETTINGS = { limits: { "default" => 1 }, concurrency: 5 }.freeze

  def setup
    super
    @now = Hash.new(0) # jid => how many run
    @most = 0
    @runs = []
    @cancelled = []
  end

  # Runs until the test lets it go.
  def define_hold
    @gates = Hash.new { |all, name| all[name] = Ringspun::Queue.new }
    on("hold") do |name, _|
      @runs << name
      @now[name] += 1
      @most = [@most, @now.each_value.sum].max
      @gates[name].pop
    rescue Ringspun::Cancelled
      @cancelled << name
      raise
    ensure
      @now[name] -= 1
    end
  end

  def push_holds(*names, **) = names.each { |name| push("hold", name, jid: name, **) }

  # Two workers over one storage, each with its own way to it.
  def with_two(**settings)
    define_hold
    simulate do
      @memory = Storage::Memory.new(clock: -> { machine.now })
      @ways = Array.new(2) { Faulty.new(@memory) }
      @storage = @ways.first
      @workers = @ways.map do |way|
        config = Jobs::Config.new.update({ **SETTINGS, **settings })
        quarantine = ScriptedQuarantine.new
        Jobs::Worker.new(config, storage: way, logger: lines, random: Random.new(1), quarantine: quarantine)
      end
      @first = machine.spin { @workers.first.run }
      yield
      @ways.each(&:mend)
      @gates.each_value(&:close)
      @workers.each(&:stop)
      [@first, @second].each { |strand| strand&.join }
    end
  end

  def start_second = @second = machine.spin { @workers.last.run }

  def cut_off = Faulty::VERBS.each { |verb| @ways.first.refuse(verb, 1_000_000) }

  def test_one_that_has_lost_its_storage_is_cancelled_when_it_is_back
    with_two do
      push_holds("a", "b", "c")
      yield_slowly { @runs == %w[a] }
      start_second
      machine.sleep(5)
      assert_equal %w[a], @runs, "the place is taken"
      cut_off
      yield_slowly { @runs == %w[a a] }
      assert_equal({ "a" => 2 }, @now, "one beside the old run")
      machine.sleep(40)
      assert_equal %w[a a], @runs, "and no third"
      @ways.first.mend
      yield_slowly { @cancelled == %w[a] }
      assert_equal({ "a" => 1 }, @now)
      yield_slowly { @memory.stats[:twice] == 1 }
      2.times { @gates["a"].push(:go) } # the first wakes nobody any more, if it was the old run's
      yield_slowly { @runs == %w[a a b] }
      assert_equal 2, @most
    end
    assert_match(/jid=a .*taken away while it runs: it ends here/, lines.to_s)
    assert_match(/jid=a .*taken away: others have run it, or will/, lines.to_s)
  end

  # The one in the quarantine ends first; the next runs beside the old run, and there is never a third.
  def test_the_next_runs_beside_the_old_run
    with_two do
      push_holds("a", "b", "c")
      yield_slowly { @runs == %w[a] }
      old = @gates.delete("a")
      start_second
      cut_off
      yield_slowly { @runs == %w[a a] }
      @gates["a"].push(:go)
      yield_slowly { @runs == %w[a a b] }
      machine.sleep(20)
      assert_equal [2, 2], [@most, @now.each_value.sum]
      old.close
    end
  end

  # Its place is the quarantine's, although the queue always has jobs.
  def test_a_suspect_waits_for_its_place
    with_two do
      push_holds("a")
      yield_slowly { @runs == %w[a] }
      died(entry("hold", "x", jid: "x"), queue: Storage::QUARANTINE, lease: 1)
      push_holds("b")
      yield_slowly { @memory.in_flight(@workers.first.node).any? { |one| one.queue == Storage::QUARANTINE } }
      machine.sleep(10)
      assert_equal %w[a], @runs
      @gates["a"].push(:go)
      yield_slowly { @runs.size == 2 }
      assert_equal %w[a x], @runs
      @gates["x"].push(:go)
      yield_slowly { @runs == %w[a x b] }
      assert_equal 1, @most
    end
  end

  def test_a_suspect_that_waits_for_its_place_goes_back_when_the_worker_ends
    with_two(timeout: 1) do
      push_holds("a")
      yield_slowly { @runs == %w[a] }
      push_entry(entry("hold", "x", jid: "x"), queue: Storage::QUARANTINE)
      yield_slowly { @memory.in_flight(@workers.first.node).size == 2 }
      machine.sleep(2)
      @workers.first.stop
      @first.join
      assert_equal [%w[a], 1, 1], [@runs, @memory.list("default", 0, 9).size, @memory.list(Storage::QUARANTINE, 0, 9).size]
      assert_equal 0, @memory.stats[:in_flight]
    end
  end

  # As a child of a supervisor does, whose lease is extended by that.
  def test_what_runs_in_a_child_of_the_quarantine_ends_as_well
    with_two do
      push_entry(entry("hold", "x", jid: "x"), queue: Storage::QUARANTINE)
      yield_slowly { @runs == %w[x] }
      cut_off
      start_second
      yield_slowly { @runs == %w[x x] }
      @ways.first.mend
      yield_slowly { @cancelled == %w[x] }
      assert_equal({ "x" => 1 }, @now)
      yield_slowly { @memory.stats[:twice] == 1 }
    end
  end
end
