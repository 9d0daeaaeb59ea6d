# frozen_string_literal: true

require "fileutils"
require "json"
require "ringspun/jobs"
require "support/fork_server"
require "support/set_clock"
require "torture/ledger"

# Workers and producers in processes of their own, on one storage, while a seed decides what goes wrong. Then
# nothing goes wrong any more, all that was accepted must have been done, and nothing may be left over. Among the jobs are some
# that take longer than several leases, some that fork, and some that never end and are cancelled when all others are done with.
#
# What is the storage's is a subclass's: `faults` and what they do, `open_storage` and `close_storage`, `storage`, `settings` of
# the programs, `left`, `dead_entries`, `put_malformed`, and `judge_leftovers`.
class FaultRun
  WORKERS = 3
  PRODUCERS = 2
  POISON_JOBS = 2
  # Without any progress for so long, it hangs.
  PATIENCE_SECONDS = 40
  LEASE_SECONDS = 2
  # Up to that many, as by day, callers pause for longer: of faults there are as many.
  SHORT_SECONDS = 30
  # Which programs have from their beginning.
  LIBRARY = "ringspun/jobs/cli"

  # No job, and each of them something else; the last is one, which nobody can run. Each has a word of its own, by which it is
  # known again.
  MALFORMED = [
    "no JSON %s", '["%s"]', '{"class":"FaultJob","jid":"%s","queue":"a"}', '{"class":7,"args":[],"jid":"%s","queue":"a"}',
    '{"class":"FaultJob","args":"%s","jid":"x","queue":"a"}', '{"args":[],"jid":"%s"}', "%s\xff",
    '{"class":"FaultJob","args":["%s"', '"%s"', '{"class":"FaultJob","args":[],"queue":"a","jid":["%s"]}', "\n%s\0",
    '{"class":"Nobody","args":[],"queue":"a","jid":"%s","retry":0}'
  ].freeze
  attr_reader :seed, :ledger, :counts

  def initialize(seconds:, seed: Random.new_seed % 1_000_000, tick: -> {})
    @seconds = seconds
    @seed = seed
    @tick = tick
    @random = Random.new(seed)
    @folder = Dir.mktmpdir("ringspun-faults-")
    FileUtils.mkdir_p(File.join(@folder, "marks"))
    @ledger = Ledger.new(File.join(@folder, "ledger"))
    @counts = Hash.new(0)
    @marks = []
    @poison = []
    @problems = []
    @producers = {}
    @workers = {}
    @logs = +""
  end

  # What the programs of all runs are forked from, with a clock that can be set and without.
  def self.prepare = [nil, SetClock.library].each { |preload| ForkServer.for(LIBRARY, preload:) }

  # @return [Array<String>] what was wrong
  def run
    start
    break_things
    heal
    drain
    stop_workers
    @tick.call
    judge
    @problems
  ensure
    close
  end

  def to_s
    told = @counts.map { |what, count| "#{count} #{what}" }.join(", ")
    "fault run, seed #{@seed}: #{told}"
  end

  private

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  # What it has said that is worth reading.
  def told(program) = program.log.lines.grep_v(/class=FaultJob .*(done|retry in|snoozed|failed: dead)/).last(60).join

  # For who looks for a bug.
  def trace(what)
    return unless ENV["FAULT_TRACE"]

    @began ||= now
    warn format("%8.3f %s", now - @began, what)
  end

  # --- processes ---

  def start
    open_storage
    WORKERS.times { |number| start_worker(number) }
    PRODUCERS.times do |number|
      @producers[number] = program(number, File.join(__dir__, "producer.rb"), "p#{number}-", (@seed + number).to_s, hours: 1)
    end
  end

  # The last one is of several processes.
  def start_worker(number)
    options = number == WORKERS - 1 ? %w[--processes 2] : []
    @workers[number] = program(number, File.join(Program::ROOT, "jobs/exe/ringspun-jobs"), "-r", File.join(__dir__, "app.rb"),
                               *options, hours: -1)
  end

  # The first worker and the first producer differ from the others.
  #
  # @param hours [Integer] by which its clock may be wrong
  def program(number, path, *arguments, hours:)
    pause = @seconds > SHORT_SECONDS ? 0.04 : 0.12
    env = { "FAULT_FOLDER" => @folder, "FAULT_PAUSE" => pause.to_s, "RUBYOPT" => nil, **settings(number, hours) }
    host = host(number)
    return ForkedProgram.new(LIBRARY, env) { [path, *arguments] } if host.empty?

    Program.new(env) { [*host, RbConfig.ruby, "-w", *Program::LOAD_PATH, path, *arguments] }
  end

  # What makes a program one of another host.
  def host(_number) = []

  # A worker's own process and those of its children.
  def family(worker)
    [worker.pid, *File.read("/proc/#{worker.pid}/task/#{worker.pid}/children").split.map(&:to_i)]
  rescue SystemCallError
    [worker.pid]
  end

  # A poison job ends its worker, and a worker's end must have no other reason that is not ours.
  def replace_the_dead
    @workers.each do |number, worker|
      next if worker.running?

      unless worker.status.signaled? && worker.status.termsig == Signal.list["KILL"] && @poison.any?
        @problems << "a worker ended by itself: #{worker.status}\n#{told(worker)}"
      end
      @counts["workers ended by poison jobs"] += 1
      retire(worker)
      start_worker(number)
    end
    @producers.each_value do |producer|
      @problems << "a producer ended by itself: #{producer.status}\n#{told(producer)}" unless producer.running?
    end
  end

  # --- what goes wrong ---

  def break_things
    times = Array.new(POISON_JOBS) { @random.rand * @seconds * 0.6 }.sort
    began = now
    until now - began > @seconds
      plant_poison if times.any? && now - began > times.first && times.shift
      replace_the_dead
      fault = choice
      trace(fault)
      send(fault)
      @tick.call
      sleep @random.rand * 0.3 # the faults' own pace
    end
    end_faults
    @counts["seconds"] = @seconds
  end

  def choice
    number = @random.rand(100)
    faults.find { |_, share| (number -= share).negative? }.first
  end

  def some_worker = @workers.to_a[@random.rand(@workers.size)]

  # Of one that is of several processes any of them.
  def kill_worker
    number, worker = some_worker
    family = family(worker)
    victim = family[@random.rand(family.size)]
    Process.kill(:KILL, victim)
    # What it has done just before it may not have told Redis yet.
    @ledger.fault("kill", pids: victim == worker.pid ? family : [victim], began: now - 2, ended: now + 1)
    @counts["kills"] += 1
    return unless victim == worker.pid

    worker.wait
    retire(worker)
    start_worker(number)
  rescue Errno::ESRCH # it was quicker
    nil
  end

  def end_worker
    number, worker = some_worker
    return unless ready?(worker)

    @ledger.fault("end", pids: family(worker), ended: now + 10)
    stop_worker(worker)
    @counts["ends"] += 1
    start_worker(number)
  end

  def freeze_worker
    family = family(some_worker.last)
    victim = family[@random.rand(family.size)]
    began = now
    Process.kill(:STOP, victim)
    sleep LEASE_SECONDS * (0.5 + @random.rand)
    Process.kill(:CONT, victim)
    @ledger.fault("freeze", pids: victim == family.first ? family : [victim], began: began - 1, ended: now + 1)
    @counts["freezes"] += 1
  rescue Errno::ESRCH
    nil
  end

  def everywhere(what)
    began = now
    yield
    @counts[what] += 1
    @ledger.fault(what, began: began - 1, ended: now + 2)
  end

  # --- what is put in by hand ---

  # One into every place.
  def spoil = put_malformed

  def malformed
    mark = "malformed-#{@marks.size}-"
    @marks << mark
    @counts["malformed"] += 1
    format(MALFORMED[@random.rand(MALFORMED.size)].b, mark)
  end

  def plant_poison
    id = "poison#{@poison.size}"
    @poison << id
    entry = JSON.generate("class" => "FaultJob", "args" => [id, "poison"], "queue" => "a", "retry" => true, "jid" => id,
                          "created_at" => Time.now.to_f)
    plant(entry, id)
  end

  def plant(entry, id) = storage.push([Ringspun::Jobs::Storage::Push.new(queue: "a", entry: entry, jid: id)])

  # --- the end ---

  def heal
    @counts["faults"] = @ledger.faults.size
    @producers.each_value do |producer|
      status = producer.stop
      @problems << "a producer did not end well: #{status}\n#{told(producer)}" unless status.success?
      producer.close
    end
    @producers.clear
  end

  def drain
    state = nil
    since = now
    until drained?
      replace_the_dead
      cancel_endless
      @tick.call
      changed = [left, @ledger.size]
      if changed != state
        since = now
        trace("left: #{left.reject { |_, size| size.zero? }}")
      end
      state = changed
      if now - since > PATIENCE_SECONDS
        @problems << "it does not drain: #{left}\n#{@workers.values.map { |worker| told(worker) }.join("\n---\n")}"
        return
      end
      sleep 0.05
    end
  end

  # Again and again: one may just then be on its way from a worker that has died to another.
  def cancel_endless
    return if @cancelled_at && now - @cancelled_at < 1

    @cancelled_at = now
    @ledger.begun("endless").each { |jid| Ringspun::Jobs::Worker.cancel(jid, storage:) }
  end

  def drained? = left.values.sum.zero?

  def stop_workers
    @workers.each_value do |worker|
      @tick.call
      sleep 0.05 while !ready?(worker) && worker.running?
      stop_worker(worker)
    end
  end

  # Before that it knows nothing of signals.
  def ready?(worker) = worker.log.include?("the worker is ready")

  def stop_worker(worker)
    status = worker.stop
    # A poison job may end it, or one of several processes, just then.
    unless status.success? || worker.log.match?(/signal=TERM.*status=SIGKILL/m) || @ledger.poison_in?(worker.pid)
      @problems << "a worker did not end well: #{status}\n#{told(worker)}"
    end
    retire(worker)
  end

  def retire(worker)
    @logs << worker.log.b
    File.binwrite("/tmp/fault-run-#{@seed}.log", @logs) if ENV["FAULT_TRACE"]
    worker.close
  end

  def judge
    @ledger.read
    outcomes = @ledger.outcomes
    judge_jobs(outcomes)
    judge_dead
    judge_leftovers
    %i[accepted unknown refused failed].each { |outcome| @counts[outcome] = outcomes[outcome].size }
    @counts["unknown that ran"] = outcomes[:unknown].uniq.count { |id| @ledger.done?(id) }
    %w[long endless forks].each { |kind| @counts["#{kind} jobs"] = outcomes[:accepted].count { |id| @ledger.kinds[id] == kind } }
    @counts["runs"] = @ledger.runs.values.sum(&:size)
    @counts["jobs run more than once"] = @ledger.doubled.size
  end

  def problem(what, which)
    @problems << "#{what}: #{which.size}, such as #{which.first(5).inspect}" if which.any?
  end

  def judge_jobs(outcomes)
    unlucky = dead_jobs.select { |job| unlucky?(job) }.map { |job| job["args"].first }
    problem("accepted and never done", (outcomes[:accepted] - unlucky).reject { |id| ended_well?(id) })
    problem("cancelled and done", @ledger.runs.keys.select { |id| @ledger.kinds[id] == "endless" && @ledger.done?(id) })
    # A unique one is pushed until there is an answer.
    refused = outcomes[:refused].reject { |id| @ledger.kinds[id] == "unique" }
    problem("never sent, as its producer was told, and run", refused.select { |id| @ledger.runs.key?(id) })
    problem("enqueued with an error that should not be", outcomes[:failed])
    slow, wrong = @ledger.unexplained.partition { |id| @ledger.taken_over?(id, @logs) }
    @counts["of these because the machine is slow"] = slow.size
    problem("run twice without a reason", wrong.map { |id| @ledger.describe(id) })
  end

  def ended_well?(id)
    case @ledger.kinds[id]
    when "doomed" then true # it is to be among the dead
    when "endless" then @ledger.cancelled?(id, @logs)
    else @ledger.done?(id)
    end
  end

  def dead_jobs
    dead_entries.filter_map do |entry|
      job = JSON.parse(entry)
      job if job.is_a?(Hash) && job["args"].is_a?(Array)
    rescue JSON::ParserError
      nil
    end
  end

  def judge_dead
    dead = dead_entries
    @counts["dead"] = dead.size
    rest = dead.dup
    doomed = @ledger.outcomes[:accepted].select { |id| @ledger.kinds[id] == "doomed" }
    (@marks + (@poison + doomed).map { |id| "\"#{id}\"" }).each do |mark|
      found = rest.select { |entry| entry.b.include?(mark) || entry.b.include?(mark.gsub('"', '\"')) }
      @problems << "#{mark} is #{found.size} times among the dead" unless found.size == 1
      rest -= found
    end
    unsure = @ledger.outcomes[:unknown].map { |id| "\"#{id}\"" }
    rest.reject! { |entry| unsure.any? { |id| entry.include?(id) } }
    unlucky, wrong = rest.partition { |entry| unlucky?(JSON.parse(entry)) }
    @counts["killed isolated as often as a poison job"] = unlucky.size
    problem("dead without a reason", wrong)
  end

  # The faults may hit one isolated job as often as a poison job hits itself, and its worker then says so.
  def unlucky?(job)
    job["error_class"] == "Ringspun::Jobs::Worker::Isolation::DiedError" && @ledger.killed_often?(job["args"].first)
  end

  def close
    [*@producers.values, *@workers.values].each(&:close)
    close_storage
    FileUtils.rm_rf(@folder)
  end
end
