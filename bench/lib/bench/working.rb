# frozen_string_literal: true

require "json"
require "rbconfig"
require "securerandom"
require "bench/enqueuing"

module Bench
  # A worker process of a library, on a private Redis. The jobs are written without any library, so that their bytes are the same
  # for all. The worker's log goes into a file.
  class Working
    # Ends the worker with this process: https://man7.org/linux/man-pages/man1/setpriv.1.html
    ALONE = %w[setpriv --pdeathsig KILL].freeze
    SECONDS = 60

    LIBRARY = File.join(ROOT, "bench/lib")
    PROGRAMS = {
      sidekiq: ["-e", 'require "sidekiq/cli"; Sidekiq::CLI.instance.tap(&:parse).run', "--"],
      ringspun: [File.join(ROOT, "jobs/exe/ringspun-jobs")]
    }.freeze

    # @param moments [Array<String>] at which it reports; see Jobs::Tally
    def initialize(meter, library, concurrency, moments, weigh: false, backend: nil)
      @server = RedisServer.start
      @server.empty
      @library = library
      @moments = moments
      @folder = meter.scratch
      @pipe = File.join(@folder, "tally").tap { |path| File.mkfifo(path) }
      @command = [*ALONE, RbConfig.ruby, "-I#{LIBRARY}", *PROGRAMS.fetch(library),
                  "-r", File.join(LIBRARY, "bench/jobs/#{library}.rb"), "-q", "default", "-c", concurrency.to_s]
      @environment = { "REDIS_URL" => @server.url, "BENCH_TALLY" => @pipe, "BENCH_MOMENTS" => moments.join(","),
                       "BENCH_WEIGH" => ("1" if weigh), "RINGSPUN_BACKEND" => backend }
    end

    # Writes jobs in the form that all libraries read.
    def enqueue(job_class, arguments, count)
      @server.ask("SADD", "queues", "default")
      count.times.each_slice(1_000) do |slice|
        @server.ask("LPUSH", "queue:default", *slice.map { entry(job_class, arguments) })
      end
    end

    # Yields while the worker works.
    def run
      @tally = File.open(@pipe, "r+")
      @pid = spawn(@environment, *@command, %i[out err] => log, chdir: @folder)
      yield
    ensure
      stop(:KILL)
      @tally&.close
    end

    # Waits for the next moment, and returns its report: a Hash with clock, user, system and perhaps rss.
    def news
      give_up = Process.clock_gettime(Process::CLOCK_MONOTONIC) + SECONDS
      until @tally.wait_readable(0.1)
        ended = Process.wait(@pid, Process::WNOHANG)
        @pid = nil if ended
        raise "the worker has ended: #{last_words}" if ended
        raise "the worker is silent: #{last_words}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > give_up
      end
      JSON.parse(@tally.gets, symbolize_names: true)
    end

    # Ends the worker: ours by a TERM, for it acknowledges what it has done. Sidekiq has nothing more to do, but would take
    # seconds. Returns the jobs that are left, in the queue or in flight.
    def finish
      stop(@library == :sidekiq ? :KILL : :TERM)
      lists = @server.ask("KEYS", "queue:*")
      { left: lists.sum { |list| @server.ask("LLEN", list) }, failed: @server.ask("ZCARD", "retry") }
    end

    private

    def entry(job_class, arguments)
      now = Process.clock_gettime(Process::CLOCK_REALTIME)
      JSON.generate("class" => job_class, "args" => arguments, "queue" => "default", "jid" => SecureRandom.hex(12),
                    "retry" => true, "created_at" => now, "enqueued_at" => now)
    end

    def log = File.join(@folder, "log")
    def last_words = File.exist?(log) ? File.readlines(log, chomp: true).last.to_s[0, 300] : ""

    def stop(signal)
      return unless @pid

      Process.kill(signal, @pid)
      Process.wait(@pid)
      @pid = nil
    end
  end
end
