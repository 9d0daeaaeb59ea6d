# frozen_string_literal: true

require "bench/watching"

# The region: the windows in which somebody watches, out of one worker that drains one queue.
drain = lambda do |meter, jobs, watched_by, backend|
  next if jobs.zero? # a worker is a process of its own, which nothing here warms up

  watching = Bench::Watching.new(meter, jobs, watched_by, backend:)
  watching.enqueue("HardJob", [1_021, "u" * 60, { "urgent" => true }], jobs)
  watching.run do
    watched, alone = watching.windows
    meter.take(**%i[user system real].to_h { |clock| [clock, watched.sum(&clock)] })
    meter.operations = watched.sum(&:jobs)
    meter.note(:kept, alone.sum(&:real) / watched.sum(&:real))
    watching.finish
  end
end

Bench.table "jobs_watched" do
  title "Watched jobs"
  about "As `jobs_work`, with 400,000 jobs, while others look on: `ringspun-jobs top`, the web page whose charts are live, or " \
        "the page of numbers for Prometheus, asked for each second. One would cost too little to be measured: there are ten " \
        "servers, a thousand tabs of one, or a `top` that looks ten times as often. They have no server of HTTP between, and " \
        "their own time is not counted. They are stopped and let go on by turns, forty times while one worker works, and their " \
        "seconds pass meanwhile: `kept` is the rate while they watch over that while they do not."
  size jobs: 400_000, watched_by: "10 tops"
  quick jobs: 10_000
  warm_up jobs: 0
  Bench::Watching::PROGRAMS_BY_NAME.each_key do |name|
    row name, watched_by: name, quick: name == "10 metrics"
  end
  proof { |**| { left: 0, failed: 0 } }
  columns :kept, :rate, :cpu_ns

  Bench::BACKENDS.keys.first(2).each do |backend|
    contender "ringspun", requires: "ringspun", backends: [backend] do |meter, jobs:, watched_by:|
      drain.call(meter, jobs, watched_by, backend)
    end
  end

  # One costs less than 2 %, which is a fifth for ten, and so do a thousand tabs of a server together.
  targets "kept >= 0.8 at 10 tops and 10 tabs of 10 servers and 10 metrics", "kept >= 0.98 at 1,000 tabs of a server",
          "cpu_ns <= 1.1 x ringspun epoll"
end
