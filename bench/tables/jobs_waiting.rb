# frozen_string_literal: true

require "bench/working"

# The memory of each of so many jobs that wait, in a worker that has run others before.
weigh = lambda do |meter, jobs, backend|
  next if jobs.zero? # a worker is a process of its own, which nothing here warms up

  before = 500
  working = Bench::Working.new(meter, :ringspun, jobs, ["done #{before}", "begun #{jobs}"], weigh: true, backend:)
  working.enqueue("HardJob", [], before)
  working.run do
    empty = working.news
    working.enqueue("SleepJob", [], jobs)
    full = working.news
    meter.take(user: full[:user] - empty[:user], system: full[:system] - empty[:system], real: full[:clock] - empty[:clock])
    meter.note(:parked, jobs)
    meter.note(:rss_per_strand, (full[:rss] - empty[:rss]) / jobs)
  end
  { waiting: jobs }
end

Bench.table "jobs_waiting" do
  title "Jobs that wait"
  about "10,000 jobs which wait in `sleep` in one worker process: resident bytes for each, beside a bare parked fiber."
  size jobs: 10_000
  quick jobs: 1_000
  warm_up jobs: 0
  proof { |jobs:| { waiting: jobs } }
  columns :rss_per_strand, :parked, :real
  against_floor :rss_per_strand
  against_peer :rss_per_strand

  Bench::BACKENDS.keys.first(2).each do |backend|
    contender "ringspun", requires: "ringspun", backends: [backend] do |meter, jobs:|
      weigh.call(meter, jobs, backend)
    end
  end

  bare "bare fiber" do |meter, jobs:|
    next if jobs.zero?

    before = meter.resident_bytes
    fibers = meter.measure { Array.new(jobs) { Fiber.new { Fiber.yield }.tap(&:resume) } }
    meter.note(:parked, jobs)
    meter.note(:rss_per_strand, (meter.resident_bytes - before) / jobs)
    { waiting: fibers.each(&:resume).count { |fiber| !fiber.alive? } }
  end

  targets "rss_per_strand <= floor + 7168", "total <= 1.1 x ringspun epoll"
end
