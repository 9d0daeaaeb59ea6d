# frozen_string_literal: true

require "jobs_helper"
require "logger"
require "ringspun/jobs/cli"
require "ringspun/jobs/storage/sqlite"
require "support/redis_case"
require "tmpdir"

# All jobs are moved while workers of both storages run and a client still enqueues into the old one.
class RelocationBesideWorkersTest < RedisCase
  Relocation = Jobs::CLI.const_get(:Relocation)

  # Counts its runs.
  class Counted
    include Ringspun::Jobs::Job

    RUNS = Hash.new(0)

    def perform(number) = RUNS[number] += 1
  end

  def setup
    super
    @folder = Dir.mktmpdir("ringspun-relocation-")
    Counted::RUNS.clear
  end

  def teardown
    super
    FileUtils.rm_rf(@folder)
    Storage::Sqlite.const_get(:Guard).sweep
  end

  def pushes(numbers)
    numbers.map do |number|
      entry = { class: Counted.name, args: [number], jid: "j#{number}", queue: "default", created_at: 1.5 }
      Storage::Push.new("default", JSON.generate(entry), "j#{number}")
    end
  end

  def left(stats) = stats.values_at(:enqueued, :scheduled, :retries, :dead, :in_flight).sum

  def test_from_redis_to_a_file = assert_each_runs_once(storage, file)

  def test_from_a_file_to_redis = assert_each_runs_once(file, storage)

  def file = @file ||= opened(Storage::Sqlite.new("#{@folder}/jobs.sqlite3", durable: :normal))

  def worker_of(storage, **settings)
    config = Jobs::Config.new.update({ lease: 600, metrics: false, **settings })
    Jobs::Worker.new(config, storage: storage, logger: Logger.new(nil))
  end

  def assert_each_runs_once(source, target)
    source.push(pushes(0...200))
    Ringspun.run do |machine|
      workers = [worker_of(source, concurrency: 2), worker_of(target, concurrency: 10)]
      running = workers.map { |worker| machine.spin { worker.run } }
      client = machine.spin { (200...300).each_slice(10) { |numbers| source.push(pushes(numbers)) } }
      Relocation.new(source, target, page: 7).run { |stats| client.alive? || left(stats).positive? }
      machine.sleep(0.005) until left(target.stats).zero?
      workers.each(&:stop)
      running.each(&:join)
    end
    assert_equal (0...300).to_h { |number| [number, 1] }, Counted::RUNS.sort.to_h
  end
end
