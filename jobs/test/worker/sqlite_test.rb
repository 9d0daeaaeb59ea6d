# frozen_string_literal: true

require "jobs_helper"
require_relative "../support/command"
require_relative "../support/sqlite_case"
require_relative "../support/worked"

# Workers on a file: in this process, and as two processes of their own. One of these is killed.
class WorkerSqliteTest < SqliteCase
  include WorkedInTime

  def storage = @storage ||= open_storage

  def teardown
    @commands&.each(&:close)
    super
  end

  def test_a_thousand_jobs_run_once
    seen = Hash.new(0)
    on("note") { |number, _| seen[number] += 1 }
    storage.push(Array.new(1000) { |number| Storage::Push.new(queue: "default", entry: entry("note", number)) })
    with_worker(concurrency: 200) { until_done(1000) }
    assert_equal (0...1000).to_h { |number| [number, 1] }, seen
    assert_equal [1000, 0, 0, 0], storage.stats.values_at(:processed, :enqueued, :in_flight, :nodes)
  end

  def test_a_job_that_fails_is_tried_again_and_keeps_its_history
    tries = 0
    on("fail") { raise "no" if (tries += 1) == 1 }
    storage.push([Storage::Push.new(queue: "default", entry: entry("fail", jid: "f", ringspun_retry_in: 0), jid: "f")])
    with_worker(concurrency: 5) do
      yield_until("it has failed") { sleep(0.002) && storage.stats[:retries] == 1 }
      storage.retry_now(:retry, storage.scan(:retry, 0, 1).map(&:token))
      yield_until("it is done") { sleep(0.002) && tries == 2 && storage.stats[:in_flight].zero? }
    end
    assert_equal %i[retry by_hand done], storage.history("f").map(&:kind)
  end

  # For longer than anybody waits, once while a job runs and once while one waits.
  def test_a_worker_while_another_program_holds_the_file
    connections = Sqlite.const_get(:Connection)
    patience = connections.patience
    connections.patience = 0.01 # must pass
    began, gate = Thread::Queue.new, Thread::Queue.new
    seen = Hash.new(0)
    on("held") { |number, _| (seen[number] += 1) && (began << number) && gate.pop }
    foreign = nil
    storage.push(Array.new(2) { |number| Storage::Push.new(queue: "default", entry: entry("held", number)) })
    with_worker(concurrency: 1) do
      began.pop
      foreign = Extralite::Database.new(path).tap { |one| one.busy_timeout = 60 }
      foreign.execute("BEGIN IMMEDIATE")
      gate.close
      yield_until("it has tried") { sleep(0.002) && lines.to_s.include?("the storage is away") }
      assert_equal [0, 1], storage.stats.values_at(:processed, :in_flight)
      foreign.execute("COMMIT")
      until_done(2)
    end
    assert_equal [{ 0 => 1, 1 => 1 }, 2, 0], [seen, *storage.stats.values_at(:processed, :in_flight)]
  ensure
    connections.patience = patience if patience
    foreign&.close
  end

  # What each job says goes into a folder.
  PROGRAM = <<~'RUBY'
    class Note
      include Ringspun::Jobs::Job

      def perform(number)
        File.write("begun/#{number}", "#{Process.pid}\n", mode: "a")
        sleep 0.01 until File.exist?("open")
        File.write("ended/#{number}", "#{Process.pid}\n", mode: "a")
      end
    end

    class Poison
      include Ringspun::Jobs::Job

      def perform
        sleep 0.01 until File.exist?("open")
        Process.kill(:KILL, Process.pid)
      end
    end
  RUBY

  def start(*)
    File.write(File.join(folder, "app.rb"), PROGRAM)
    %w[begun ended].each { |name| FileUtils.mkdir_p(File.join(folder, name)) }
    command = Command.new("-r", "./app.rb", "--storage", "sqlite:jobs.sqlite3", *, chdir: folder)
    (@commands ||= []) << command
    command.await(/the worker is ready/)
    command
  end

  def names(what) = Dir.children(File.join(folder, what)).size

  def enqueue(count)
    storage.push(Array.new(count) do |number|
      entry = Jobs::Wire.dump("class" => "Note", "args" => [number], "queue" => "default", "jid" => "j#{number}")
      Storage::Push.new(queue: "default", entry: entry, jid: "j#{number}")
    end)
  end

  # All that it had runs again at the other one, in seconds.
  def test_two_processes_one_of_which_is_killed
    workers = Array.new(2) { start("-c", "10") }
    enqueue(20)
    yield_until("all have begun") { sleep(0.01) && names("begun") == 20 }
    workers.first.signal(:KILL)
    FileUtils.touch(File.join(folder, "open"))
    yield_until("all have ended") { sleep(0.01) && names("ended") == 20 && storage.stats[:in_flight].zero? }
    pids = Dir["#{folder}/ended/*"].to_h { |file| [file, File.readlines(file).uniq] }
    assert_equal [1], pids.values.map(&:size).uniq
    assert_predicate workers.last.finish, :success?
    assert_equal [[["ok"]], 20], [query("PRAGMA integrity_check"), storage.stats[:processed]]
  end

  # It ends its worker, then the children of another one, until it is dead. Its neighbours end well.
  def test_a_poison_job
    File.write(File.join(folder, "fast.yml"), "lease: 600\nbeat: 0.25\n")
    first = start("-c", "10", "-C", "fast.yml")
    enqueue(5)
    job = Jobs::Wire.dump("class" => "Poison", "args" => [], "queue" => "default", "jid" => "p")
    storage.push([Storage::Push.new(queue: "default", entry: job, jid: "p")])
    yield_until("all are in flight") { sleep(0.01) && storage.stats[:in_flight] == 6 && names("begun") == 5 }
    second = start("-c", "10", "-C", "fast.yml")
    FileUtils.touch(File.join(folder, "open"))
    assert_equal Signal.list["KILL"], first.wait.termsig
    yield_until("it is dead") { sleep(0.01) && storage.stats[:dead] == 1 && storage.stats[:in_flight].zero? }
    assert_equal [%w[p], 5], [jids(storage.scan(:dead, 0, 9)), names("ended")]
    assert_equal [:taken_over, *([:died] * 2), :dead], storage.history("p").map(&:kind)
    assert_predicate second.finish, :success?
    assert_equal [["ok"]], query("PRAGMA integrity_check")
  end

  def test_a_supervisor_and_its_children
    FileUtils.touch(File.join(folder, "open"))
    supervisor = start("--processes", "2", "-c", "5")
    enqueue(30)
    yield_until("all have ended") { sleep(0.01) && names("ended") == 30 }
    assert_predicate supervisor.finish, :success?
    assert_equal [30, 0, 0], storage.stats.values_at(:processed, :enqueued, :in_flight)
    assert_equal [["ok"]], query("PRAGMA integrity_check")
  end

  def test_two_processes_with_a_schedule_tick_once
    FileUtils.touch(File.join(folder, "open"))
    File.write(File.join(folder, "cron.yml"), "cron: { beat: { schedule: every second, class: Note, args: [beat] } }\n")
    supervisor = start("--processes", "2", "-C", "cron.yml")
    yield_until("it has ticked three times") { sleep(0.01) && storage.crons.any? { |cron| cron.runs.size >= 3 } }
    assert_predicate supervisor.finish, :success?
    runs = storage.crons.first.runs
    assert_equal runs.map(&:tick).uniq.sort.reverse, runs.map(&:tick)
    assert_equal runs.size, storage.stats.values_at(:processed, :enqueued).sum
  end
end
