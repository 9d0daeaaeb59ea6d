# frozen_string_literal: true

require "bench/rails_jobs"

enqueue = lambda do |library, meter, callers:, backend: nil, **size|
  Bench::RailsJobs.new(library, meter, connections: callers + 2, callers:, backend:).enqueue(callers:, **size)
end

Bench.table "active_job_enqueue" do
  title "Enqueuing by ActiveJob"
  about "For a second, so many callers in a Rails application call `perform_later` of a job with three arguments, one after " \
        "the other, or one calls `perform_all_later` with 1,000 jobs. Logging is off. Redis and Postgres are private, keep " \
        "nothing on the disk for certain, and are not counted; the floor is an adapter that makes the job's JSON and drops it."
  size seconds: 1.0, warm_up: 0.3, bulk: 1
  quick seconds: 0.2, warm_up: 0.1
  warm_up seconds: 0.02, warm_up: 0.01 # each sample has a program of its own, which this does not warm up
  row "1 caller", callers: 1, quick: false
  row "48 callers", callers: 48
  row "bulk of 1,000", callers: 1, bulk: 1_000, quick: false
  beforehand { |**| Bench::RailsJobs.ready }
  proof { |**| { lost: 0 } }
  columns :rate, :real_ns, :cpu_ns
  against_floor :real_ns
  against_peer :real_ns, :cpu_ns

  # Threads, and a connection for each.
  %w[sidekiq solid_queue good_job].each do |library|
    contender(library) { |meter, **size| enqueue.call(library, meter, **size) }
  end

  # A strand for each.
  Bench::BACKENDS.keys.first(2).each do |backend|
    contender "ringspun", requires: "ringspun", backends: [backend] do |meter, **size|
      enqueue.call("ringspun", meter, backend:, **size)
    end
  end

  bare("serialized") { |meter, **size| enqueue.call("nothing", meter, **size) }

  targets "rate >= 3 x sidekiq at 48 callers", "cpu_ns <= 1.1 x ringspun epoll"
end
