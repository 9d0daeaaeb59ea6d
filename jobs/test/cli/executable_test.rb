# frozen_string_literal: true

require "jobs_helper"
require "support/command_case"
require "ringspun/jobs/launcher/supervisor"

# The executable, from its start to its end, with jobs and without.
class ExecutableTest < CommandCase
  SETTINGS = LEASE

  # What is said of a job that begins stands in the list `begun`, of one that has ended in `ended`. A job that is to wait waits
  # for something in the list of its name.
  PROGRAM = <<~'RUBY'
    require "redis-client"

    module Noting
      def seen = RedisClient.new(path: ENV.fetch("SEEN"), timeout: 60)
      def note(list, text) = seen.then { |redis| redis.call("RPUSH", list, text) && redis.close }
      def await(list) = seen.then { |redis| redis.blocking_call(0, "BLPOP", list, 0) && redis.close }
    end

    class Note
      include Ringspun::Jobs::Job
      include Noting

      def perform(text) = note("ended", "#{text} #{Process.pid}")
    end

    class Gate
      include Ringspun::Jobs::Job
      include Noting

      def perform(name)
        note("begun", "#{name} #{Process.pid}")
        await("gate:#{name}")
        note("ended", "#{name} #{Process.pid}")
      end
    end

    class Poison
      include Ringspun::Jobs::Job
      include Noting

      def perform
        note("begun", "poison #{Process.pid}")
        await("gate:poison")
        Process.kill(:KILL, Process.pid)
      end
    end

    class Relay
      include Ringspun::Jobs::Job
      include Noting

      def perform(name)
        note("begun", "#{name} #{Process.pid}")
        await("gate:#{name}")
        Note.perform_async("from #{name}")
      end
    end

    # Never waits, so nothing else runs in its process's machine meanwhile.
    class Compute
      include Ringspun::Jobs::Job
      include Noting

      def perform(path)
        Fiber.blocking do # or the note and, by Ruby 3.4's blocking_operation_wait, File.exist? give way
          note("begun", "compute #{Process.pid}")
          nil until File.exist?(path)
        end
        note("ended", "compute #{Process.pid}")
      end
    end

    class Fail
      include Ringspun::Jobs::Job

      def perform = raise(ArgumentError, "of the job")
    end
  RUBY

  def command(*arguments, ready: 1, **)
    one = start(*arguments, **)
    @nodes = Array.new(ready) { one.await(/node=(\S+) .*the worker is ready/)[1] }
    one
  end

  def workers = @nodes.map { |node| Integer(node[/:(\d+):/, 1]) }

  def push(name, *arguments, queue: "default")
    jid = Jobs::Wire.new_jid
    entry = Jobs::Wire.dump({ "class" => name, "args" => arguments, "queue" => queue, "jid" => jid, "retry" => true })
    storage.push([Storage::Push.new(queue:, entry:, jid:)])
    jid
  end

  # What jobs have noted.
  def noted(list, count = 1)
    Array.new(count) do
      found = @redis.blocking_call(45, "BLPOP", list, 40) or flunk "nothing in #{list}: #{@command&.lines&.join}"
      name, *, pid = found.last.split
      [name, Integer(pid)]
    end
  end

  def open_gate(name, times = 1) = times.times { call("RPUSH", "gate:#{name}", "open") }

  def assert_ends_well(command, name = :TERM)
    assert_equal 0, command.finish(name).exitstatus, command.lines.join
  end

  # --- one process ---

  def test_jobs_are_run
    %w[a b c].each { |name| push("Note", name) }
    one = command
    assert_equal %w[a b c].product(workers), noted("ended", 3).sort
    one.await(/jid=\h+ class=Note queue=default elapsed=\d\.\d+ done$/)
    assert_ends_well(one)
    assert_equal [0, 0, 3], storage.stats.values_at(:enqueued, :in_flight, :processed)
    assert_empty call("KEYS", "#{@namespace}:queue:backup*")
  end

  def test_a_job_that_fails_is_told_and_tried_again
    jid = push("Fail")
    one = command
    one.await(/WARN .*jid=#{jid} class=Fail .*error=ArgumentError message="of the job" at=\S+app\.rb:\d+\S* .*failed: retry in/)
    assert_ends_well(one)
    assert_equal 1, storage.stats[:retries]
  end

  def test_an_interrupt_is_an_end_too
    assert_ends_well(command, :INT)
  end

  def test_a_job_that_runs_may_end
    push("Gate", "a")
    one = command
    noted("begun")
    one.signal(:TERM)
    one.await(/the worker ends/)
    open_gate("a")
    assert_equal 0, one.wait.exitstatus
    noted("ended")
  end

  def test_a_job_that_does_not_end_in_time_is_cancelled_and_put_back
    push("Gate", "a")
    one = command("--timeout", "0.01")
    noted("begun")
    assert_ends_well(one)
    assert_equal [1, 0], storage.stats.values_at(:enqueued, :in_flight)
  end

  def test_the_second_signal_cancels_what_runs
    push("Gate", "a")
    one = command
    noted("begun")
    one.signal(:TERM)
    one.await(/the worker ends/)
    assert_ends_well(one)
    assert_equal [1, 0], storage.stats.values_at(:enqueued, :in_flight)
  end

  def test_the_third_signal_ends_it_at_once
    one = command
    push("Compute", path("never"))
    noted("begun")
    one.signal(:TERM)
    one.await(/the worker ends/)
    one.signal(:INT)
    one.await(/told twice to end/)
    assert_equal 1, one.finish.exitstatus
    assert_equal 1, storage.stats[:in_flight]
  end

  # The program, with less patience.
  def hasty(owner)
    File.write(path("hasty.rb"), <<~RUBY)
      require_relative "app"
      Ringspun::Jobs.const_get(:#{owner}).then { |owner| owner.__send__(:remove_const, :GRACE) && owner.const_set(:GRACE, 0.01) }
    RUBY
    "hasty.rb"
  end

  # It is in the way of all that the loop does. Its neighbours go back, and it is taken over by others.
  def assert_computing_holds_up_no_end(*arguments, **)
    3.times { |i| push("Gate", i.to_s) }
    one = command(*arguments, program: hasty(:WorkerProcess), **)
    noted("begun", 3)
    push("Compute", path("never"))
    noted("begun")
    push("Gate", "unread")
    storage.fetch(@nodes.first, ["default"], 1) # as a wait of the worker's, whose answer its loop never reads
    assert_equal 5, storage.stats[:in_flight]
    yield one
    assert_equal 1, one.wait.exitstatus
    assert_equal [4, 1], storage.stats.values_at(:enqueued, :in_flight)
    assert_equal(%w[Gate], storage.list("default", 0, 9).map { |job| JSON.parse(job.entry)["class"] }.uniq)
  end

  def test_a_job_that_computes_for_ever_does_not_hold_up_the_end
    assert_computing_holds_up_no_end("--timeout", "0.01") do |one|
      one.signal(:TERM)
      # The strand that listens does not get its turn; the dashboards' way is a thread's.
      storage.signal(@nodes.first, "TERM")
    end
  end

  def test_a_job_that_computes_for_ever_does_not_hold_up_the_second_signal
    assert_computing_holds_up_no_end do |one|
      one.signal(:TERM)
      one.await(/the worker ends/)
      one.signal(:TERM)
    end
    dead = @command.pid
    command
    lapse(dead)
    assert_equal %w[0 1 2 compute unread], noted("begun", 5).map(&:first).sort
  end

  # Or it would still run while others may have it.
  def test_what_runs_in_quarantine_ends_before_it_is_given_back
    File.write(path("strict.rb"), <<~'RUBY')
      require_relative "hasty"
      Ringspun::Jobs::Worker.const_get(:Acker).prepend(Module.new do
        def send_elsewhere(*)
          children = Dir.glob("/proc/self/task/*/children").flat_map { |path| File.read(path).split }
          sleep(0.01) until children.all? { |pid| File.read("/proc/#{pid}/stat").match?(/\) Z/) }
          super
        end
      end)
    RUBY
    hasty(:WorkerProcess)
    push("Gate", "apart", queue: Storage::QUARANTINE)
    one = command(program: "strict.rb")
    noted("begun")
    push("Compute", path("never"))
    noted("begun")
    2.times { one.signal(:TERM).then { one.await(/the worker ends|told twice to end/) } }
    assert_equal 1, one.wait.exitstatus
    assert_equal [1, 1], [storage.list(Storage::QUARANTINE, 0, 9).size, storage.stats[:in_flight]]
  end

  def test_quiet
    one = command
    one.signal(:TSTP)
    one.await(/no more jobs are fetched/)
    push("Note", "a")
    assert_ends_well(one)
    assert_equal [1, 0], [storage.stats[:enqueued], call("LLEN", "ended")]
  end

  def test_the_strands_are_shown
    push("Gate", "a")
    one = command
    noted("begun")
    # It waits now, and did not only once; so may one of an earlier test, for a moment.
    waits = / name=ringspun:waits:#{Regexp.escape(@nodes.first)} .*flags=b/
    Thread.pass until call("CLIENT", "LIST").match?(waits)
    nil until strands_of(one).any?(/waits for (read|poll)/) # a strand that waits for Redis may run just then
    open_gate("a")
    assert_ends_well(one)
  end

  # A line for each.
  def strands_of(command)
    command.signal(:TTIN)
    Array.new(Integer(command.await(/#<Ringspun::Machine.* strands=(\d+)/)[1])) { command.await(/ +#<Ringspun::Strand.*/)[0] }
  end

  def test_its_title_says_how_busy_it_is
    push("Gate", "a")
    one = command
    noted("begun")
    Thread.pass until File.read("/proc/#{one.pid}/cmdline").include?(" default [1 of 1000 busy]")
    open_gate("a")
    assert_ends_well(one)
  end

  def test_a_log_that_is_moved_away
    push("Note", "a")
    one = start("--log", "jobs.log", "--log-format", "json")
    noted("ended")
    File.rename(path("jobs.log"), path("jobs.log.1"))
    one.signal(:USR2)
    Thread.pass until File.exist?(path("jobs.log"))
    push("Gate", "b")
    noted("begun")
    open_gate("b")
    noted("ended")
    assert_ends_well(one)
    lines = File.readlines(path("jobs.log")).map { |line| JSON.parse(line) }
    assert_includes lines.map { |line| line.values_at("class", "text") }, %w[Gate done]
    refute_includes File.read(path("jobs.log.1")), "Gate"
  end

  # --- several ---

  def test_several_processes
    6.times { |i| push("Gate", i.to_s) }
    one = command("--processes", "2", "-c", "3", ready: 2)
    assert_equal workers.sort, noted("begun", 6).map(&:last).tally.select { |_, count| count == 3 }.keys.sort
    6.times { |i| open_gate(i.to_s) }
    noted("ended", 6)
    assert_ends_well(one)
    assert_equal [0, 0, 0], storage.stats.values_at(:enqueued, :in_flight, :nodes)
    workers.each { |pid| assert_raises(Errno::ESRCH) { Process.kill(0, pid) } }
  end

  def test_a_process_that_is_killed_is_replaced_and_its_jobs_run_in_a_child
    push("Gate", "a")
    one = command("--processes", "2", ready: 2)
    ((_, victim)) = noted("begun")
    one.signal(:KILL, victim)
    ((_, isolated)) = noted("begun")
    refute_includes workers, isolated
    one.await(/node=(\S+) .*the worker is ready/)
    open_gate("a")
    assert_equal [["a", isolated]], noted("ended")
    assert_ends_well(one)
  end

  # With connections of its own, while its parent has some in use.
  def test_a_job_in_quarantine_may_enqueue
    push("Relay", "a")
    one = command("--processes", "2", ready: 2)
    one.signal(:KILL, noted("begun").first.last)
    noted("begun")
    open_gate("a", 2)
    assert_equal "from", noted("ended").first.first
    one.await(/class=Note .*done/)
    assert_ends_well(one)
    assert_equal [0, 0, 2], storage.stats.values_at(:enqueued, :in_flight, :processed)
  end

  def test_a_poison_job_dies_and_its_neighbours_do_not
    push("Poison")
    5.times { |i| push("Gate", i.to_s) }
    one = command("--processes", "2", "-c", "6", ready: 2)
    noted("begun", 6)
    open_gate("poison", 8) # until it is isolated, and then three times
    one.await(/taken over/)
    5.times { |i| open_gate(i.to_s, 8) }
    seen = []
    seen |= noted("ended").map(&:first) until seen.size == 5 # one may end and be killed before anybody was told
    one.await(/class=Poison .*dead/)
    assert_equal %w[Poison], storage.scan(:dead, 0, 9).map { |job| JSON.parse(job.entry)["class"] }
    assert_equal 3, one.lines.grep(/class=Poison .*SIGKILL/).size
    refute_match(/class=Gate .*(SIGKILL|dead$)/, one.lines.join)
    assert_ends_well(one)
  end

  def test_a_process_that_is_told_to_end_is_replaced
    one = command("--processes", "2", ready: 2)
    one.signal(:TERM, workers.first)
    one.await(/child=#{workers.first} status="exit 0" a process has ended/)
    one.await(/the worker is ready/)
    assert_ends_well(one)
  end

  # A child that has said goodbye waits for its end until its supervisor has beaten for it again.
  def test_a_beat_after_the_goodbye_leaves_no_node
    File.write(path("late.rb"), <<~RUBY)
      require_relative "app"
      Ringspun::Jobs::Worker.prepend(Module.new do
        include Noting
        def run
          super
          note("left", "left \#{Process.pid}")
          redis = RedisClient.new(path: ENV.fetch("SEEN"), timeout: 60)
          sleep(0.01) until redis.call("GET", "end")
          redis.close
        end
      end)
    RUBY
    one = command("--processes", "2", ready: 2, program: "late.rb")
    one.signal(:TERM)
    noted("left", 2)
    sleep(0.01) until storage.stats[:nodes] == 2 # they are there again
    call("SET", "end", "1")
    assert_equal 0, one.wait.exitstatus, one.lines.join
    assert_equal 0, storage.stats[:nodes]
  end

  def test_the_second_signal_cancels_what_runs_in_all
    4.times { |i| push("Gate", i.to_s) }
    one = command("--processes", "2", "-c", "2", ready: 2)
    noted("begun", 4)
    one.signal(:INT)
    one.await(/all workers end/)
    assert_ends_well(one, :INT)
    assert_equal [4, 0], storage.stats.values_at(:enqueued, :in_flight)
  end

  # A supervisor leaves its processes the time for that.
  def test_a_job_that_computes_for_ever_in_one_of_several
    assert_computing_holds_up_no_end("--processes", "2", ready: 2) do |one|
      one.signal(:TERM)
      one.await(/all workers end/)
      one.signal(:TERM)
    end
    process = Jobs.const_get(:WorkerProcess)
    assert_operator Jobs.const_get(:Supervisor)::GRACE, :>, process::GRACE + process::GIVING_BACK_SECONDS
  end

  def test_all_are_killed_by_the_third_signal
    one = command("--processes", "2", ready: 2)
    push("Compute", path("never"))
    noted("begun")
    one.signal(:INT)
    one.await(/all workers end/)
    one.signal(:TERM)
    one.await(/told twice to end/)
    assert_equal 1, one.finish(:INT).exitstatus
  end

  # As a service manager does it.
  def test_a_signal_that_reaches_all_processes_at_once
    push("Gate", "a")
    one = command("--processes", "2", ready: 2)
    noted("begun")
    one.signal(:TERM, -one.pid)
    one.await(/all workers end/)
    open_gate("a")
    assert_equal 0, one.wait.exitstatus, one.lines.join
    noted("ended")
  end

  def test_one_that_does_not_end_is_killed
    one = command("--processes", "2", "--timeout", "0.01", program: hasty(:Supervisor), ready: 2)
    one.signal(:STOP, workers.first)
    assert_equal 1, one.finish.exitstatus
    one.lines.join.then { |lines| assert_match(/child=#{workers.first} status=SIGKILL/, lines) }
  end

  def test_quiet_is_for_all_and_those_who_come_later
    one = command("--processes", "2", ready: 2)
    one.signal(:TSTP)
    2.times { one.await(/no more jobs are fetched/) }
    one.signal(:KILL, workers.first)
    one.await(/the worker is ready/)
    one.await(/no more jobs are fetched/)
    push("Note", "a")
    assert_ends_well(one)
    assert_equal [1, 0], [storage.stats[:enqueued], call("LLEN", "ended")]
  end

  # --- leases ---

  # Yields with a way to wait for so many beats of a node.
  def watching_beats
    call("CONFIG", "SET", "notify-keyspace-events", "K$x")
    events = RedisClient.new(path: redis_path, driver: :ruby, timeout: 60).pubsub
    events.call("PSUBSCRIBE", "__keyspace@0__:#{@namespace}:ringspun:alive:*")
    yield lambda { |node, count|
      while count.positive?
        kind, _, channel, event = events.next_event(40)
        refute_nil kind, "no beat of #{node}"
        next unless kind == "pmessage" && channel.end_with?(node)

        assert_equal "set", event, "its lease is over"
        count -= 1
      end
    }
  ensure
    events&.close
    call("CONFIG", "SET", "notify-keyspace-events", "")
  end

  # More than may have been under way when the worker got into its state.
  BEATS = 4

  def assert_computing_costs_no_lease(*arguments, processes:)
    one = command(*arguments, ready: processes)
    push("Compute", path("enough"))
    ((_, worker)) = noted("begun")
    watching_beats { |beats| beats.call(@nodes.find { |name| name.include?(":#{worker}:") }, BEATS) }
    assert_equal 0, call("LLEN", "begun"), "nobody has taken it over"
    File.write(path("enough"), "")
    assert_equal [["compute", worker]], noted("ended")
    assert_ends_well(one)
  end

  def test_a_job_that_computes_costs_no_lease = assert_computing_costs_no_lease(processes: 1)

  def test_a_job_that_computes_costs_no_lease_beside_others
    assert_computing_costs_no_lease("--processes", "2", processes: 2)
  end

  # With nobody who beats for it, and while the loop stands still.
  def test_a_job_that_computes_is_not_interrupted_by_the_death_of_the_supervisor
    one = command("--processes", "2", ready: 2)
    push("Compute", path("enough"))
    ((_, worker)) = noted("begun")
    one.signal(:KILL)
    watching_beats { |beats| beats.call(@nodes.find { |name| name.include?(":#{worker}:") }, BEATS) }
    File.write(path("enough"), "")
    assert_equal [["compute", worker]], noted("ended")
    one.wait
    assert_equal [0, 1], storage.stats.values_at(:in_flight, :processed)
  end

  def test_without_its_supervisor_a_worker_drains_and_keeps_its_lease
    push("Gate", "a")
    one = command("--processes", "2", ready: 2)
    ((_, worker)) = noted("begun")
    node = @nodes.find { |name| name.include?(":#{worker}:") }
    one.signal(:KILL)
    watching_beats { |beats| beats.call(node, BEATS) }
    assert_equal 0, call("LLEN", "begun"), "nobody has taken it over"
    open_gate("a")
    assert_equal [["a", worker]], noted("ended")
    one.wait
    assert_equal 0, storage.stats[:in_flight]
  end

  # Who beats for itself does so twice a lease, which here is twice a part of it.
  def test_a_frozen_supervisor_costs_no_lease
    File.write(path("sooner.rb"), <<~RUBY)
      require_relative "app"
      Ringspun::Jobs.const_get(:Lifeline).prepend(Module.new do
        def heed = @line.define_singleton_method(:wait_readable) { |seconds| super(seconds / 1000) } && super
      end)
    RUBY
    push("Gate", "a")
    one = command("--processes", "2", ready: 2, program: "sooner.rb")
    ((_, worker)) = noted("begun")
    node = @nodes.find { |name| name.include?(":#{worker}:") }
    one.signal(:STOP)
    watching_beats { |beats| beats.call(node, BEATS) }
    one.signal(:CONT)
    open_gate("a")
    assert_equal [["a", worker]], noted("ended")
    assert_ends_well(one)
  end

  def test_the_jobs_of_a_frozen_worker_are_taken_over
    push("Gate", "a")
    one = command("--processes", "2", ready: 2)
    ((_, frozen)) = noted("begun")
    one.signal(:STOP, frozen)
    one.await(/child=#{frozen} a process is stopped/)
    lapse(frozen)
    ((_, other)) = noted("begun")
    refute_equal frozen, other
    open_gate("a", 2)
    noted("ended")
    one.signal(:CONT, frozen)
    one.await(/taken away/) # its run has ended by then and is not acked, or it is cancelled
    assert_ends_well(one)
    assert_equal [0, 0], storage.stats.values_at(:enqueued, :in_flight)
  end
end
