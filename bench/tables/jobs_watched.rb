# frozen_string_literal: true

require "bench/watching"

# The region: as in `jobs_work`.
drain = lambda do |meter, jobs, watched_by, backend|
  next if jobs.zero? # a worker is a process of its own, which nothing here warms up

  moments = [jobs / 10, jobs * 9 / 10, jobs].map { |number| "done #{number}" }
  working = Bench::Watching.new(meter, :ringspun, 1_000, moments, backend:)
  working.enqueue("HardJob", [1_021, "u" * 60, { "urgent" => true }], jobs)
  working.run_watched_by(watched_by) do
    from, to, = moments.map { working.news }
    meter.take(user: to[:user] - from[:user], system: to[:system] - from[:system], real: to[:clock] - from[:clock])
    meter.operations = (jobs * 9 / 10) - (jobs / 10)
    working.finish
  end
end

Bench.table "jobs_watched" do
  title "Watched jobs"
  about "As `jobs_work`, with 100,000 jobs, while another process looks on: `ringspun-jobs top`, or the web page whose charts " \
        "are live, in one tab or in a thousand, or the page of numbers for Prometheus, asked for each second. They have no " \
        "server of HTTP between, and their own time is not counted."
  size jobs: 100_000, watched_by: "nobody"
  quick jobs: 5_000
  warm_up jobs: 0
  Bench::Watching::PROGRAMS_BY_NAME.each_key do |name|
    row name, watched_by: name, quick: ["nobody", "a tab"].include?(name)
  end
  proof { |**| { left: 0, failed: 0 } }
  columns :rate, :real_ns, :cpu_ns

  Bench::BACKENDS.keys.first(2).each do |backend|
    contender "ringspun", requires: "ringspun", backends: [backend] do |meter, jobs:, watched_by:|
      drain.call(meter, jobs, watched_by, backend)
    end
  end

  targets(*(Bench::Watching::PROGRAMS_BY_NAME.keys - ["nobody"]).map { |name| "rate at #{name} >= 0.98 x at nobody" },
          "cpu_ns <= 1.1 x ringspun epoll")
end
