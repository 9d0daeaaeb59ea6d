# frozen_string_literal: true

require "net/http"
require "bench/http_server"
require "bench/working"

latency = 0.1

# The region: from the beginning of the first job to the end of the last.
run = lambda do |meter, library, concurrency, calls, backend = nil|
  next if calls.zero? # a worker is a process of its own, which nothing here warms up

  Bench::HttpServer.during(latency) do |port|
    moments = ["begun 1", "done #{calls}"]
    working = Bench::Working.new(meter, library, concurrency, moments, backend:)
    working.enqueue("CallJob", [port], calls)
    working.run do
      from, to = moments.map { working.news }
      meter.take(user: to[:user] - from[:user], system: to[:system] - from[:system], real: to[:clock] - from[:clock])
      meter.note(:beyond, to[:clock] - from[:clock] - latency)
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

  # Every twentieth of them, for they take long, and a process that has slept for long is slower.
  bare "one by one" do |meter, calls:|
    next if calls.zero?

    Bench::HttpServer.during(latency) do |port|
      asked = (calls / 20.0).ceil
      cpu = Process.times
      began = meter.now
      answered = asked.times.count { Net::HTTP.get("127.0.0.1", "/", port) == "hello" }
      real = meter.now - began
      spent = Process.times
      user, system, real = [spent.utime - cpu.utime, spent.stime - cpu.stime, real].map { |seconds| seconds * calls / asked }
      meter.take(user:, system:, real:)
      meter.note(:beyond, user + system)
      { left: asked - answered, failed: 0 }
    end
  end

  targets "beyond <= 1.3 x floor", "real <= 0.2 x sidekiq", "total <= 1.1 x ringspun epoll"
end
