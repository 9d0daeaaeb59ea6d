# frozen_string_literal: true

require "json"
require "open3"
require "rbconfig"
require "bench/rails_database"
require "bench/redis_server"
require "bench/worker_process"
require "bench/yjit"

module Bench
  # Programs of the Rails application in bench/peers/rails, with the ActiveJob adapter of one library. They have gems of their
  # own, which `bin/setup --peers` installs.
  class RailsJobs
    FOLDER = File.join(ROOT, "bench/peers/rails")
    COMMAND = "bin/setup --peers"

    # Instead of the load path of the bench.
    LIBRARIES = { "RUBYLIB" => nil, "RUBYOPT" => Yjit.option, "BUNDLER_SETUP" => nil,
                  "BUNDLE_GEMFILE" => File.join(FOLDER, "Gemfile"), "BUNDLE_PATH" => File.join(ROOT, "vendor/bundle"),
                  "BUNDLE_FROZEN" => "true" }.freeze
    LOAD_PATH = ["-rbundler/setup", *%w[bench/lib runtime/lib jobs/lib].map { |folder| "-I#{File.join(ROOT, folder)}" }].freeze

    # How many jobs are left, and how many have failed.
    COUNTS = {
      "solid_queue" => ["select count(*) from solid_queue_jobs where finished_at is null",
                        "select count(*) from solid_queue_failed_executions"],
      "good_job" => ["select count(*) from good_jobs where finished_at is null",
                     "select count(*) from good_jobs where error is not null"]
    }.freeze

    # Looks for the gems, and starts Postgres, once in a process; for the parent.
    #
    # @param server [Boolean] whether Postgres is wanted
    # @raise (see find_gems)
    def self.ready(server: true)
      @found ||= find_gems
      @server ||= server && PostgresServer.start
    end

    # @raise [Unavailable] which names the command that installs the gems
    def self.find_gems(libraries = LIBRARIES)
      _, status = Open3.capture2e(libraries, RbConfig.ruby, "-rbundler/setup", "-e", "")
      status.success? || raise(Unavailable, COMMAND)
    end

    # @param callers [Integer] with a connection of its own each, to Redis
    # @param connections [Integer] to Postgres
    # @param database [RailsDatabase::InFile, nil] nil: Postgres
    def initialize(library, meter, connections: 5, callers: 5, backend: nil, database: nil)
      @library = library
      @meter = meter
      @redis = RedisServer.start.tap(&:empty)
      @database = database || RailsDatabase::OnServer.new(library, connections)
      @environment = LIBRARIES.merge("BENCH_LIBRARY" => library, "BENCH_CALLERS" => callers.to_s, "REDIS_URL" => @redis.url,
                                     "RINGSPUN_BACKEND" => backend, **@database.environment)
    end

    # The region: callers that enqueue for so long.
    def enqueue(callers:, seconds:, warm_up:, bulk:)
      answer = @database.during { JSON.parse(run("enqueue.rb", callers, seconds, warm_up, bulk), symbolize_names: true) }
      @meter.take(**answer.slice(:user, :system, :real))
      @meter.operations = answer.fetch(:operations)
      answer.slice(:lost)
    end

    # Enqueues jobs, and yields a worker for them. Returns the proof.
    #
    # @param job_class [String]
    # @param arguments [Array] of each job
    # @param program [Array<String>] arguments of Ruby
    def work(jobs, job_class, arguments, program, moments)
      @database.during do
        run("fill.rb", jobs, job_class, JSON.generate(arguments))
        worker = WorkerProcess.new(@meter, [*LOAD_PATH, *program], @environment, moments)
        worker.run do
          yield worker
          worker.stop(@library == "sidekiq" ? :KILL : :TERM) # which has nothing more to do, but would take seconds
        end
        left
      end
    end

    private

    def run(program, *arguments)
      command = [RbConfig.ruby, *LOAD_PATH, File.join(FOLDER, program), *arguments.map(&:to_s)]
      out, err, status = Open3.capture3(@environment, *command)
      raise "#{program}: #{err.lines.first&.chomp}" unless status.success?

      out
    end

    def left
      counts = COUNTS[@library]
      return %i[left failed].zip(counts.map { |sql| @database.count(sql) }).to_h if counts

      @database.respond_to?(:jobs_left) ? @database.jobs_left : @redis.jobs_left
    end
  end
end
