# frozen_string_literal: true

require "bench/jobs_file"
require "bench/working"

# The region: from the end of the first tenth of the jobs to that of the ninth. So all work for a job counts, also what comes
# after its end.
drain = lambda do |meter, jobs, store, backend = nil|
  next if jobs.zero? # a worker is a process of its own, which nothing here warms up

  moments = [jobs / 10, jobs * 9 / 10, jobs].map { |number| "done #{number}" }
  working = Bench::Working.new(meter, :ringspun, 1_000, moments, backend:, store:)
  working.enqueue("HardJob", [1_021, "u" * 60, { "urgent" => true }], jobs)
  working.run do
    from, to, = moments.map { working.news }
    meter.take(user: to[:user] - from[:user], system: to[:system] - from[:system], real: to[:clock] - from[:clock])
    meter.operations = (jobs * 9 / 10) - (jobs / 10)
    working.finish
  end
end

Bench.table "sqlite_work" do
  title "Empty jobs in a file"
  about "As `jobs_work`, with the jobs in a file of SQLite: one worker process runs 20,000 that do nothing but count. Of each " \
        "the end is stored, which waits for the disk in the row `full`. `redis` is our storage in a private Redis, which " \
        "does that as well there, and whose own time is not counted."
  size jobs: 20_000
  quick jobs: 2_000
  warm_up jobs: 0
  row "full", durable: "full", fsync: "always"
  row "normal", durable: "normal", fsync: "no"
  proof { |**| { left: 0, failed: 0 } }
  columns :rate, :real_ns, :cpu_ns

  Bench::BACKENDS.keys.first(2).each do |backend|
    contender "ringspun", requires: "ringspun", backends: [backend] do |meter, jobs:, durable:, **|
      drain.call(meter, jobs, Bench::JobsFile.new(meter.scratch, durable), backend)
    end
  end

  beside "redis", requires: "ringspun" do |meter, jobs:, fsync:, **|
    drain.call(meter, jobs, Bench::RedisServer.start(fsync:), Bench::MAIN_BACKEND)
  end

  targets "rate >= 0.3 x redis", "cpu_ns <= 1.1 x ringspun epoll"
end
