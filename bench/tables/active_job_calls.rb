# frozen_string_literal: true

require "bench/calling"
require "bench/rails_jobs"

latency = 0.1

# The region: from the beginning of the first job to the end of the last.
run = lambda do |library, program, meter, calls:, connections: 5, backend: nil|
  next if calls.zero? # a worker is a process of its own, which nothing here warms up

  Bench::HttpServer.during(latency) do |port|
    jobs = Bench::RailsJobs.new(library, meter, connections:, backend:)
    moments = Bench::Calling.moments(calls)
    jobs.work(calls, "CallJob", [port], program, moments) do |worker|
      Bench::Calling.take(meter, worker, moments, latency)
    end
  end
end

environment = File.join(Bench::RailsJobs::FOLDER, "config/environment.rb")
queue = %w[-q default -c]

Bench.table "active_job_calls" do
  title "Jobs of ActiveJob that call"
  about "1,000 jobs of a Rails application, each with one call by Net::HTTP to a server in another process which takes 100 ms " \
        "for it; one worker process, all jobs in the queue when it starts. Logging is off. From the beginning of the first to " \
        "the end of the last. `beyond` and the floor are as in `jobs_calls`."
  size calls: 1_000
  quick calls: 100
  warm_up calls: 0
  beforehand { |**| Bench::RailsJobs.ready }
  proof { |**| { left: 0, failed: 0 } }
  columns :real, :user, :system, :beyond
  against_floor :beyond
  against_peer :real, :total

  # Its default, and what is best here.
  [5, 50].each do |threads|
    contender "sidekiq #{threads}" do |meter, **size|
      program = ["-e", 'require "sidekiq/cli"; Sidekiq::CLI.instance.tap(&:parse).run', "--"]
      run.call("sidekiq", [*program, "-r", environment, *queue, threads.to_s], meter, **size)
    end
  end

  # In one process, which is then the supervisor as well: https://github.com/rails/solid_queue#fork-vs-async-mode
  { "fibers" => 1_000, "threads" => 50 }.each do |kind, number|
    contender "solid_queue #{kind}" do |meter, **size|
      program = ["-r", environment, "-e", "SolidQueue::Supervisor.start(mode: :async, skip_recurring: true, " \
                                          "workers: [{ queues: '*', #{kind}: #{number}, polling_interval: 0.1 }])"]
      run.call("solid_queue", program, meter, connections: kind == "threads" ? number + 5 : 20, **size)
    end
  end

  # A connection for each thread and three for itself, as its guide has it. It looks for the application where it is started.
  contender "good_job" do |meter, **size|
    program = ["-e", "Dir.chdir('#{Bench::RailsJobs::FOLDER}'); require 'good_job/cli'; " \
                     "GoodJob::CLI.log_to_stdout = false; load Gem.bin_path('good_job', 'good_job')", "start", "--threads=50"]
    run.call("good_job", program, meter, connections: 53, **size)
  end

  # A thousand strands.
  Bench::BACKENDS.keys.first(2).each do |backend|
    contender "ringspun", requires: "ringspun", backends: [backend] do |meter, **size|
      program = [File.join(Bench::ROOT, "jobs/exe/ringspun-jobs"), "-r", environment, *queue, "1000"]
      run.call("ringspun", program, meter, backend:, **size)
    end
  end

  bare("one by one") { |meter, calls:| Bench::Calling.one_by_one(meter, calls, latency) }

  targets "real <= 0.3333 x sidekiq 5", "real <= 0.3333 x sidekiq 50", "total <= 1.1 x ringspun epoll"
end
