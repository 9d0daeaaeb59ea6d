# frozen_string_literal: true

require "jobs_helper"
require "support/scripted_quarantine"
require "support/worked"

# rubies: one

# The fault run over the storage in memory. A seed decides what goes wrong, so a run can be run again: SEED=7 is that one,
# SEEDS=1000 looks further.
#
# What it cannot have: all is in one process and on one thread, so nobody dies by a SIGKILL, and a storage in memory would not
# survive it. Dead is here whose lease has run out, a worker that the storage refuses for longer than that. Nobody dies when the
# storage's clock jumps, as it does when the process was stopped. Children of the quarantine are scripted, and die before they run
# anything; only the processes that jobs fork are real. The clock is simulated, so that jobs of minutes are jobs of minutes, with
# the lease as it is by itself.
class MemoryFaultRunTest < Minitest::Test
  include AnyBackend
  include Worked

  WORKERS = 3
  SECONDS = 900
  QUEUES = %w[default other narrow].freeze

  # How often each fault comes, beside the others.
  FAULTS = { stop_worker: 12, terminate_worker: 12, hurry_worker: 4, cut_off: 12, strike: 50, jump: 10 }.freeze

  # One worker, with its own way to the storage that all share.
  Member = Struct.new(:storage, :worker, :strand)

  # A job that was pushed: how often it has begun, ended, and heard that somebody has cancelled it.
  Note = Struct.new(:kind, :begun, :ended, :cancelled)

  def seeds = ENV["SEED"] ? [Integer(ENV["SEED"])] : (1..Integer(ENV.fetch("SEEDS", 4)))

  def test_no_job_is_lost_and_none_ends_twice_without_a_death
    run_all("with deaths", FAULTS, Faulty::VERBS - %i[leave])
  end

  # Leases are extended in time here, so nothing excuses a job that ends twice.
  def test_no_job_ends_twice_where_nobody_dies
    run_all("without deaths", FAULTS.except(:cut_off), Faulty::VERBS - %i[leave extend])
    assert_equal [0, 0], @total.values_at("jobs taken over", "ended twice")
  end

  private

  def run_all(what, faults, verbs)
    @faults = faults
    @verbs = verbs
    @total = Hash.new(0)
    seeds.each do |seed|
      Supervised.tick
      fault_run(seed).each { |fault, count| @total[fault] += count }
    end
    puts "fault run in memory #{what}, #{seeds.count} seeds: #{@total.map { |name, count| "#{count} #{name}" }.join(", ")}"
  end

  def fault_run(seed)
    @seed = seed
    @random = Random.new(seed)
    @notes = {}
    @lines = Lines.new
    @counts = Hash.new(0)
    @ahead = 0
    define_jobs
    Ringspun::Simulation.run(seed:, faults: true) do
      @memory = Storage::Memory.new(clock: -> { machine.now + @ahead })
      @members = Array.new(WORKERS) { begin_worker }
      producer = machine.spin { produce }
      break_things
      producer.join
      drain
      @members.each { |member| end_member(member) { member.worker.stop } }
      judge
    end
    @counts
  end

  # --- jobs ---

  def define_jobs
    define("sleep") { |_, seconds| machine.sleep(seconds) }
    define("long") { |_, seconds| machine.sleep(seconds) }
    define("endless") { machine.sleep(3600) while true }
    define("fail") { |note, times| raise "not yet" if note.begun <= times }
    define("snooze") { |note, seconds, job| job.snooze(seconds) if note.begun == 1 }
    define("forks") do
      children = [fork { exit!(0) }, spawn("true")]
      while (child = children.first)
        raise "a child has failed" unless Process.wait2(child).last.success?

        children.shift
      end
    ensure
      children&.each { |child| Process.detach(child) } # the job was ended meanwhile
    end
  end

  def define(kind)
    on(kind) do |id, number, job|
      note = @notes.fetch(id)
      note.begun += 1
      yield note, number, job
      note.ended += 1
    rescue Ringspun::Cancelled
      note.cancelled += 1 if job.cancelled?
      raise
    end
  end

  def produce
    2.times { push_job("endless", 0) }
    2.times { push_job("forks", 0) }
    4.times { push_job("long", 60 + @random.rand(180.0)) }
    80.times do
      push_job(*[["sleep", @random.rand(8.0)], ["fail", @random.rand(3)], ["snooze", @random.rand(20.0)]].sample(random: @random))
      machine.sleep(@random.rand(SECONDS / 80.0))
    end
  end

  def push_job(kind, number)
    id = "#{kind}#{@notes.size}"
    @notes[id] = Note.new(kind, 0, 0, 0)
    queue = QUEUES.sample(random: @random)
    delay = @random.rand(10.0) if @random.rand < 0.2
    @memory.push([Storage::Push.new(queue:, entry: entry(kind, id, number, queue:, jid: id), jid: id, delay:)])
  end

  # --- workers ---

  def begin_worker
    storage = Faulty.new(@memory)
    config = Jobs::Config.new.update({ concurrency: 5 + @random.rand(20), queues: QUEUES, limits: { "narrow" => 5 },
                                       timeout: 0.01 + @random.rand(8.0) })
    worker = Jobs::Worker.new(config, storage:, logger: lines, random: Random.new(@random.rand(1_000)), quarantine: children)
    Member.new(storage, worker, machine.spin { worker.run })
  end

  # Of those that several share, for one that is isolated would be dead by chance.
  def children
    ScriptedQuarantine.new(->(jids) { [:die, nil, nil].sample(random: @random) if jids.size > 1 }, places: 2 + @random.rand(4))
  end

  def end_member(member)
    yield
    member.strand.join
  rescue Ringspun::TerminatedError
    nil
  end

  def replace
    index = @random.rand(WORKERS)
    member = @members[index]
    # Where nobody is to die it must get rid of what it has.
    member.storage.mend if @random.rand < 0.5 || !@faults.key?(:cut_off)
    end_member(member) { yield member }
    @members[index] = begin_worker
  end

  # --- what goes wrong ---

  def break_things
    over = machine.now + SECONDS
    while machine.now < over
      number = @random.rand(@faults.values.sum)
      fault = @faults.find { |_, share| (number -= share).negative? }.first
      @counts[fault] += 1
      send(fault)
      machine.sleep(@random.rand(20.0))
    end
  end

  def stop_worker = replace { |member| member.worker.stop }
  def hurry_worker = replace { |member| member.worker.hurry }
  def terminate_worker = replace { |member| machine.terminate(member.strand) }

  # For up to three leases, so that others may take over what it goes on with.
  def cut_off
    storage = @members.sample(random: @random).storage
    Faulty::VERBS.each { |verb| storage.refuse(verb, 10_000) }
    machine.sleep(@random.rand(36.0))
    storage.mend
  end

  def strike
    storage = @members.sample(random: @random).storage
    verb = @verbs.sample(random: @random)
    case @random.rand(3)
    when 0 then storage.refuse(verb, 1 + @random.rand(4))
    when 1 then storage.lose(verb, 1 + @random.rand(2))
    else storage.slow(verb, @random.rand(4.0))
    end
  end

  # The storage's clock is set ahead, at times by more than a lease.
  def jump = @ahead += [0.5, 3, 30].sample(random: @random)

  # --- the end ---

  def drain
    @members.each { |member| member.storage.mend }
    yield_slowly("seed #{@seed}: all is done, not #{@memory.stats}, #{unended.keys}") do
      @notes.each { |id, note| Jobs::Worker.cancel(id, storage: @memory) if note.kind == "endless" }
      @memory.stats.values_at(:enqueued, :in_flight, :scheduled, :retries).sum.zero?
    end
  end

  def unended = @notes.reject { |id, note| note.kind == "endless" ? cancelled?(id, note) : note.ended.positive? }

  # One that is cancelled while it waits for its child in the quarantine hears nothing of it.
  def cancelled?(id, note) = note.cancelled.positive? || lines.all.any?(/ jid=#{id} .* cancelled\z/)

  def judge
    assert_empty unended, "seed #{@seed}"
    assert_equal [0, 0], @memory.stats.values_at(:dead, :in_flight), "seed #{@seed}"
    doubled = @notes.select { |_, note| note.ended + note.cancelled > 1 }
    text = lines.to_s
    wrong = doubled.keys.reject { |id| text.match?(/ jid=#{id} .*taken over from a dead process/) }
    assert_empty wrong, "seed #{@seed}: run twice without a death"
    @counts[:jobs] = @notes.size
    @counts[:runs] = @notes.each_value.sum(&:begun)
    @counts["jobs taken over"] = @notes.keys.count { |id| text.match?(/ jid=#{id} .*taken over/) }
    @counts["ended twice"] = doubled.size
  end
end
