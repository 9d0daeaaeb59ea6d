# frozen_string_literal: true

require "bench/computing"
require "bench/working"

# More than one process has room for, so that each gets some.
ask_each = lambda do |working, processes|
  seen = []
  until seen.uniq.size == processes
    working.enqueue("ComputeJob", [], processes * 50)
    seen += Array.new(processes * 50) { working.news.fetch(:pid) }
  end
end

# The region: from the end of the first tenth of the jobs to that of the ninth, when all processes are there.
compute = lambda do |meter, library, jobs, processes, backend = nil|
  next if jobs.zero? # a worker is a process of its own, which nothing here warms up

  working = Bench::Working.new(meter, library, 25, ["each"], backend:, processes:)
  working.run do
    ask_each.call(working, processes)
    working.enqueue("ComputeJob", [], jobs)
    region = Array.new(jobs) { working.news }[(jobs / 10)...(jobs * 9 / 10)]
    spent = region.group_by { |news| news.fetch(:pid) }.values.map { |all| all.values_at(0, -1) }
    user, system = %i[user system].map { |clock| spent.sum { |from, to| to.fetch(clock) - from.fetch(clock) } }
    meter.take(user:, system:, real: region.last.fetch(:clock) - region.first.fetch(:clock))
    meter.operations = region.size - 1
    working.finish
  end
end

Bench.table "jobs_cores" do
  title "Jobs that compute"
  about "Jobs which compute for a millisecond each, by several worker processes, one for each core, of which each runs 25 at " \
        "once. The bench hears of the end of each job, on the same cores. The floor is as many bare processes, which compute " \
        "without being given anything."
  size jobs: 4_000 * Bench::Computing::PROCESSES.last, processes: Bench::Computing::PROCESSES.last
  quick jobs: 500 * Bench::Computing::PROCESSES.last
  warm_up jobs: 0
  scale("processes", :processes, *Bench::Computing::PROCESSES) { |processes| { jobs: 4_000 * processes } }
  proof { |**| { left: 0, failed: 0 } }
  columns :real_ns, :cpu_ns, :rate
  against_floor :real_ns
  against_peer :real_ns, :cpu_ns

  # So many processes, each started by itself.
  contender "sidekiq", requires: "sidekiq" do |meter, jobs:, processes:|
    compute.call(meter, :sidekiq, jobs, processes)
  end

  # A supervisor and its workers.
  Bench::BACKENDS.keys.first(2).each do |backend|
    contender "ringspun", requires: "ringspun", backends: [backend] do |meter, jobs:, processes:|
      compute.call(meter, :ringspun, jobs, processes, backend)
    end
  end

  bare "bare processes" do |meter, jobs:, processes:|
    next if jobs.zero?

    Bench::Computing.in_processes(meter, jobs, processes)
    { left: 0, failed: 0 }
  end

  targets "real_ns <= 1.15 x floor", "real_ns <= 0.95 x sidekiq", "cpu_ns <= 1.1 x ringspun epoll"
end
