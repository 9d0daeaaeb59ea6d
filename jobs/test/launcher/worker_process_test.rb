# frozen_string_literal: true

require "jobs_helper"
require_relative "../support/redis_case"
require_relative "../support/worked"

# Processes with workers that are killed, or stand still for longer than their leases last.
class WorkerProcessTest < RedisCase
  include Worked

  # Jobs there wait until somebody says "go".
  CODE = <<~'RUBY'
    require "ringspun/jobs"
    redis = { path: ARGV[0] }
    module Worked
      class Task
        include Ringspun::Jobs::Job
        def perform(*)
          client = RedisClient.new(**REDIS)
          sleep 0.02 until client.call("GET", "go")
        ensure
          client&.close
        end
      end
    end
    Worked::REDIS = redis
    config = Ringspun::Jobs::Config.new.update(lease: 1, beat: 0.2)
    storage = Ringspun::Jobs::Storage::Redis.new(redis)
    worker = Ringspun::Jobs::Worker.new(config, storage: storage, logger: Logger.new(nil))
    trap(:TERM) { worker.stop }
    worker.run
    p worker.counts
  RUBY

  JOBS = 5

  def storage = @storage ||= open_storage({ path: redis_path })

  def setup
    super
    path = redis_path
    on("note") do |name, _|
      client = RedisClient.new(path: path, timeout: 60)
      client.call("RPUSH", "ran", name)
      client.close
    end
    JOBS.times { |number| push("note", number) }
  end

  def teardown
    Process.kill(:KILL, @child) if @child
    Process.wait(@child) if @child
    @output&.close
    super
  end

  # A process that has all jobs in flight.
  def start
    @output, writer = IO.pipe
    folders = [*$LOAD_PATH.grep(%r{/(jobs|runtime)/lib}), *Gem.loaded_specs.values.flat_map(&:full_require_paths)]
    ruby = [RbConfig.ruby, *folders.map { |folder| "-I#{folder}" }]
    @child = spawn({ "RUBYOPT" => nil }, "setpriv", "--pdeathsig=KILL", *ruby, "-e", CODE, redis_path, out: writer)
    writer.close
    yield_until("it has them") { sleep(0.01) && storage.stats[:in_flight] == JOBS }
  end

  def end_child(signal)
    Process.kill(signal, @child)
    Process.wait(@child)
    @child = nil
  end

  # Runs what the other process had in flight.
  def take_over
    Ringspun.run do |machine|
      @worker = new_worker(lease: 1, beat: 0.2, options: { quarantine: Jobs::Quarantine.new })
      strand = machine.spin { worker.run }
      yield_until("all have run") { sleep(0.02) && worker.counts[:done] == JOBS }
      yield if block_given?
    ensure
      worker.stop
      strand.join
    end
  end

  def ran = call("LRANGE", "ran", 0, -1).map(&:to_i).sort

  def test_what_a_killed_process_had_in_flight_runs_elsewhere
    start
    end_child(:KILL)
    take_over
    assert_equal (0...JOBS).to_a, ran
    assert_equal({ done: JOBS }, worker.counts)
    assert_equal [JOBS, 0, 0, 0], storage.stats.values_at(:processed, :failed, :dead, :in_flight)
  end

  def test_a_process_that_stood_still_finds_its_jobs_taken_away
    start
    Process.kill(:STOP, @child)
    take_over do
      call("SET", "go", "1")
      Process.kill(:CONT, @child)
      sleep(0.05) until call("KEYS", "ringspun:alive:*").size == 2 # it is here again
    end
    end_child(:TERM)
    assert_match(/taken_away(=>|: )#{JOBS}\}/, @output.read)
    assert_equal (0...JOBS).to_a, ran
    assert_equal [JOBS, 0, 0, 0], storage.stats.values_at(:processed, :failed, :dead, :in_flight)
  end
end
