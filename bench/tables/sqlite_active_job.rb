# frozen_string_literal: true

require "bench/rails_jobs"

environment = File.join(Bench::RailsJobs::FOLDER, "config/environment.rb")

# The region: from the end of the first tenth of the jobs to that of the ninth.
drain = lambda do |library, program, meter, jobs:, connections: 5, backend: nil, durable: "full"|
  next if jobs.zero? # a worker is a process of its own, which nothing here warms up

  database = Bench::RailsDatabase::InFile.new(meter.scratch, connections, durable)
  moments = [jobs / 10, jobs * 9 / 10, jobs].map { |number| "done #{number}" }
  Bench::RailsJobs.new(library, meter, backend:, database:).work(jobs, "EmptyJob", [], program, moments) do |worker|
    from, to, = moments.map { worker.news }
    meter.take(user: to[:user] - from[:user], system: to[:system] - from[:system], real: to[:clock] - from[:clock])
    meter.operations = (jobs * 9 / 10) - (jobs / 10)
  end
end

# A thousand strands.
ours = lambda do |meter, backend, durable, jobs|
  program = [File.join(Bench::ROOT, "jobs/exe/ringspun-jobs"), "-r", environment, "-q", "default", "-c", "1000"]
  drain.call("ringspun", program, meter, jobs:, backend:, durable:)
end

Bench.table "sqlite_active_job" do
  title "Jobs of ActiveJob in a file"
  about "Empty jobs of a Rails application whose database is a file of SQLite, all in the queue when one worker process " \
        "starts: 1,000 of Solid Queue, and 10,000 of ours, in a file of their own. Logging is off. Measured in the worker, " \
        "from the end of the first tenth to that of the ninth. By the settings of Rails nobody waits for the disk, and " \
        "`normal` does not either; `ringspun` waits."
  size jobs: 10_000
  quick jobs: 1_000
  warm_up jobs: 0
  beforehand { |**| Bench::RailsJobs.ready(server: false) }
  proof { |**| { left: 0, failed: 0 } }
  columns :rate, :real_ns, :cpu_ns
  against_peer :real_ns, :cpu_ns

  # Its default, and more. In one process, which is then the supervisor as well:
  # https://github.com/rails/solid_queue#fork-vs-async-mode
  [3, 25].each do |threads|
    contender "solid_queue #{threads}", size: { jobs: 1_000 } do |meter, **size|
      program = ["-r", environment, "-e", "SolidQueue::Supervisor.start(mode: :async, skip_recurring: true, " \
                                          "workers: [{ queues: '*', threads: #{threads}, polling_interval: 0.1 }])"]
      drain.call("solid_queue", program, meter, connections: threads + 5, **size)
    end
  end

  Bench::BACKENDS.keys.first(2).each do |backend|
    contender "ringspun", requires: "ringspun", backends: [backend] do |meter, jobs:|
      ours.call(meter, backend, "full", jobs)
    end
  end

  beside("normal", requires: "ringspun") { |meter, jobs:| ours.call(meter, Bench::MAIN_BACKEND, "normal", jobs) }

  targets "rate >= 5 x solid_queue 3", "rate >= 5 x solid_queue 25", "cpu_ns <= 1.1 x ringspun epoll"
end
