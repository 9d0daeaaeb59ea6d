# frozen_string_literal: true

require "ringspun/jobs/web"

# Web pages of a shop's jobs in memory, with something on each page.
module WebExample
  Jobs = Ringspun::Jobs
  Storage = Jobs::Storage

  NODE = "web-1:4711:5f2b9c01d3aa"
  PLACES = "place=retries&at=0"
  PAGES = {
    "dashboard" => "/", "queues" => "/queues", "queue" => "/queue?place=queue&queue=mail", "busy" => "/busy",
    "scheduled" => "/scheduled", "retries" => "/retries", "dead" => "/dead", "quarantine" => "/quarantine",
    "done" => "/done", "classes" => "/classes", "class" => "/class?class=Invoice",
    "processes" => "/processes", "cron" => "/cron", "search" => "/search?class=Invoice",
    "job" => "/job?jid=5f0c7a8e21b94d6ea8c30000"
  }.freeze

  # What went wrong, each of some jobs.
  ERRORS = { retry: ["Net::OpenTimeout", "execution expired"],
             dead: ["Invoice::Refused", "the customer's bank said no (code <51>)"] }.freeze
  TRACE = ["app/jobs/invoice.rb:21:in `charge'", "app/jobs/invoice.rb:9:in `perform'"].freeze

  module_function

  # @param still [Boolean] whether the charts stay as they are
  # @return [Array(Jobs::Web, Storage)]
  def web(still: false)
    ago = ticks = 300.0
    storage = Storage::Memory.new(clock: -> { Time.now.to_f - ago })
    sampler = Jobs::Web.const_get(:Sampler).new(clock: -> { ticks }) { storage }
    150.times do |number|
      ticks += 2
      ago -= 2
      fill(storage) if ago.zero?
      storage.counters(processed: 240 + (90 * Math.sin(number / 9.0)).round, failed: (number % 11).zero? ? 14 : 2)
      sampler.last.latencies["mail"] = 5 + (2.5 * Math.sin(number / 14.0))
    end
    sampler.instance_variable_set(:@clock, -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) }) unless still
    web = Jobs::Web.new(storage:)
    web.instance_variable_set(:@sampler, sampler)
    [web, storage]
  end

  def fill(storage)
    now = Time.now.to_f
    enqueue(storage, now)
    ERRORS.each_key { |set| fail(storage, set, now) }
    work(storage, now)
    run(storage)
    schedule(storage, now)
    storage.pause("reports")
  end

  # What has ended: of each class in each of the last minutes, and the last ones as jobs.
  def run(storage)
    now = (storage.time / 60).to_i
    { "Mail" => [900, 4, 2], "Invoice" => [120, 9, 6], "Import" => [7, 1, 15] }.each do |name, (runs, failed, limit)|
      storage.measure(Array.new(60) do |minute|
        failing = (minute % 7).zero? ? failed : 0
        done = runs - failing + (runs / 4.0 * Math.sin(minute / 6.0)).round
        counts = { limit => done - (done / 10), limit + 3 => done / 10 }
        Storage::Measure.new(now - minute, name, done + failing, failing, done * Storage::LIMITS_MS[limit], counts)
      end)
    end
    push(storage, "billing", 12) { |number| ["Invoice", [1100 + number, "EUR"], { "tags" => ["billing"] }] }
    acks = storage.fetch(NODE, ["billing"], 12).map.with_index do |one, number|
      ran = Storage::Ran.new(0.18 + (number * number / 90.0), "Invoice")
      Storage::Ack.new(queue: "billing", token: one.token, jid: "x", ran:)
    end
    storage.ack(NODE, acks)
  end

  def schedule(storage, now)
    all = { "nightly report" => ["every day at 4am", "Report", { zone: "Europe/Berlin", description: "for the board" }],
            "cleanup" => ["*/20 * * * *", "Cleanup", {}] }
    crons = all.map do |name, (schedule, job_class, options)|
      entry = Jobs.const_get(:Cron)::Entry.new(name, schedule, job_class, [], **options)
      Storage::Cron.new(name:, schedule: entry.key("UTC"), text: entry.to_text("UTC"))
    end
    storage.cron_define("shop", crons)
    [nil, now + 60].each { |tick| storage.cron_push("cleanup", tick, nil) }
    storage.cron_pause("nightly report", true)
  end

  def enqueue(storage, now)
    { "mail" => 320, "default" => 75, "reports" => 4, Storage::QUARANTINE => 2 }.each do |queue, count|
      push(storage, queue, count) do |number|
        ["Mail", ["customer-#{number}@example.org", { "template" => "receipt" }], { "enqueued_at" => now - 5 }]
      end
    end
    push(storage, "default", 6, at: now + 600) { |number| ["Report", [number, "2026-11"], { "tags" => ["monthly"] }] }
  end

  def push(storage, queue, count, at: nil)
    storage.push(Array.new(count) do |number|
      name, arguments, fields = yield number
      Storage::Push.new(queue:, entry: entry(name, arguments, queue:, **fields), jid: "x", at: at && (at + (number * 700)))
    end)
  end

  def entry(name, arguments, **fields)
    @number = (@number || 0) + 1
    jid = format("%024x", @number * 7919)
    JSON.generate({ "class" => name, "args" => arguments, "jid" => jid, **fields.transform_keys(&:to_s) })
  end

  def fail(storage, set, now)
    error_class, error_message = ERRORS.fetch(set)
    3.times do |number|
      jid = "5f0c7a8e21b94d6ea8c3000#{number}"
      job = { jid: set == :dead ? jid : jid.tr("5", "9"), queue: "default", error_class:, error_message:, error_backtrace: TRACE,
              failed_at: now - 4000, retry_count: number, tags: ["billing"], created_at: now - 5000 }
      storage.push([Storage::Push.new(queue: "failing", entry: entry("Invoice", [1000 + number, "EUR"], **job), jid:)])
      one = storage.fetch(NODE, ["failing"], 1).first
      event = Storage::Event.new(kind: set, error_class:, error_message:)
      storage.fail(NODE, [Storage::Failure.new(queue: "failing", token: one.token, jid: job[:jid], to: set,
                                               delay: 300 * (number + 1), event:)])
    end
  end

  def work(storage, now)
    info = { "hostname" => "web-1", "tag" => "shop", "concurrency" => 1000, "queues" => %w[mail default reports],
             "labels" => ["blue"], "started_at" => now - 7300, "rss" => 184_320, "rtt_us" => 412, "ringspun" => Ringspun::VERSION,
             "waits" => { "1" => "read on descriptor 23", "2" => "the strands of a scope to end (3 × read on descriptor 24)" } }
    jobs = [["1", "mail", entry("Mail", ["ada@example.org", { "template" => "welcome" }]), now - 12],
            ["2", "default", entry("Import", ["2026-11.csv"], tags: ["nightly"]), now - 140],
            ["3", "default", entry("Invoice", [1041, "EUR"]), now - 1]]
    storage.announce(NODE, info, jobs)
    storage.announce("web-2:977:1b0a44d7e2c5", { **info.except("waits"), "quiet" => true, "rss" => 201_000 }, [])
  end
end
