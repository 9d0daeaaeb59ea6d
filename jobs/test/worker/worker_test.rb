# frozen_string_literal: true

require "jobs_helper"
require_relative "../support/worked"

class WorkerTest < Minitest::Test
  include AnyBackend
  include Worked

  def test_a_job_runs_and_is_done_with
    seen = []
    on("note") { |*arguments, job| seen << [arguments, job.jid] }
    with_worker do
      push("note", 1, { "a" => [] }, jid: "a1")
      until_done
      assert_equal [[[1, { "a" => [] }], "a1"]], seen
      assert_equal({ done: 1 }, worker.counts)
      assert_equal [1, 0, 0], storage.stats.values_at(:processed, :failed, :dead)
    end
    assert_match(/jid=a1 class=Worked::Task queue=default elapsed=0.0 done/, lines.to_s)
  end

  def test_what_was_there_before_runs_in_order
    seen = []
    on("note") { |number, _| seen << number }
    @storage = Storage::Memory.new
    500.times { |number| push("note", number) }
    with_worker(concurrency: 7) { until_done }
    assert_equal (0...500).to_a, seen
  end

  def test_runs_by_priority
    seen = []
    on("note") { |number, _| seen << number }
    @storage = Storage::Memory.new
    numbers = (-3..3).to_a.shuffle(random: Random.new(1))
    numbers.each { |number| push("note", number, ringspun_priority: number) }
    with_worker(concurrency: 1) { until_done }
    assert_equal numbers.sort, seen
  end

  def test_so_many_at_once_and_no_more
    last = nil
    on("sleep") { machine.sleep(10) and last = machine.now }
    with_worker(concurrency: 100) do
      150.times { push("sleep") }
      yield_slowly { worker.running.size == 100 }
      assert_equal [100, 50, 100], [worker.busy, *storage.stats.values_at(:enqueued, :in_flight)]
      until_done
      assert_in_delta 20, last, 1
    end
  end

  # A client of this process would use the storage of its settings.
  def with_this_storage
    Jobs.storage = storage
    yield
  ensure
    Jobs.storage = nil
  end

  def test_a_job_is_followed_once_it_is_done
    failures = 1
    on("first") do |job|
      job.follow_with(Task, "second", 7)
      job.follow_with(Task.set(in: 1000), "third")
      raise IOError, "not yet" if (failures -= 1) >= 0
    end
    seen = []
    %w[second third].each { |name| on(name) { |*arguments, _| seen << [name, *arguments] } }
    with_worker do
      with_this_storage do
        push("first")
        yield_slowly { storage.stats[:retries] == 1 }
        assert_equal [0, 0], storage.stats.values_at(:enqueued, :scheduled)
        yield_slowly { storage.stats[:scheduled] == 1 }
        until_done
        assert_equal [[["second", 7], ["third"]], { retry: 1, done: 3 }], [seen, worker.counts]
      end
    end
  end

  def test_a_job_that_is_cancelled_is_followed_by_none
    on("first") { |job| job.follow_with(Task, "second") and machine.sleep(10_000) }
    with_worker do
      with_this_storage do
        push("first", jid: "a1")
        yield_slowly { worker.running.any? }
        worker.cancel("a1")
        until_done
        assert_equal({ cancelled: 1 }, worker.counts)
      end
    end
  end

  def test_a_result_is_kept_for_those_who_ask
    on("answer") { |value, _| value }
    with_worker do
      with_this_storage do
        jids = [1, nil, { "a" => ["ü"] }].map { |value| Task.set(keep_result: 60).perform_async("answer", value) }
        jids << Task.perform_async("answer", 5)
        until_done
        assert_equal([1, nil, { "a" => ["ü"] }, nil], jids.map { |jid| Jobs.result(jid) })
        assert_equal([false, false, false, true], storage.results(jids).map(&:nil?))
        machine.sleep(61)
        assert_equal [nil] * 4, storage.results(jids)
      end
    end
  end

  def test_a_result_passes_middleware
    on("answer") { 7 }
    with_worker do
      config.server_middleware.add(->(*, &block) { block.call && :other })
      push("answer", jid: "a1", keep_result: 60)
      until_done
      assert_equal ["7"], storage.results(["a1"])
    end
  end

  def test_a_result_that_json_does_not_know_is_not_kept_and_the_job_is_done
    on("answer") { { "at" => [:now] } }
    with_worker do
      push("answer", jid: "a1", keep_result: 60)
      push("answer", jid: "a2", keep_result: "long")
      push("answer", jid: "a3", keep_result: -1)
      until_done
      assert_equal [[nil] * 3, { done: 3 }], [storage.results(%w[a1 a2 a3]), worker.counts]
    end
    warnings = lines.all.grep(/not kept/)
    assert_equal 1, warnings.size
    assert_match(/\Awarn .*jid=a1 .*its result is not kept: the result\["at"\]\[0\] is a Symbol; give the String "now"/,
                 warnings.first)
  end

  def test_a_job_that_fails_is_tried_again_and_runs
    failures = 2
    on("fail") { raise IOError, "not yet" if (failures -= 1) >= 0 }
    with_worker do
      push("fail", jid: "a1", x: 5)
      yield_slowly { storage.stats[:retries] == 1 }
      job = JSON.parse(storage.scan(:retry, 0, 1).first.entry)
      assert_equal [0, "IOError", "not yet", 5], job.values_at("retry_count", "error_class", "error_message", "x")
      until_done
      assert_equal({ retry: 2, done: 1 }, worker.counts)
    end
    assert_match(/error=IOError message="not yet" at=.* failed: retry in \d+ s/, lines.to_s)
  end

  def test_what_has_happened_to_a_job_is_in_its_history
    steps = [-> { raise IOError, "n" * 300 }, ->(job) { job.snooze(5) }, ->(*) { machine.sleep(10_000) }, ->(*) {}]
    on("steps") { |job| steps.shift.then { |step| step.arity.zero? ? step.call : step.call(job) } }
    on("drop") { raise "no" }
    on("plain") {}
    with_worker do
      push("steps", jid: "a1")
      push("drop", jid: "a2", retry: false)
      push("drop", jid: "a3", retry: 0)
      push("plain", jid: "a4")
      yield_slowly { steps.size == 1 }
      worker.cancel("a1")
      until_done
      node = worker.node
      assert_equal [[:retry, node, "IOError", "n" * 200], [:snoozed, node, nil, nil], [:cancelled, node, nil, nil]],
                   (storage.history("a1").map { |one| one.to_a.drop(1) })
      assert_equal([[:dropped], [:dead], []], %w[a2 a3 a4].map { |jid| storage.history(jid).map(&:kind) })
    end
  end

  # As where a file of the program is half written.
  def test_a_reloader_that_raises_is_a_failure_of_the_job
    broken = true
    seen = []
    on("note") { |number, _| seen << number }
    reload = ->(&block) { broken ? raise(SyntaxError, "half written") : block.call }
    with_worker(reloader: reload) do
      push("note", 1)
      yield_slowly { storage.stats[:retries] == 1 }
      assert_equal ["SyntaxError", 0], JSON.parse(storage.scan(:retry, 0, 1).first.entry).values_at("error_class", "retry_count")
      broken = false
      until_done
      assert_equal [[1], { retry: 1, done: 1 }], [seen, worker.counts]
    end
  end

  def test_a_job_that_always_fails_is_dead_in_the_end
    runs = 0
    on("fail") { runs += 1 and raise "always" }
    with_worker do
      push("fail", retry: 3)
      until_done
      assert_equal 4, runs
      assert_equal [3, "always"], JSON.parse(dead.first).values_at("retry_count", "error_message")
    end
  end

  def test_whatever_a_job_raises_it_is_that_job_that_has_failed
    raised = [SystemExit, NoMemoryError, SystemStackError, NotImplementedError, LoadError, Interrupt, SignalException,
              Class.new(Exception)] # rubocop:disable Lint/InheritException
    on("raise") { |index, _| raise raised[index] == SignalException ? SignalException.new("TERM") : raised[index] }
    on("throw") { throw :out }
    on("deep") { deep = -> { deep.call } and deep.call }
    on("fine") { nil }
    with_worker do
      raised.each_index { |index| push("raise", index, retry: 0) }
      push("throw", retry: 0)
      push("deep", retry: 0)
      push("fine")
      until_done
      assert_equal({ dead: 10, done: 1 }, worker.counts)
    end
  end

  def test_a_class_that_is_no_job_is_never_called
    %w[String Kernel No::Such File::Stat Worked::Task::Nothing lower ::Worked::Task Worked Ringspun::Jobs::Job].each do |name|
      with_worker do
        push_entry(entry("note", retry: 0).sub('"Worked::Task"', JSON.generate(name)))
        until_done
        assert_match(/UnknownClassError/, JSON.parse(dead.first)["error_class"], name)
      end
      @storage = nil
    end
    assert_match(/there is no class No::Such; has the program/, lines.to_s)
    assert_match(/String does not include Ringspun::Jobs::Job/, lines.to_s)
  end

  class Größe < Worked::Task; end
  Überraschung = Class.new(Worked::Task)

  def test_a_class_whose_name_has_other_letters
    %w[Größe Überraschung].each do |name|
      on("note") { |value, _| @noted = value }
      with_worker do
        push_entry(entry("note", name).sub("Worked::Task", "WorkerTest::#{name}"))
        until_done
        assert_equal [name, { done: 1 }], [@noted, worker.counts]
      end
      @storage = nil
    end
  end

  # Its jobs would fail one after the other, and the class does include a Job.
  def test_a_class_of_the_gem_sidekiq_is_told
    mixin = Module.new { def self.name = "Sidekiq::Job" }
    WorkerTest.const_set(:OfTheGem, Class.new { include mixin })
    with_worker do
      push_entry(entry("note", retry: 0).sub('"Worked::Task"', '"WorkerTest::OfTheGem"'))
      until_done
      assert_match(%r{OfTheGem includes Sidekiq::Job of the gem sidekiq.* require: "ringspun/jobs/sidekiq"},
                   JSON.parse(dead.first)["error_message"])
    end
  ensure
    WorkerTest.__send__(:remove_const, :OfTheGem)
  end

  # As programs do that load their code anew.
  def test_a_class_is_looked_up_for_each_job
    ran = []
    with_worker do
      2.times do |number|
        Worked.send(:remove_const, :Changed) if Worked.const_defined?(:Changed)
        Worked.const_set(:Changed, Class.new { include Jobs::Job and define_method(:perform) { |*| ran << number } })
        push_entry(entry("first").sub("Worked::Task", "Worked::Changed"))
        until_done
      end
    end
    assert_equal [0, 1], ran
  ensure
    Worked.send(:remove_const, :Changed)
  end

  def test_an_error_that_cannot_be_told
    rude = Class.new(StandardError) { def backtrace = raise("no backtrace") }
    on("rude") { raise rude }
    on("fine") { nil }
    with_worker do
      push("rude", retry: 0)
      until_done
      push("fine")
      until_done
    end
    assert_equal({ dead: 1, done: 1 }, worker.counts)
    assert_match(/the end of a run cannot be told/, lines.to_s)
  end

  # As autoloaders do.
  module Loads
    def self.const_missing(name)
      raise NameError.new("uninitialized constant Loads::#{name}", name) if name == :Missing

      raise NameError.new("uninitialized constant Other", :Other)
    end
  end

  def test_a_class_that_cannot_be_loaded
    with_worker do
      %w[Missing Broken].each do |name|
        push_entry(entry("note", retry: 0).sub('"Worked::Task"', JSON.generate("WorkerTest::Loads::#{name}")))
      end
      until_done
    end
    assert_equal ["there is no class WorkerTest::Loads::Missing; has the program that defines it been required?",
                  "uninitialized constant Other"], dead.map { |one| JSON.parse(one)["error_message"] }.sort
  end

  def test_an_entry_that_is_no_job_is_dead_at_once
    entries = ["nonsense", "[]", '{"class":"Worked::Task","args":[]}', "\xff\x00", "", '{"class":5,"args":[],"jid":"a"}']
    on("fine") { nil }
    with_worker(concurrency: 2) do
      push_entry(*entries)
      push("fine")
      until_done
      assert_equal [6, 0], [dead.size, worker.busy]
      assert_equal ["nonsense", "\xff\x00", ""].sort, (dead & entries).sort
      assert_equal ["the entry's jid is missing"], dead.filter_map { |one|
        JSON.parse(one)["error_message"] if one.include?("args\":[],\"e")
      }
    end
  end

  def test_a_job_that_changes_its_arguments_is_kept_as_it_came
    on("change") { |list, _| list.clear and raise "no" }
    with_worker do
      push("change", [1, 2])
      yield_slowly { storage.stats[:retries] == 1 }
      assert_equal ["change", [1, 2]], JSON.parse(storage.scan(:retry, 0, 1).first.entry)["args"]
      on("change") { nil }
      until_done
    end
  end

  def test_snoozing_is_no_failure
    runs = []
    on("later") { |job| runs << machine.now and runs.size < 3 and job.snooze(100) }
    with_worker do
      push("later")
      until_done
      assert_equal [3, { snoozed: 2, done: 1 }], [runs.size, worker.counts]
      assert_operator runs.last - runs.first, :>=, 200
      assert_equal [1, 0], storage.stats.values_at(:processed, :failed)
    end
  end

  def test_numbers_that_are_too_large_are_no_reason_to_die
    seen = []
    on("huge") do |number, _, job|
      seen << number
      job.snooze(1) if seen.size == 1
      raise IOError, "once" if seen.size == 2

      seen << JSON.parse(worker.running.first.shown, decimal_class: String)["created_at"]
    end
    with_worker do
      push_entry(entry("huge", "HUGE", "x" * 5000, jid: "a1").sub('"HUGE"', "1e400").sub(/}\z/, ',"created_at":1e999}'))
      until_done
      assert_equal [[Float::INFINITY] * 3 + %w[1e999], { snoozed: 1, retry: 1, done: 1 }], [seen, worker.counts]
    end
  end

  def test_middleware_stands_around_each_job
    seen = []
    around = lambda do |job, entry, queue, &block|
      seen << [job.class, entry["jid"], queue]
      block.call
      seen << :after
    end
    on("note") { seen << :inside }
    with_worker do
      config.server_middleware.add(around)
      push("note", jid: "a1")
      until_done
    end
    assert_equal [[Worked::Task, "a1", "default"], :inside, :after], seen
  end

  def test_a_strict_order
    seen = []
    on("note") { |name, _| seen << name }
    @storage = Storage::Memory.new
    %w[low high].each { |queue| 20.times { push("note", queue, queue: queue) } }
    with_worker(queues: %w[high low], concurrency: 3) { until_done }
    assert_equal (["high"] * 20) + (["low"] * 20), seen
  end

  def test_many_queues_and_few_places
    seen = []
    on("note") { |name, _| seen << name }
    with_worker(queues: %w[a b c], concurrency: 1) do
      %w[c b a].each do |queue|
        push("note", queue, queue: queue)
        began = machine.now
        until_done
        assert_operator machine.now - began, :<, 1
      end
    end
    assert_equal %w[c b a], seen
  end

  def test_a_limit_of_a_queue
    now = most = last = 0
    on("sleep") do
      most = [most, now += 1].max
      machine.sleep(1)
      now -= 1
      last = machine.now
    end
    with_worker(limits: { "default" => 3 }) do
      began = machine.now
      12.times { push("sleep") }
      until_done
      assert_equal 3, most
      assert_in_delta 4.5, last - began, 0.5
    end
  end

  def test_a_paused_queue_rests
    seen = []
    on("note") { |number, _| seen << number }
    with_worker do
      machine.sleep(5) # it waits at the queue
      storage.pause("default")
      push("note", 1)
      machine.sleep(20)
      assert_equal [[], 1], [seen, list.size]
      storage.resume("default")
      began = machine.now
      until_done
      assert_operator machine.now - began, :<, 1
      push("note", 2)
      until_done
    end
    assert_equal [1, 2], seen
  end

  def test_queues_come_and_go
    seen = []
    on("note") { |name, _| seen << name }
    with_worker do
      push("note", "new", queue: "new")
      machine.sleep(10)
      assert_empty seen
      worker.subscribe("new", 3)
      yield_slowly { seen == ["new"] }
      worker.unsubscribe("default")
      machine.sleep(5)
      push("note", "old")
      machine.sleep(10)
      assert_equal [["new"], 1, ["new"]], [seen, list.size, worker.queues]
      assert_raises(Jobs::ConfigError) { worker.subscribe("x", 0) }
      [Storage::QUARANTINE, "backup::a", ""].each do |name|
        error = assert_raises(Jobs::ConfigError) { worker.subscribe(name) }
        assert_equal "#{name.inspect} is no name of a queue that programs may have", error.message
      end
      worker.subscribe("default")
      until_done
    end
  end

  def test_a_worker_runs_once
    with_worker { nil }
    assert_match(/make another one/, assert_raises(Ringspun::UsageError) { worker.run }.message)
  end

  def test_one_that_is_stopped_before_it_runs
    @storage = Storage::Memory.new
    worker = new_worker
    worker.stop
    assert_nil worker.run
  end
end
