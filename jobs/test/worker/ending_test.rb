# frozen_string_literal: true

require "jobs_helper"
require_relative "../support/worked"

# How a worker ends, and how it ends jobs.
class WorkerEndingTest < Minitest::Test
  include AnyBackend
  include Worked

  def setup
    super
    @seen = []
    on("sleep") do |seconds, job|
      @seen << :begins
      machine.sleep(seconds)
      @seen << :ends
    ensure
      @seen << (job.cancelled? ? :cancelled : :ensured)
    end
  end

  def running(count = 1) = yield_slowly { worker.running.size == count }

  # Stops it, and answers after how many seconds it has stopped.
  def stop
    began = machine.now
    worker.stop
    @strand.join
    machine.now - began
  end

  def assert_gone(in_queue = 0)
    assert_equal [in_queue, 0, 0], storage.stats.values_at(:enqueued, :in_flight, :nodes)
    assert_empty storage.nodes
  end

  def test_what_runs_may_end
    with_worker do
      push("sleep", 20)
      running
      assert_operator stop, :<, 21
      assert_equal %i[begins ends ensured], @seen
      assert_equal({ done: 1 }, worker.counts)
      assert_gone
    end
  end

  def test_an_idle_one_ends_soon
    with_worker do
      machine.sleep(5)
      assert_operator stop, :<, 3
      assert_gone
    end
  end

  # Neither does the worker take what was scheduled for the strand that runs it, nor does it leave something there.
  def test_the_strand_that_runs_it_keeps_what_is_scheduled_for_it
    simulate do
      @storage = Storage::Memory.new(clock: -> { machine.now })
      @worker = new_worker
      strand = machine.spin { [worker.run, machine.park, machine.park(1)] }
      push("sleep", 5)
      running
      machine.schedule(strand, :mine)
      2.times { worker.quiet }
      machine.sleep(1)
      2.times { worker.stop }
      assert_raises(Ringspun::TimeoutError) { strand.await }
      assert_equal %i[begins ends ensured], @seen
      assert_gone
    end
  end

  # Strands of jobs that are done: they may end as well, and keep no worker from its end.
  def begun_by_jobs(*seconds)
    on("spin") do |each, _|
      machine.spin do
        machine.sleep(each)
        @seen << each
      ensure
        @seen << :ensured
      end
    end
    seconds.each { |each| push("spin", each) }
    yield_slowly { worker.counts[:done] == seconds.size }
  end

  def test_what_jobs_have_begun_has_the_time_that_jobs_have
    with_worker(timeout: 10) do
      begun_by_jobs(5, 100)
      assert_in_delta 10, stop, 1
      assert_equal [5, :ensured, :ensured], @seen
      assert_match(/warn node=\S+ what jobs have begun and left goes on no more/, lines.to_s)
      assert_gone
    end
  end

  def test_what_jobs_have_begun_and_that_ends_keeps_nobody_longer
    with_worker(timeout: 10) do
      begun_by_jobs(5)
      assert_in_delta 5, stop, 1
      assert_equal [5, :ensured], @seen
      refute_match(/goes on no more/, lines.to_s)
    end
  end

  def test_what_jobs_have_begun_ends_in_a_hurry
    with_worker(timeout: 1000) do
      begun_by_jobs(5000)
      machine.spin { machine.sleep(20) && worker.hurry }
      assert_in_delta 20, stop, 1
      assert_equal [:ensured], @seen
    end
  end

  def test_what_takes_too_long_goes_back_in_front
    with_worker(timeout: 10, concurrency: 3) do
      3.times { |index| push("sleep", 100, jid: "a#{index}") }
      running(3)
      push("sleep", 100, jid: "b")
      before = storage.in_flight(worker.node).map(&:entry)
      assert_in_delta 10, stop, 1
      assert_equal %w[a0 a1 a2 b], list.map { |one| JSON.parse(one)["jid"] }
      assert_equal before.sort, list.first(3).sort
      assert_equal ([:begins] * 3) + ([:ensured] * 3), @seen
      assert_equal [{ returned: 3 }, 0, 0], [worker.counts, *storage.stats.values_at(:failed, :processed)]
      assert_gone(4)
    end
  end

  def test_one_that_ends_although_it_is_cancelled_is_done
    on("stubborn") do
      machine.sleep(100)
    rescue Ringspun::Cancelled
      @seen << :done
    end
    with_worker(timeout: 1) do
      push("stubborn")
      running
      stop
      assert_equal [{ done: 1 }, [:done]], [worker.counts, @seen]
      assert_gone
    end
  end

  def test_one_that_says_otherwise_why_it_has_ended_goes_back_too
    on("wraps") do
      machine.sleep(100)
    rescue Ringspun::Cancelled
      raise IOError, "interrupted"
    end
    with_worker(timeout: 5) do
      push("wraps")
      running
      stop
      assert_equal({ returned: 1 }, worker.counts)
      assert_gone(1)
    end
  end

  def test_one_that_fails_while_it_is_cancelled_has_failed
    on("fails") do
      machine.sleep(100)
    rescue Ringspun::Cancelled
      begin
        Integer("x")
      rescue ArgumentError => error
        # of its own
        raise error.class.new("no number"), cause: nil
      end
    end
    with_worker(timeout: 1) do
      push("fails")
      running
      stop
      assert_equal({ retry: 1 }, worker.counts)
    end
  end

  def test_one_that_does_not_end_is_told_of_and_waited_for
    on("shielded") do
      Ringspun.shield { machine.sleep(60) }
      machine.sleep(60)
    end
    with_worker(timeout: 1) do
      push("shielded", jid: "a1")
      running
      assert_in_delta 60, stop, 2
      assert_gone(1)
      assert_match(/error jid=a1 .* does not end/, lines.to_s)
    end
  end

  def test_no_job_is_fetched_while_it_ends
    with_worker(timeout: 30) do
      push("sleep", 20)
      running
      worker.stop
      machine.sleep(1)
      push("sleep", 0)
      @strand.join
      assert_equal [1, %i[begins ends ensured]], [list.size, @seen]
    end
  end

  # With a place for one it waits at no queue, but looks now and then.
  def test_what_comes_late_goes_back
    with_worker(timeout: 10, concurrency: 1, queues: %w[default other]) do
      3.times { |index| push("sleep", 100, jid: "a#{index}") }
      storage.slow(:fetch, 3)
      yield_slowly { storage.stats[:in_flight] == 1 }
      assert_in_delta 3, stop, 0.5
      assert_equal [[], %w[a0 a1 a2]], [@seen, list.map { |one| JSON.parse(one)["jid"] }]
      assert_equal({ returned: 1 }, worker.counts)
      assert_gone(3)
    end
  end

  def test_quiet
    with_worker do
      push("sleep", 20)
      running
      refute_predicate worker, :quiet?
      worker.quiet
      assert_predicate worker, :quiet?
      push("sleep", 0)
      machine.sleep(60)
      assert_equal [1, %i[begins ends ensured], 0], [list.size, @seen, worker.busy]
      assert_predicate @strand, :alive?
      assert_equal [true], storage.nodes.map { |node| node["quiet"] }
      assert_operator stop, :<, 3
    end
  end

  def test_quiet_from_the_start
    @storage = Faulty.new(Storage::Memory.new(clock: -> { Ringspun::Machine.current.now }))
    push("sleep", 0)
    with_worker do
      worker.quiet
      machine.sleep(10)
      assert_equal [1, [], []], [list.size, storage.calls[:fetch], storage.calls[:wait_any]]
    end
  end

  def test_who_is_stopped_twice_stops_once
    with_worker do
      2.times { worker.stop }
      @strand.join
      worker.stop
      worker.quiet
      assert_nil worker.cancel("a")
    end
  end

  def test_a_running_job_is_cancelled
    with_worker do
      push("sleep", 1000, jid: "a1")
      push("sleep", 5, jid: "a2")
      running(2)
      worker.cancel("a1")
      worker.cancel("none such")
      until_done
      assert_equal %i[begins begins cancelled ends ensured], @seen
      assert_equal({ cancelled: 1, done: 1 }, worker.counts)
      assert_equal [0, 0, 0], storage.stats.values_at(:retries, :dead, :failed)
      assert_match(/jid=a1 class=Worked::Task queue=default cancelled/, lines.to_s)
    end
  end

  def test_one_that_has_not_begun_is_cancelled
    on("first") { processor.cancel("second") }
    @storage = Storage::Memory.new
    push("first", jid: "first")
    push("sleep", 1, jid: "second")
    with_worker do
      until_done
      assert_empty @seen
      assert_equal({ done: 1, cancelled: 1 }, worker.counts)
    end
  end

  def test_one_that_cancels_itself_has_failed
    on("itself") do
      machine.terminate(machine.running)
      machine.sleep(1)
    end
    with_worker do
      push("itself", retry: 0)
      until_done
      assert_equal [{ dead: 1 }, "Ringspun::Cancelled"], [worker.counts, JSON.parse(dead.first)["error_class"]]
    end
  end

  def test_hooks_of_a_job_that_is_cancelled
    waits = Class.new do
      include Ringspun::Jobs::Job
      retry_in { Ringspun::Machine.current.sleep(1) }

      def perform(*)
        Ringspun::Machine.current.terminate(Ringspun::Machine.current.running)
        raise IOError, "closed"
      end
    end
    WorkerEndingTest.const_set(:Waits, waits)
    with_worker do
      push_entry(entry("note").sub("Worked::Task", "WorkerEndingTest::Waits"))
      yield_slowly { storage.stats[:retries] == 1 }
      assert_equal({ retry: 1 }, worker.counts)
      assert_match(/retry_in raises/, lines.to_s)
    end
  ensure
    WorkerEndingTest.__send__(:remove_const, :Waits)
  end

  def test_a_cancelled_job_gives_its_lock_back
    with_worker do
      job = entry("sleep", 1000, jid: "a1", unique_token: "t")
      storage.push([Storage::Push.new(queue: "default", entry: job, jid: "a1", lock: "t", lock_seconds: 5000)])
      running
      worker.cancel("a1")
      until_done
      assert_nil storage.lock("t", "a2", 1)
    end
  end

  def test_signals_of_dashboards
    with_worker do
      push("sleep", 1000, jid: "a1")
      running
      ["\xff", "CANCEL:\xff", "CANCEL:{\"jid\":\"a1\"}", "CANCEL:5", "CANCEL:{", "CANCEL:{\"jid\":5}", "TTIN",
       ""].each do |message|
        storage.signal(worker.node, message)
      end
      until_done
      assert_equal({ cancelled: 1 }, worker.counts)
      storage.signal(worker.node, "TSTP")
      yield_slowly { worker.quiet? }
      assert_predicate @strand, :alive?
      storage.signal(worker.node, "TERM")
      @strand.join
    end
  end

  def test_that_it_is_quiet_is_shown_with_the_next_beat
    with_worker(beat: 0.5) do
      yield_slowly { storage.nodes.any? }
      worker.quiet
      machine.sleep(1)
      assert_equal([true], storage.nodes.map { |node| node["quiet"] })
    end
  end

  def test_everybody_is_told_to_cancel
    with_worker do
      push("sleep", 1000, jid: "a1")
      running
      machine.sleep(6) # so that it is announced
      Jobs.storage = storage
      Jobs.cancel("a1")
      until_done
      assert_equal({ cancelled: 1 }, worker.counts)
    ensure
      Jobs.storage = nil
    end
  end

  def test_what_is_cancelled_as_a_whole_gives_everything_back
    with_worker do
      push("sleep", 1000)
      running
      machine.terminate(@strand)
      assert_raises(Ringspun::TerminatedError) { @strand.join }
      assert_equal %i[begins ensured], @seen
      assert_gone(1)
    end
  end

  def test_what_dashboards_see
    with_worker(queues: { "default" => 2, "mail" => 1 }) do
      push("sleep", 100, jid: "a1")
      running
      machine.sleep(6)
      shown = storage.nodes.first
      assert_equal [worker.node, 1, 10, false, %w[default mail], [{ "default" => 2, "mail" => 1 }], Process.pid],
                   shown.values_at("identity", "busy", "concurrency", "quiet", "queues", "weights", "pid")
      assert_operator shown["rss"], :>, 1000
      run = worker.running.first
      assert_equal ["a1", "default", "Worked::Task"], [run.jid, run.queue, run.class_name]
      assert_match(/jid=a1 queue=default/, run.inspect)
    end
  end

  # Of the jobs that run longest at all times, and so in the first second of who looks; of more while somebody looks, each second.
  def test_what_jobs_wait_for_is_announced
    on("children") { machine.scope { |scope| 3.times { scope.spin { machine.sleep(1000) } } } }
    with_worker(concurrency: 300) do
      push("sleep", 1000, jid: "a1")
      push("children", jid: "a2")
      running(2)
      yield_slowly { storage.nodes.first&.dig("waits")&.size == 2 }
      assert_equal ["its turn"], waits.values.uniq
      machine.sleep(6)
      assert_equal({ "a1" => "a time to pass", "a2" => "the strands of a scope to end (3 × a time to pass)" }, waits)
      150.times { |number| push("sleep", 1000, jid: "b#{number}") }
      running(152)
      machine.sleep(6)
      assert_equal 100, waits.size
      Jobs::Worker.ask_waits(worker.node, storage:)
      machine.sleep(4)
      assert_equal 152, waits.size
      push("sleep", 1000, jid: "c1")
      running(153)
      machine.sleep(1.5)
      assert_equal "a time to pass", waits["c1"]
      machine.sleep(40)
      assert_equal 100, waits.size
    end
  end

  # By the jids of the jobs.
  def waits
    jids = storage.work([worker.node]).first.to_h { |run| [run.slot, JSON.parse(run.entry)["jid"]] }
    storage.nodes.first["waits"].transform_keys(jids)
  end

  def test_what_dashboards_see_of_long_entries
    with_worker do
      push("sleep", 100, jid: "a1")
      push("sleep", 100, jid: "a2", note: "x" * 100_000)
      push_entry(entry("sleep", 100, jid: "a3").sub("a3", "a\xFF"))
      work = []
      yield_slowly { (work = storage.calls[:announce].last.to_a.last.to_a).size == 3 }
      jobs = work.map { |_, _, entry, _| JSON.parse(entry) }
      assert_equal ["a1", "a2", "a\ufffd"], (jobs.map { |job| job["jid"] })
      assert_equal [["sleep", 100], ["Worked::Task", "default"], true],
                   [jobs[0]["args"], jobs[1].values_at("class", "queue"), JSON.generate(work).bytesize < 2000]
    end
  end
end
