# frozen_string_literal: true

require_relative "faulty"

# Tests of workers on a clock that jumps, with a storage in memory. What a job does is the test's: `on("name") { |*args| ... }`.
module Worked
  include Strands

  Jobs = Ringspun::Jobs
  Storage = Jobs::Storage

  # Runs what the test says.
  class Task
    include Jobs::Job

    class << self
      def blocks = @blocks ||= {}

      # What a block asserts in vain: to the worker that is an error as any other one.
      def failures = @failures ||= []
    end

    def perform(name, *arguments)
      Task.blocks.fetch(name).call(*arguments, self)
    rescue Minitest::Assertion => error
      Task.failures << error
      raise
    end
  end

  # Everything that is logged.
  class Lines
    attr_reader :all

    def initialize
      @all = []
    end

    Logger::Severity.constants.each { |level| define_method(:"#{level.downcase}?") { true } }
    %i[debug info warn error fatal].each { |level| define_method(level) { |text| @all << "#{level} #{text}" } }

    def to_s = @all.join("\n")
  end

  attr_reader :storage, :worker, :config

  def teardown
    Task.blocks.clear
    super
    failed = Task.failures.shift(Task.failures.size).first
    raise failed if failed
  end

  def on(name, &block)
    Task.blocks[name] = block
  end

  def lines = @lines ||= Lines.new

  def entry(name, *arguments, queue: "default", jid: Jobs::Wire.new_jid, **fields)
    Jobs::Wire.dump({ "class" => "Worked::Task", "args" => [name, *arguments], "queue" => queue, "jid" => jid, "retry" => true,
                      **fields.transform_keys(&:to_s) })
  end

  def push(*, queue: "default", **) = push_entry(entry(*, queue: queue, **), queue: queue)

  def push_entry(*entries, queue: "default")
    storage.push(entries.map { |one| Storage::Push.new(queue: queue, entry: one) })
  end

  # A node that has fetched jobs and is gone.
  def died(*entries, node: "dead:1:aa", lease: 12, queue: "default")
    push_entry(*entries, queue: queue)
    storage.extend([node], lease)
    storage.fetch(node, [queue], entries.size)
  end

  # `options` are the worker's own, the others those of its configuration.
  def new_worker(options: {}, **settings)
    @config = Jobs::Config.new.update({ concurrency: 10, **settings })
    Jobs::Worker.new(config, storage: storage, logger: lines, random: Random.new(1), **options)
  end

  # The block runs beside a worker, which is stopped afterwards.
  def with_worker(**settings)
    simulate do
      @storage ||= Faulty.new(Storage::Memory.new(clock: -> { machine.now }))
      beside_worker(**settings) { yield }
    end
  end

  # The same on the machine that runs.
  def beside_worker(**settings)
    @worker = new_worker(**settings)
    @strand = machine.spin { worker.run }
    yield
  ensure
    worker&.stop
    @strand.join if @strand&.alive?
  end

  # The part of the worker that starts and ends runs, once the worker runs.
  def processor = worker.instance_variable_get(:@manager).instance_variable_get(:@parts)&.processor

  # Until nothing is in flight, waits or is due.
  def until_done
    yield_slowly { storage.stats.values_at(:enqueued, :in_flight, :scheduled, :retries).sum.zero? && worker.busy.zero? }
  end

  # On a clock that jumps a sleep lets all others go on.
  def yield_slowly(what = "that")
    seconds = 0.01
    until yield
      flunk "#{what}: still not so after #{machine.now} s" if machine.now > 10_000
      machine.sleep(seconds)
      seconds = [seconds * 1.2, 5].min
    end
  end

  def dead = storage.scan(:dead, 0, 100).map(&:entry)

  def list(queue = "default") = storage.list(queue, 0, 100).map(&:entry)
end

# Workers on the computer's clock, with a storage of the test's.
module WorkedInTime
  include Worked

  def with_worker(**settings, &) = Ringspun.run { beside_worker(**settings, &) }

  def until_done(jobs) = yield_until("all are done") { sleep(0.002) && worker.counts.values.sum == jobs }
end
