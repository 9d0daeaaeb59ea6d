# frozen_string_literal: true

require "jobs_helper"
require_relative "../support/scripted_quarantine"
require_relative "../support/worked"

# rubies: one

# Many jobs of all kinds, a storage on which anything fails at any time, workers that come and end: by seeds, so that what one
# finds can be run again. SEEDS=1000 looks further, SEED=7 at one.
class WorkerStormTest < Minitest::Test
  include AnyBackend
  include Worked

  JOBS = 60
  FAULTY_VERBS = %i[fetch wait_any ack fail in_flight due recover extend signals announce trim_dead
                    begin_quarantined].freeze

  def seeds = ENV["SEED"] ? [Integer(ENV["SEED"])] : (1..Integer(ENV.fetch("SEEDS", 30)))

  def storm(seed, faults:)
    @random = Random.new(seed)
    @ran = Hash.new(0)
    @ended = Hash.new(0)
    define_jobs
    Ringspun::Simulation.run(seed: seed, faults: faults) do
      @storage = Faulty.new(Storage::Memory.new(clock: -> { machine.now }))
      yield
    end
  end

  def define_jobs
    on("sleep") do |name, seconds, _|
      @ran[name] += 1
      machine.sleep(seconds)
      @ended[name] += 1
    end
    on("fail") do |name, times, _|
      @ran[name] += 1
      raise "not yet" if @ran[name] <= times

      @ended[name] += 1
    end
    on("snooze") do |name, seconds, job|
      @ran[name] += 1
      job.snooze(seconds) if @ran[name] == 1
      @ended[name] += 1
    end
  end

  def push_some
    JOBS.times do |name|
      queue = %w[default other narrow].sample(random: @random)
      job = [["sleep", name, @random.rand(5.0)], ["fail", name, @random.rand(3)], ["snooze", name, @random.rand(20.0)]]
        .sample(random: @random)
      text = entry(*job, queue: queue, jid: name.to_s)
      storage.push([Storage::Push.new(queue: queue, entry: text, delay: (@random.rand(10.0) if @random.rand < 0.2))])
      machine.sleep(@random.rand(0.5)) if @random.rand < 0.3
    end
  end

  def strike
    verb = FAULTY_VERBS.sample(random: @random)
    case @random.rand(4)
    when 0 then storage.refuse(verb, 1 + @random.rand(4))
    when 1 then storage.refuse(verb, 1 + @random.rand(4), Jobs::StorageError.new("refused"))
    when 2 then storage.lose(verb, 1 + @random.rand(2))
    else storage.slow(verb, @random.rand(4.0))
    end
  end

  # Some workers, one after the other. The last one has to end what is there: what it forgets, or gives no place, stays for good.
  def work_in_turns(striking:)
    pusher = machine.spin { push_some }
    @random.rand(4).times do
      with_one(striking) { machine.sleep(@random.rand(20.0)) }
    end
    with_one(striking) do |striker|
      machine.sleep(@random.rand(60.0))
      machine.terminate(striker) if striker
      storage.mend
      pusher.join
      yield_slowly { storage.stats.values_at(:enqueued, :in_flight, :scheduled, :retries).sum.zero? && worker.busy.zero? }
      storage.mend
    end
  end

  def with_one(striking)
    @worker = new_worker(concurrency: 1 + @random.rand(20), queues: %w[default other narrow], limits: { "narrow" => 2 },
                         timeout: 0.01 + @random.rand(8.0), options: { quarantine: children })
    strand = machine.spin { worker.run }
    striker = machine.spin { loop { machine.sleep(@random.rand(2.0)) && strike } } if striking
    yield striker
    machine.terminate(striker) if striker
    striking ? end_somehow(strand) : worker.stop
    begin
      strand.join
    rescue Ringspun::TerminatedError
      nil
    end
  end

  def end_somehow(strand)
    storage.mend if @random.rand < 0.5
    storage.refuse(:leave) if @random.rand < 0.3
    @random.rand < 0.7 ? worker.stop : machine.terminate(strand)
  end

  # Of children that several share some die, and some are held up by one of them. One that is isolated would be dead by chance.
  def children
    ScriptedQuarantine.new(lambda { |jids|
      [:die, { held: jids.first }, { held: nil }, nil, nil].sample(random: @random) if jids.size > 1
    }, places: 2 + @random.rand(4))
  end

  def assert_all_ran(seed)
    assert_equal (0...JOBS).to_a, @ended.keys.sort, "seed #{seed}"
    assert_equal [0, 0], storage.stats.values_at(:dead, :in_flight), "seed #{seed}"
  end

  def test_no_job_is_lost_whatever_fails
    seeds.each do |seed|
      storm(seed, faults: true) do
        work_in_turns(striking: true)
        assert_all_ran(seed)
      end
    end
  end

  # Where nothing fails, each job has ended once, however often workers were stopped.
  def test_no_job_ends_twice_where_nothing_fails
    seeds.each do |seed|
      storm(seed, faults: true) do
        work_in_turns(striking: false)
        assert_all_ran(seed)
        assert_equal [1], @ended.values.uniq, "seed #{seed}: #{@ended}"
      end
    end
  end
end
