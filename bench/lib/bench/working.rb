# frozen_string_literal: true

require "json"
require "securerandom"
require "bench/enqueuing"
require "bench/worker_process"

module Bench
  # A worker process on a private Redis or on a file, or several. The jobs are written without any library, so that their bytes
  # are the same for all.
  class Working < WorkerProcess
    PROGRAMS = {
      sidekiq: ["-e", 'require "sidekiq/cli"; Sidekiq::CLI.instance.tap(&:parse).run', "--"],
      ringspun: [File.join(ROOT, "jobs/exe/ringspun-jobs")]
    }.freeze

    # @param processes [Integer] of Sidekiq each is started by itself, ours have a supervisor
    # @param store [RedisServer, JobsFile]
    def initialize(meter, library, concurrency, moments, weigh: false, backend: nil, processes: 1, store: RedisServer.start)
      @store = store
      @store.empty
      @library = library
      supervised = library == :ringspun && processes > 1
      super(meter, ["-I#{LIBRARY}", *PROGRAMS.fetch(library), "-r", File.join(LIBRARY, "bench/jobs/#{library}.rb"),
                    "-q", "default", "-c", concurrency.to_s, *(["--processes", processes.to_s] if supervised)],
            { **@store.environment, "RINGSPUN_BACKEND" => backend }, moments, weigh:, copies: supervised ? 1 : processes)
    end

    def enqueue(job_class, arguments, count) = @store.push(count.times.lazy.map { Working.entry(job_class, arguments) })

    # Ends the worker: ours by a TERM, for it acknowledges what it has done. Sidekiq has nothing more to do, but would take
    # seconds. Returns the jobs that are left, in the queue or in flight.
    def finish
      stop(@library == :sidekiq ? :KILL : :TERM)
      @store.jobs_left
    end

    # @return [String] a new job in the form that all libraries read
    def self.entry(job_class, arguments)
      now = Process.clock_gettime(Process::CLOCK_REALTIME)
      JSON.generate("class" => job_class, "args" => arguments, "queue" => "default", "jid" => SecureRandom.hex(12),
                    "retry" => true, "created_at" => now, "enqueued_at" => now)
    end
  end
end
