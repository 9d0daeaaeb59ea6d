# frozen_string_literal: true

require "jobs_helper"
require "support/command_case"

# Worker processes that are killed with many jobs in flight, some of which never end, or end their process.
class QuarantineCommandTest < CommandCase
  include Strands

  SETTINGS = LEASE

  PROGRAM = <<~'RUBY'
    require "redis-client"

    # Notes that it begins, and ends when somebody has let its class go.
    class Wait
      include Ringspun::Jobs::Job

      def perform(name)
        redis = RedisClient.new(path: ENV.fetch("SEEN"), timeout: 60)
        redis.call("RPUSH", "begun", name)
        sleep 0.02 until redis.call("GET", "go #{self.class}")
        redis.call("RPUSH", "ended", name)
      ensure
        redis&.close
      end
    end

    class Report < Wait
      def perform(name)
        super
        follow_with(Ringspun::Jobs.set("Elsewhere", queue: "elsewhere"), name)
      end
    end

    # Once it may go.
    class Endless < Wait
      def perform(name)
        super
        nil while true
      end
    end

    class Poison < Wait
      def perform(name)
        super
        Process.kill(:KILL, Process.pid)
      end
    end
  RUBY

  def worker = start.tap { |one| one.await(/the worker is ready/) }

  def push(job_class, *names, **fields)
    pushes = names.map do |name|
      entry = Jobs::Wire.dump({ "class" => job_class, "args" => [name], "queue" => "default", "jid" => name, "retry" => true,
                                **fields.transform_keys(&:to_s) })
      Storage::Push.new(queue: "default", entry:, jid: name)
    end
    storage.push(pushes)
  end

  def let_go(*job_classes) = job_classes.each { |name| call("SET", "go #{name}", "1") }

  def ended = call("LRANGE", "ended", 0, -1).uniq.sort

  # Another one, which takes over what the dead one had in flight.
  def heir_of(dead) = worker.tap { lapse(dead.pid) }

  # A process that has all of them in flight, and is killed; and another one, which takes them over.
  def killed_with(count)
    first = worker
    yield_until("all have begun") { sleep(0.01) && call("LRANGE", "begun", 0, -1).uniq.size == count }
    first.signal(:KILL)
    first.wait
    heir_of(first)
  end

  NAMES = (1..60).map { |number| format("innocent%03d", number) }.freeze

  def test_many_are_done_beside_one_that_never_ends
    push("Wait", *NAMES)
    push("Endless", "endless")
    second = killed_with(NAMES.size + 1)
    let_go("Endless") # while all the others are still there to be held up
    second.await(/jid=endless a job holds up the others/)
    let_go("Wait")
    NAMES.size.times { second.await(/jid=innocent\d+ .*done$/) }
    assert_equal NAMES, ended - ["endless"]
    assert_equal 1, storage.stats[:in_flight]
    # It has not failed and nobody has died by it: it goes back, and the next one takes it.
    second.signal(:TERM)
    second.await(/the worker ends/)
    assert_equal 0, second.finish.exitstatus, second.lines.join
    assert_equal [1, 0, 0, NAMES.size], storage.stats.values_at(:enqueued, :in_flight, :dead, :processed)
    call("DEL", "begun")
    worker
    yield_until("it runs again") { sleep(0.01) && call("LRANGE", "begun", 0, -1) == ["endless"] }
  end

  # It is isolated each time, and none of the deaths is its own.
  def test_one_whose_workers_die_is_still_run
    push("Report", "report")
    last = killed_with(1)
    (2..4).each do |times|
      yield_until("it has begun again") { sleep(0.01) && call("LLEN", "begun") == times }
      last.signal(:KILL)
      last.wait
      last = heir_of(last)
    end
    let_go("Report")
    last.await(/jid=report .*done$/)
    assert_equal [%w[report], 0, 1], [ended, *storage.stats.values_at(:dead, :processed)]
    assert_equal [["report"]], (storage.list("elsewhere", 0, 9).map { |job| JSON.parse(job.entry)["args"] })
    assert_equal 0, last.finish.exitstatus, last.lines.join
  end

  def test_one_that_is_not_tried_again_ends_its_process_once
    push("Poison", "never", retry: false)
    push("Poison", "zero", retry: 0)
    push("Poison", "twice", retry: 0, ringspun_deaths: 1)
    second = killed_with(3)
    let_go("Poison")
    dead = Array.new(3) { second.await(/jid=(\w+) .* dead$/)[1] }
    assert_equal %w[never twice zero], dead.sort
    assert_equal %w[never twice twice zero], call("LRANGE", "begun", 0, -1).sort
    assert_equal [3, 0, 0], storage.stats.values_at(:dead, :enqueued, :in_flight)
    assert_equal 0, second.finish.exitstatus, second.lines.join
  end

  # Nobody knows how far it had come, also where another one has ended its process.
  def test_an_innocent_neighbour_that_is_not_tried_again_runs_once
    push("Wait", "once", retry: 0)
    push("Wait", "again", retry: 1)
    push("Poison", "poison", ringspun_deaths: 1)
    first = worker
    yield_until("all have begun") { sleep(0.01) && call("LRANGE", "begun", 0, -1).uniq.size == 3 }
    let_go("Poison")
    first.wait
    let_go("Wait")
    second = heir_of(first)
    second.await(/jid=once .*its process ended while it ran.* dead$/)
    yield_until("the others are done") { sleep(0.01) && storage.stats.values_at(:enqueued, :in_flight) == [0, 0] }
    dead = storage.scan(:dead, 0, 9)
    assert_equal [%w[again poison], %w[once poison]], [ended, dead.map { |job| JSON.parse(job.entry)["jid"] }.sort]
    assert_equal 1, call("LRANGE", "begun", 0, -1).count("once")
    storage.retry_now(:dead, dead.select { |job| job.entry.include?(%("jid":"once")) }.map(&:token))
    second.await(/jid=once .*done$/)
    assert_equal 0, second.finish.exitstatus, second.lines.join
  end

  def test_poison_jobs_among_many
    push("Wait", *NAMES)
    push("Poison", "poison1", "poison2")
    second = killed_with(NAMES.size + 2)
    let_go("Wait", "Poison")
    dead = Array.new(2) { second.await(/jid=(\w+) .*isolated has ended \(SIGKILL\), 3 times.* dead$/)[1] }
    assert_equal %w[poison1 poison2], dead.sort
    yield_until("the others are done") { sleep(0.01) && storage.stats.values_at(:enqueued, :in_flight).sum.zero? }
    assert_equal [NAMES, 2], [ended - dead, storage.stats[:dead]]
    refute_match(/jid=innocent\S* .*(died|dead$)/, second.lines.join)
    assert_equal 0, second.finish.exitstatus, second.lines.join
  end
end
