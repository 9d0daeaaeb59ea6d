# frozen_string_literal: true

# Enqueues jobs of all kinds until it is told to end, and writes down what became of each.
#
# Arguments: a name, a seed.

require_relative "app"

class FaultProducer
  CALLERS = 6
  PAUSE_SECONDS = Float(ENV.fetch("FAULT_PAUSE"))
  THOUSANDS = 2500
  # Longer than several leases, as a job of minutes is with the lease as it is by itself.
  LONG_SECONDS = 5
  LONG_JOBS = 3
  ENDLESS_JOBS = 2
  FORKING_JOBS = 5

  def initialize(name, seed)
    @name = name
    @random = Random.new(seed)
    @count = 0
  end

  def run
    trap("TERM") { @ending = true }
    Ringspun.run do |machine|
      callers = Array.new(CALLERS) { machine.spin { call_often(machine) } }
      LONG_JOBS.times { one("long", LONG_SECONDS) }
      FORKING_JOBS.times { one("forks") }
      ENDLESS_JOBS.times { one("endless", queue: "a") }
      many(THOUSANDS)
      callers.each(&:join)
    end
  end

  private

  def call_often(machine)
    until @ending
      enqueue
      machine.sleep(@random.rand * 2 * PAUSE_SECONDS)
    end
  end

  def new_id = "#{@name}#{@count += 1}"

  def enqueue
    case @random.rand(100)
    when 0...53 then one("quick")
    when 53...55 then one("forks")
    when 55...70 then one("slow", @random.rand.round(3))
    when 70...78 then one("once")
    when 78...82 then one("snooze")
    when 82...84 then one("doomed", retry: 0)
    when 84...87 then one(%w[quick once][@random.rand(2)], unique_for: 3600)
    when 87...91 then one("quick", in: @random.rand * 2)
    when 91...99 then unique
    else many(20 + @random.rand(200))
    end
  end

  def some_queue = %w[a a b narrow][@random.rand(4)]

  def one(kind, seconds = 0, **options)
    id = new_id
    record(id, kind) { FaultJob.set(queue: some_queue, **options).perform_async(id, kind, seconds) }
  end

  # Asks again until there is an answer, which is what the option is for: itself, or that it is there already.
  def unique
    id = new_id
    bound = FaultJob.set(queue: "a", unique_for: 3600, unique_until: :expiry, unique_token: id)
    loop do
      bound.perform_async(id, "quick")
      return FaultApp.tell(:accepted, "unique", id)
    rescue Ringspun::Jobs::UnavailableError, Ringspun::Jobs::UnknownOutcomeError
      Ringspun::Machine.current.sleep(0.1)
    end
  end

  # All due at one time.
  def many(count)
    ids = Array.new(count) { new_id }
    results = FaultJob.set(queue: %w[a b][@random.rand(2)], in: 1.5).perform_bulk(ids.map { |id| [id, "quick"] })
    tell_of(ids, results)
  rescue Ringspun::Jobs::BulkError => error
    tell_of(ids, error.results)
  rescue Ringspun::Jobs::Error => error
    tell_of(ids, Array.new(count, error))
  end

  def tell_of(ids, results)
    ids.zip(results).group_by { |_, result| outcome_of(result) }.each do |outcome, some|
      FaultApp.tell(outcome, "many", *some.map(&:first))
    end
  end

  def record(id, kind)
    outcome = outcome_of(yield)
  rescue Ringspun::Jobs::Error => error
    outcome = outcome_of(error)
  ensure
    FaultApp.tell(outcome || :failed, kind, id)
  end

  # nil: not tried, or another one holds its lock.
  def outcome_of(result)
    case result
    when String then :accepted
    when Ringspun::Jobs::UnknownOutcomeError then :unknown
    when nil, Ringspun::Jobs::UnavailableError then :refused
    else :failed
    end
  end
end

FaultProducer.new(ARGV.fetch(0), Integer(ARGV.fetch(1))).run
