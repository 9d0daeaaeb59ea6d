# frozen_string_literal: true

require "bench/calling"
require "bench/working"

latency = 0.1

# The region: from the beginning of the first job to the end of the last.
run = lambda do |meter, library, concurrency, calls, backend = nil|
  next if calls.zero? # a worker is a process of its own, which nothing here warms up

  Bench::HttpServer.during(latency) do |port|
    moments = Bench::Calling.moments(calls)
    working = Bench::Working.new(meter, library, concurrency, moments, backend:)
    working.enqueue("CallJob", [port], calls)
    working.run do
      Bench::Calling.take(meter, working, moments, latency)
      working.finish
    end
  end
end

Bench.table "jobs_calls" do
  title "Jobs that call"
  about "1,000 jobs, each with one call by Net::HTTP to a server in another process which takes 100 ms for it; one worker " \
        "process, all jobs in the queue when it starts. From the beginning of the first to the end of the last. `beyond` is " \
        "what it takes longer than 100 ms or, for the floor, which makes one in twenty of the calls, one by one, twenty times " \
        "its CPU time."
  size calls: 1_000
  quick calls: 100
  warm_up calls: 0
  proof { |**| { left: 0, failed: 0 } }
  columns :real, :user, :system, :beyond
  against_floor :beyond
  against_peer :real, :total

  # Fifty threads.
  contender "sidekiq", requires: "sidekiq" do |meter, calls:|
    run.call(meter, :sidekiq, 50, calls)
  end

  # A thousand strands.
  Bench::BACKENDS.keys.first(2).each do |backend|
    contender "ringspun", requires: "ringspun", backends: [backend] do |meter, calls:|
      run.call(meter, :ringspun, 1_000, calls, backend)
    end
  end

  bare("one by one") { |meter, calls:| Bench::Calling.one_by_one(meter, calls, latency) }

  targets "beyond <= 1.3 x floor", "real <= 0.2 x sidekiq", "total <= 1.1 x ringspun epoll"
end
