# frozen_string_literal: true

require "jobs_helper"
require_relative "../support/redis_case"
require_relative "../support/worked"

# servers: valkey

# Workers on a real Redis, and on the computer's clock.
class WorkerRedisTest < RedisCase
  include WorkedInTime

  def storage = @storage ||= open_storage({ path: redis_path })

  def yield_slowly(what = "that", &) = yield_until(what) { sleep(0.005) && yield }

  # What a worker that has ended leaves there.
  def assert_nothing_left
    # Totals, Sidekiq's metrics, what has happened to jobs, and what workers say to each other.
    kept = /\A(?:stat:|j\||h\||ringspun:(?:histor|measured|hold|wakes|due))/
    assert_empty call("KEYS", "*").grep_v(kept) - %w[queues dead]
  end

  def test_thousands_of_jobs
    seen = Hash.new(0)
    on("note") { |number, _| seen[number] += 1 }
    storage.push(Array.new(3000) { |number| Storage::Push.new(queue: "default", entry: entry("note", number)) })
    with_worker(concurrency: 500) { until_done(3000) }
    assert_equal (0...3000).to_h { |number| [number, 1] }, seen
    assert_equal "3000", call("GET", "stat:processed")
    assert_nothing_left
  end

  def test_ten_thousand_that_are_due_at_once
    seen = Hash.new(0)
    on("note") { |number, _| seen[number] += 1 }
    storage.push(Array.new(10_000) { |number| Storage::Push.new(queue: "default", entry: entry("note", number), at: 1) })
    assert_equal 10_000, call("ZCARD", "schedule")
    with_worker(concurrency: 500) { until_done(10_000) }
    assert_equal (0...10_000).to_h { |number| [number, 1] }, seen
    assert_nothing_left
  end

  class Soon < Task
    retry_in { 0.2 }
  end

  # The limit is half of what passes until the next look at the earliest.
  def test_a_retry_that_is_asked_for_soon_comes_soon
    times = []
    on("flaky") { times << now && times.size < 4 && raise("not yet") }
    with_worker do
      push_entry(entry("flaky").sub("Worked::Task", "WorkerRedisTest::Soon"))
      until_done(4)
    end
    assert_equal({ retry: 3, done: 1 }, worker.counts)
    assert_operator times.each_cons(2).map { |one, other| other - one }.min, :>=, 0.2
    assert_operator times.each_cons(2).map { |one, other| other - one }.min, :<, 1
  end

  # The limit is half of what passes until the next look at a queue that is full.
  def test_the_end_of_a_job_lets_the_next_one_of_its_queue_begin
    times = []
    on("note") { times << now && sleep(0.05) } # by then the worker has seen that the queue is full
    with_worker(limits: { "default" => 1 }) do
      10.times { push("note") }
      until_done(10)
    end
    assert_operator times.each_cons(2).map { |one, other| other - one }.min, :<, 0.25
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def test_one_after_the_other
    seen = Ringspun::Queue.new
    on("note") { |number, _| seen << number }
    with_worker(queues: %w[default other]) do
      20.times do |number|
        push("note", number, queue: number.even? ? "default" : "other")
        assert_equal number, seen.pop
      end
      until_done(20)
    end
    assert_nothing_left
  end

  def test_all_at_once
    now = most = 0
    gate = Ringspun::Condition.new
    on("wait") do
      most = [most, now += 1].max
      now == 200 ? gate.broadcast : gate.wait
    end
    with_worker(concurrency: 200) do
      200.times { push("wait") }
      until_done(200)
    end
    assert_equal 200, most
  end

  def test_all_kinds_of_ends
    on("fine") { nil }
    on("fail") { raise "no" }
    on("snooze") { |job| job.snooze(1000) }
    with_worker do
      push("fine")
      push("fail", jid: "a1")
      push("fail", retry: 0)
      push("fail", retry: false)
      push("snooze")
      push_entry("nonsense")
      until_done(6)
    end
    assert_equal({ done: 1, retry: 1, dead: 1, dropped: 1, snoozed: 1, malformed: 1 }, worker.counts)
    assert_equal [1, 1, 2], %w[retry schedule dead].map { |set| call("ZCARD", set) }
    retried = JSON.parse(call("ZRANGE", "retry", 0, 0).first)
    assert_equal ["a1", 0, "RuntimeError", "no"], retried.values_at("jid", "retry_count", "error_class", "error_message")
    assert_equal %w[5 4], [call("GET", "stat:processed"), call("GET", "stat:failed")]
  end

  def test_what_is_returned_stands_in_front_of_its_queue
    on("sleep") { machine.sleep }
    with_worker(timeout: 0.1, concurrency: 3) do
      5.times { |number| push("sleep", jid: "a#{number}") }
      yield_slowly { worker.running.size == 3 }
    end
    assert_equal %w[a0 a1 a2 a3 a4], storage.list("default", 0, 10).map { |one| JSON.parse(one.entry)["jid"] }
    assert_equal({ returned: 3 }, worker.counts)
    call("DEL", "queue:default")
    assert_nothing_left
  end

  # Whether a second one is taken while the first runs, and when it is done.
  def test_how_long_no_second_one_may_be_enqueued
    gates = Hash.new { |all, name| all[name] = Ringspun::Queue.new }
    begun = Hash.new(0)
    on("hold") { |name, _| (begun[name] += 1) && gates[name].pop }
    on("fail") { raise "no" }
    Jobs.storage = storage
    with_worker do
      ended = 0
      { "success" => [false, true], "start" => [true, true], "expiry" => [false, false] }.each do |till, expected|
        second = -> { !Task.set(unique_for: 60, unique_until: till).perform_async("hold", till).nil? }
        assert second.call
        yield_slowly { begun[till] == 1 } # before, it may hold a lock until its start
        taken = [second.call]
        (ended + 1 + taken.count(true)).tap { |all| gates[till] << 1 << 1 and until_done(ended = all) }
        assert_equal expected, taken << second.call, till
        taken.last && gates[till] << 1 and until_done(ended += 1)
      end
      failing = Task.set(unique_for: 60, retry: 0)
      2.times do
        refute_nil failing.perform_async("fail") # it gives its lock back when it dies
        until_done(ended += 1)
      end
      failing = Task.set(unique_for: 60, retry: 1)
      refute_nil failing.perform_async("fail", 1)
      until_done(ended += 1)
      assert_nil failing.perform_async("fail", 1) # it is tried again
    end
  ensure
    Jobs.storage = nil
  end

  def test_connections_that_are_cut
    seen = Hash.new(0)
    on("note") do |number, _|
      sleep(0.005)
      seen[number] += 1
    end
    near = storage
    @storage = far
    with_worker(concurrency: 20) do
      15.times do |round|
        near.push(Array.new(20) { |number| Storage::Push.new(queue: "default", entry: entry("note", (round * 20) + number)) })
        sleep(0.02)
        round.odd? ? proxy.swallow : proxy.cut
        sleep(0.02)
        proxy.cut
      end
      yield_slowly { seen.size == 300 && near.stats.values_at(:enqueued, :in_flight).sum.zero? }
    end
    assert_equal 300, seen.size # and each once, for no lease has run out
    assert(seen.values.all? { |count| count == 1 }, seen.inspect)
  end

  def test_a_dead_process
    on("note") { |_| nil }
    dead = "dead:1:aa"
    storage.extend([dead], 0.05)
    push("note", jid: "a1")
    storage.fetch(dead, ["default"], 1)
    with_worker(queues: %w[other], beat: 0.2, options: { quarantine: Jobs::Quarantine.new }) { until_done(1) }
    assert_equal({ done: 1 }, worker.counts)
    assert_match(/jid=a1 .*taken over from a dead process/, lines.to_s)
  end

  def test_a_poison_job
    on("die") { Process.kill(:KILL, Process.pid) }
    on("note") { raise "isolated" }
    2.times { |number| push_entry(entry(number.zero? ? "die" : "note", jid: "a#{number}"), queue: Storage::QUARANTINE) }
    with_worker(options: { quarantine: Jobs::Quarantine.new }) { until_done(4) }
    assert_equal({ died: 2, dead: 1, retry: 1 }, worker.counts)
    job = JSON.parse(call("ZRANGE", "dead", 0, -1).first)
    assert_equal "a0", job["jid"]
    assert_match(/SIGKILL.*3 times/, job["error_message"])
    failed = JSON.parse(call("ZRANGE", "retry", 0, -1).first)
    assert_equal %w[a1 RuntimeError isolated], failed.values_at("jid", "error_class", "error_message")
  end

  def test_a_quarantined_job_hears_that_the_worker_is_quiet
    here, there = IO.pipe
    on("wait") { there.syswrite(".") && sleep(0.005) until Jobs::Worker.stopping? }
    push_entry(entry("wait", jid: "a"), entry("wait", jid: "b"), queue: Storage::QUARANTINE)
    with_worker(options: { quarantine: Jobs::Quarantine.new }) do
      here.read(2)
      worker.quiet
      until_done(2)
    end
    assert_equal({ done: 2 }, worker.counts)
  ensure
    [here, there].each(&:close)
  end

  # It is extended while the job computes: each time it has another value.
  def test_a_job_that_computes_does_not_cost_the_lease
    leases = []
    work_that_computes do |other, _job, patience|
      lease = "ringspun:alive:#{other.nodes.first["identity"]}"
      leases |= [call("GET", lease)] until leases.size == 4 || patience.over?
      assert_empty other.recover(10)
    end
    assert_equal [4, []], [leases.size, leases.grep(nil)]
  end

  # It lets nobody run who could end it, so another thread tells it.
  def test_a_job_that_computes_asks_whether_it_is_cancelled
    told = nil
    work_that_computes do |other, job, patience|
      Jobs::Worker.cancel(job.jid, storage: other)
      nil until (told = job.cancelled?) || patience.over?
    end
    assert told, lines.to_s
  end

  def test_a_job_that_computes_asks_whether_the_worker_is_to_end
    told = nil
    work_that_computes do |other, _job, patience|
      other.signal(other.nodes.first["identity"], "TSTP")
      nil until (told = Jobs::Worker.stopping?) || patience.over?
    end
    assert told, lines.to_s
  end

  # Runs the block in a job whose worker is announced, while no other strand has its turn.
  def work_that_computes
    on("compute") do |path, job|
      other = open_storage({ path: })
      patience = Patience.new(40)
      Fiber.blocking do
        nil until other.nodes.any? || patience.over?
        yield other, job, patience
      end
    end
    with_worker(beat: 0.1) do
      push("compute", redis_path)
      until_done(1)
    end
    assert_equal({ done: 1 }, worker.counts)
  end

  def test_a_quarantined_job_that_computes_hears_that_the_worker_is_quiet
    here, there = IO.pipe
    on("compute") do
      patience = Patience.new(40)
      there.syswrite(".")
      Fiber.blocking { nil until Jobs::Worker.stopping? || patience.over? }
      there.syswrite(Jobs::Worker.stopping? ? "told" : "not told")
    end
    push_entry(entry("compute", jid: "a"), queue: Storage::QUARANTINE)
    with_worker(options: { quarantine: Jobs::Quarantine.new }) do
      here.read(1)
      worker.quiet
      until_done(1)
    end
    there.close
    assert_equal ["told", { done: 1 }], [here.read, worker.counts]
  ensure
    [here, there].each(&:close)
  end

  def test_on_a_thread_of_its_own
    seen = Thread::Queue.new
    on("note") { |number, _| seen << number }
    @worker = new_worker
    thread = Thread.new do
      worker.run
    ensure
      Ringspun::Machine.current.close
    end
    push("note", 1)
    assert_equal 1, seen.pop
    worker.subscribe("other")
    push("note", 2, queue: "other")
    assert_equal 2, seen.pop
    worker.stop
    thread.join
    assert_nothing_left
  end

  def test_a_signal_ends_it
    answer = ruby_child(<<~'RUBY', redis_path, env: { "RUBYLIB" => $LOAD_PATH.join(":") })
      require "ringspun/jobs"
      class Note
        include Ringspun::Jobs::Job
        def perform = Process.kill(:TERM, Process.pid)
      end
      storage = Ringspun::Jobs::Storage::Redis.new({ path: ARGV[0] })
      storage.push([Ringspun::Jobs::Storage::Push.new(queue: "default", entry: '{"class":"Note","args":[],"jid":"a"}')])
      worker = Ringspun::Jobs::Worker.new(Ringspun::Jobs::Config.new, storage: storage, logger: Logger.new(nil))
      trap(:TERM) { worker.stop }
      worker.run
      p worker.counts
    RUBY
    assert_equal [{ done: 1 }.inspect, ""], [answer.out.chomp, answer.err]
    assert_nothing_left
  end
end
