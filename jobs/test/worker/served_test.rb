# frozen_string_literal: true

require "jobs_helper"

# Which queues a worker's patterns mean, and which nobody serves.
class WorkerServedTest < Minitest::Test
  include AnyBackend

  Jobs = Ringspun::Jobs
  QueueOrder = Jobs::Worker.const_get(:QueueOrder)
  Served = Jobs.const_get(:Served)

  def test_patterns_find_queues_at_their_own_place
    order = QueueOrder.new(["critical", "mail_*", "default", "*"])
    assert_equal %w[critical default], order.draw
    assert order.know(%w[zoo mail_b default apes mail_a critical])
    assert_equal %w[critical mail_a mail_b default apes zoo], order.draw
    refute order.know(%w[zoo mail_b default mail_a critical]), "one has gone, and none is new"
    assert_equal %w[critical mail_a mail_b default zoo], order.draw
    assert_equal [["mail_*", "*"], %w[critical mail_* default *]], [order.patterns, order.asked]
  end

  def test_patterns_with_weights
    order = QueueOrder.new({ "*" => 1, "mail_*" => 5, "mail_slow" => 2 })
    order.know(%w[mail_a mail_slow other])
    assert_equal({ "mail_a" => 1, "other" => 1, "mail_slow" => 2 }, order.weights, "the first pattern has it")
  end

  def test_queues_come_and_go_beside_patterns
    order = QueueOrder.new(["*"])
    assert_empty order
    order.know(%w[a b])
    order.delete("a")
    assert_equal %w[b], order.names
    refute order.know(%w[a b])
    order.add("a", 1)
    assert_equal %w[b a], order.names
    order.delete("*")
    assert_equal %w[a], order.names
  end

  # Patterns, names, known queues: against a plain search of each queue.
  def test_random_orders
    random = Random.new(seed = Random.new_seed)
    200.times do
      asked = %w[a ab abc b a* ab* * b*].sample(1 + random.rand(5), random:)
      known = %w[a ab abc abd b bc c].sample(random.rand(8), random:)
      order = QueueOrder.new(asked)
      order.know(known)
      expected = asked.each_with_object([]) do |one, all|
        next all << one unless one.end_with?("*")

        all.concat((known - asked - all).select { |queue| queue.start_with?(one.delete("*")) }.sort)
      end
      assert_equal expected, order.names, "seed #{seed}: #{asked} of #{known}"
    end
  end

  def test_who_serves_a_queue
    served = Served.new([{ "queues" => %w[a b], "patterns" => [] }, { "queues" => %w[a x_1], "patterns" => %w[x_* x_1*] },
                         { "queues" => %w[a], "quiet" => true }, { "queues" => "a" }, {}])
    assert_equal [3, 1, 1, 1, 0], %w[a b x_1 x_new c].map { |queue| served.count(queue) }
    assert_equal %w[c], served.unserved(["a", "c", Jobs::Storage::QUARANTINE])
    refute_predicate Served.new([{ "queues" => %w[a], "quiet" => true }]), :any?
    nodes = [{ "queues" => %w[a], "ringspun" => "1" }, { "queues" => %w[a] }, { "ringspun" => "1", "quiet" => true }]
    assert_equal 1, Served.new(nodes).count(Jobs::Storage::QUARANTINE)
  end

  def test_only_patterns_that_can_be
    error = assert_raises(Jobs::ConfigError) { Jobs::Config.new.queues = ["a*b"] }
    assert_equal 'queues has "a*b", where * is not the last character', error.message
    error = assert_raises(Jobs::ConfigError) { Jobs::Config.new.limits = { "a*" => 1 } }
    assert_equal 'limits has "a*": a limit is for one queue, by its name', error.message
  end

  def setup
    super
    Jobs.config.logger = Logger.new(nil)
  end

  def teardown
    Jobs.config.remove_instance_variable(:@logger)
    super
  end

  class Told
    include Jobs::Job

    def self.all = @all ||= Thread::Queue.new
    def perform(name) = Told.all << name
  end

  # A queue that is new while the worker runs, on virtual time.
  def test_a_worker_finds_new_queues
    with_worker(["mail_*"]) do |worker|
      settle { worker.queues.empty? }
      Told.set(queue: "mail_a").perform_async("a")
      assert_equal "a", pop
      Told.set(queue: "other").perform_async("never")
      Told.set(queue: "mail_b").perform_async("b")
      assert_equal "b", pop
      assert_equal %w[mail_a mail_b], worker.queues
      assert_equal [["mail_*"]], Jobs.storage.nodes.map { |node| node["patterns"] }
    end
  end

  def test_a_worker_says_which_queues_nobody_serves
    log = with_worker(["default"]) do
      Told.set(queue: "low").perform_async("never")
      Ringspun::Machine.current.sleep(300)
    end
    lines = log.lines.grep(/no worker serves/)
    assert_equal 1, lines.size, log
    assert_match(/queue=low waiting=1 no worker serves a queue that has jobs; -q NAME serves it, and -q '\*' all/, lines.first)
  end

  def test_who_enqueues_is_told_once
    log = StringIO.new
    Jobs.config.logger = Logger.new(log)
    with_storage do |storage|
      Told.set(queue: "low").perform_async("before any worker runs")
      storage.announce("node", { "queues" => %w[default mail_], "patterns" => %w[mail_*] }, [])
      2.times { Told.set(queue: "low2").perform_async("x") }
      Told.perform_async("x")
      Told.set(queue: "mail_x").perform_async("x")
      Jobs.enqueue_all([[Told.set(queue: "low3"), "x"], [Told.set(queue: "low3"), "x"]])
      # The first in a process that enqueues is told as well where its jobs are kept.
      told = log.string.lines.filter_map { |line| line[/a job is stored for the queue (\w+), which no worker serves/, 1] }
      assert_equal %w[low2 low3], told
    end
  end

  private

  def pop
    settle { !Told.all.empty? }
    Told.all.pop
  end

  def settle = Ringspun::Machine.current.timeout(60) { Ringspun::Machine.current.sleep(0.01) until yield }

  def with_storage(storage = Jobs::Storage::Memory.new)
    Jobs.storage = storage
    yield storage
  ensure
    Jobs.storage = nil
    Told.all.clear
  end

  # @return [String] the worker's log
  def with_worker(queues)
    log = StringIO.new
    config = Jobs::Config.new
    config.queues = queues
    Ringspun::Simulation.run(seed: 1) do |machine|
      with_storage(Jobs::Storage::Memory.new(clock: -> { machine.now })) do |storage|
        worker = Jobs::Worker.new(config, storage:, logger: Logger.new(log))
        machine.scope do |scope|
          running = scope.spin { worker.run }
          yield worker
          worker.stop
          running.join
        end
      end
    end
    log.string
  end
end
