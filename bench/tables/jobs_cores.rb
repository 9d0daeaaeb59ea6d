# frozen_string_literal: true

require "bench/computing"
require "bench/working"

# The region: half of the jobs, from the moment at which each process has done one.
compute = lambda do |meter, library, jobs, processes, backend = nil|
  next if jobs.zero? # a worker is a process of its own, which nothing here warms up

  working = Bench::Working.new(meter, library, 25, ["each"], backend:, processes:)
  working.enqueue("ComputeJob", [], jobs)
  working.run do
    begun = []
    begun << working.news.fetch(:pid) until begun.uniq.size == processes
    meter.operations = jobs / 2
    raise "one process has done most before the other began" if begun.size > jobs / 2

    meter.measure { (jobs / 2).times { working.news } }
    (jobs - begun.size - (jobs / 2)).times { working.news }
    working.finish
  end
end

Bench.table "jobs_cores" do
  title "Jobs that compute"
  about "Jobs which compute for a millisecond each, by several worker processes, one for each core, of which each runs 25 at " \
        "once. The floor is as many bare processes, which compute without being given anything."
  size jobs: 8_000, processes: Bench::Computing::PROCESSES.last
  quick jobs: 2_000
  warm_up jobs: 0
  scale("processes", :processes, *Bench::Computing::PROCESSES) { |processes| { jobs: 4_000 * processes } }
  proof { |**| { left: 0, failed: 0 } }
  columns :real_ns, :rate
  against_floor :real_ns
  against_peer :real_ns

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

  targets "real_ns <= 1.15 x floor", "real_ns <= 0.9 x sidekiq"
end
