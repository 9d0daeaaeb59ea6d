# frozen_string_literal: true

require "fileutils"
require "json"
require "open3"
require "redis-client"
require "support/aof_redis"
require "support/program"
require "support/proxy"
require "torture/ledger"

# Workers and producers in processes of their own, on one Redis behind one proxy, while a seed decides what goes wrong. Then
# nothing goes wrong any more, all that was accepted must have been done, and nothing may be left over. Among the jobs are some
# that take longer than several leases, some that fork, and some that never end and are cancelled when all others are done with.
class FaultRun
  WORKERS = 3
  PRODUCERS = 2
  POISON_JOBS = 2
  # Without any progress for so long, it hangs.
  PATIENCE_SECONDS = 40
  LEASE_SECONDS = 2

  # How often each fault comes, of a hundred.
  FAULTS = {
    kill_worker: 14, end_worker: 6, freeze_worker: 8, restart_redis: 8, cut_some: 14, cut_all: 6, swallow_some: 20,
    delay_a_little: 8, delay_long: 2, refuse: 4, spoil: 10
  }.freeze

  # No job, and each of them something else; the last is one, which nobody can run. Each has a word of its own, by which it is
  # known again.
  MALFORMED = [
    "no JSON %s", '["%s"]', '{"class":"FaultJob","jid":"%s","queue":"a"}', '{"class":7,"args":[],"jid":"%s","queue":"a"}',
    '{"class":"FaultJob","args":"%s","jid":"x","queue":"a"}', '{"args":[],"jid":"%s"}', "%s\xff",
    '{"class":"FaultJob","args":["%s"', '"%s"', '{"class":"FaultJob","args":[],"queue":"a","jid":["%s"]}', "\n%s\0",
    '{"class":"Nobody","args":[],"queue":"a","jid":"%s","retry":0}'
  ].freeze
  LISTS = %w[queue:a queue:b queue:narrow queue:ringspun-quarantine].freeze
  SETS = %w[schedule retry].freeze
  # What is counted stays.
  COUNTS = /\A(?:stat:(?:processed|failed)|ringspun:twice|ringspun:measured(?::\w+)?)\z/

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

  def self.clock
    @clock ||= File.join(Dir.mktmpdir, "clock.so").tap do |library|
      at_exit { FileUtils.rm_rf(File.dirname(library)) }
      output, status = Open3.capture2e(RbConfig::CONFIG["CC"].split.first, "-Wall", "-Werror", "-shared", "-fPIC", "-o", library,
                                       File.join(__dir__, "clock.c"), "-ldl")
      raise output unless status.success?
    end
  end

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

  def redis
    @redis ||= RedisClient.new(path: @server.path, timeout: 20, reconnect_attempts: 3)
  end

  # Past the proxy.
  def storage
    @storage ||= Ringspun::Jobs::Storage::Redis.new({ path: @server.path })
  end

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
    @server = AofRedis.new
    @proxy = Proxy.new { @server.connect }
    WORKERS.times { |number| start_worker(number) }
    PRODUCERS.times do |number|
      # The clock of one producer and of one worker is wrong by an hour.
      @producers[number] = program(File.join(__dir__, "producer.rb"), "p#{number}-", (@seed + number).to_s,
                                   shift: number.zero? ? 3600 : 0)
    end
  end

  # The last one is of several processes.
  def start_worker(number)
    options = number == WORKERS - 1 ? %w[--processes 2] : []
    @workers[number] = program(File.join(Program::ROOT, "jobs/exe/ringspun-jobs"), "-r", File.join(__dir__, "app.rb"), *options,
                               shift: number.zero? ? -3600 : 0)
  end

  def program(path, *arguments, shift: 0)
    env = { "REDIS_URL" => @proxy.url, "FAULT_FOLDER" => @folder, "RUBYOPT" => nil }
    env.update("LD_PRELOAD" => self.class.clock, "CLOCK_SHIFT_SECONDS" => shift.to_s) unless shift.zero?
    Program.new(env) { [RbConfig.ruby, "-w", *Program::LOAD_PATH, path, *arguments] }
  end

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
    lose_answers
    @counts["seconds"] = @seconds
  end

  # With no end or kill after it that would give back what nobody knows of.
  def lose_answers
    8.times do
      everywhere("lost answers") { @counts["answers lost"] += @proxy.swallow { @random.rand < 0.5 } }
      sleep 0.15
    end
  end

  def choice
    number = @random.rand(100)
    FAULTS.find { |_, share| (number -= share).negative? }.first
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

  def restart_redis
    everywhere("restarts") do
      @server.kill
      sleep @random.rand * 0.5
      @server.start
    end
  end

  def cut_some = everywhere("cuts") { @proxy.cut { @random.rand < 0.3 } }
  def cut_all = everywhere("cuts of all") { @proxy.cut }
  def swallow_some = everywhere("lost answers") { @counts["answers lost"] += @proxy.swallow { @random.rand < 0.5 } }

  def delay_a_little = delay(0.02 + @random.rand * 0.1, 0.5)
  def delay_long = delay(LEASE_SECONDS * 1.2, LEASE_SECONDS * 1.3)

  def delay(seconds, duration)
    everywhere("delays") do
      @proxy.delay = seconds
      sleep duration
      @proxy.delay = 0
    end
  end

  def refuse
    everywhere("refusals") do
      @proxy.refusing = true
      @proxy.cut
      sleep @random.rand * 0.5
      @proxy.refusing = false
    end
  end

  # --- what is put in by hand ---

  # One into every list and set.
  def spoil
    LISTS.each { |list| redis.call(@random.rand < 0.5 ? "LPUSH" : "RPUSH", list, malformed) }
    redis.call("SADD", "queues", *LISTS.map { |list| list.delete_prefix("queue:") })
    [*SETS, "dead"].each { |set| redis.call("ZADD", set, Time.now.to_f + (@random.rand < 0.5 ? -60 : @random.rand), malformed) }
  end

  def malformed
    mark = "malformed-#{@marks.size}-"
    @marks << mark
    @counts["malformed"] += 1
    format(MALFORMED[@random.rand(MALFORMED.size)].b, mark)
  end

  def plant_poison
    id = "poison#{@poison.size}"
    @poison << id
    redis.call("LPUSH", "queue:a", JSON.generate("class" => "FaultJob", "args" => [id, "poison"], "queue" => "a", "retry" => true,
                                                 "jid" => id, "created_at" => Time.now.to_f))
    redis.call("SADD", "queues", "a")
  end

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

  # At one moment: what goes from one to another meanwhile would be in none.
  LEFT = <<~LUA
    local sizes = {}
    for _, key in ipairs(redis.call("KEYS", "queue:*")) do
      sizes[#sizes + 1] = key
      sizes[#sizes + 1] = redis.call("LLEN", key)
    end
    for _, key in ipairs(ARGV) do
      sizes[#sizes + 1] = key
      sizes[#sizes + 1] = redis.call("ZCARD", key)
    end
    return sizes
  LUA

  def left = redis.call("EVAL", LEFT, 0, *SETS).each_slice(2).to_h

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
    judge_keys
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

  def dead_entries = redis.call("ZRANGE", "dead", 0, -1)

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

  # Dead nodes are forgotten when nothing of theirs can be on its way any more, which we know. What else is left may only be there
  # for a time.
  def judge_keys
    2.times { storage.recover(100, forget: 0) }
    keys = redis.call("KEYS", "*").select { |key| redis.call("PTTL", key) == -1 }
    problem("keys left over", keys.grep_v(COUNTS) - %w[queues dead ringspun:limits ringspun:hold])
    tokens = redis.call("KEYS", "unique:*").map { |key| key.delete_prefix("unique:") }
    # Those of jobs that keep theirs have a name that we know, and the workers' own end by themselves.
    problem("locks left over", tokens.reject { |token| @ledger.kinds.key?(token) || token.start_with?("ringspun:") })
  end

  def close
    [*@producers.values, *@workers.values].each(&:close)
    @redis&.close
    @storage&.close
    @proxy&.close
    @server&.close
    FileUtils.rm_rf(@folder)
  end
end
