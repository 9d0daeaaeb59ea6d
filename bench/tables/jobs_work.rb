# frozen_string_literal: true

require "bench/working"

# The region: from the end of the first tenth of the jobs to that of the ninth. So all work for a job counts, also what comes
# after its end.
drain = lambda do |meter, library, concurrency, jobs, backend = nil|
  next if jobs.zero? # a worker is a process of its own, which nothing here warms up

  moments = [jobs / 10, jobs * 9 / 10, jobs].map { |number| "done #{number}" }
  working = Bench::Working.new(meter, library, concurrency, moments, backend:)
  working.enqueue("HardJob", [1_021, "u" * 60, { "urgent" => true }], jobs)
  working.run do
    from, to, = moments.map { working.news }
    meter.take(user: to[:user] - from[:user], system: to[:system] - from[:system], real: to[:clock] - from[:clock])
    meter.operations = (jobs * 9 / 10) - (jobs / 10)
    working.finish
  end
end

Bench.table "jobs_work" do
  title "Empty jobs"
  about "One worker process runs jobs that do nothing but count, of which 20,000 are in the queue of a private Redis when it " \
        "starts; its log, as it is by itself, goes to a file. Measured in the worker, from the 2,000th to the 18,000th."
  size jobs: 20_000
  quick jobs: 2_000
  warm_up jobs: 0
  proof { |**| { left: 0, failed: 0 } }
  columns :rate, :real_ns, :cpu_ns
  against_peer :real_ns, :cpu_ns

  # The best concurrency for it depends on the machine.
  [5, 10, 25].each do |threads|
    contender "sidekiq #{threads}", requires: "sidekiq" do |meter, jobs:|
      drain.call(meter, :sidekiq, threads, jobs)
    end
  end

  Bench::BACKENDS.keys.first(2).each do |backend|
    contender "ringspun", requires: "ringspun", backends: [backend] do |meter, jobs:|
      drain.call(meter, :ringspun, 1_000, jobs, backend)
    end
  end

  targets "real_ns <= 0.3333 x best peer", "cpu_ns <= 1.1 x ringspun epoll"
end
