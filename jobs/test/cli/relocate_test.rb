# frozen_string_literal: true

require "jobs_helper"
require "ringspun/jobs/cli"
require "ringspun/jobs/storage/sqlite"
require "stringio"
require "support/forked_command"
require "support/redis_case"
require "tmpdir"

# The command that moves all jobs from one storage to another.
class RelocateTest < RedisCase
  CLI = Jobs::CLI

  def before_setup
    ForkedCommand.server
    super
  end

  def setup
    super
    @folder = Dir.mktmpdir("ringspun-relocate-")
  end

  def teardown
    super
    FileUtils.rm_rf(@folder)
    Storage::Sqlite.const_get(:Guard).sweep
  end

  def url = "unix://#{redis_path}"

  def file = "sqlite:#{@folder}/jobs.sqlite3"

  def target = @target ||= opened(Storage::Sqlite.new("#{@folder}/jobs.sqlite3"))

  def job(jid, queue: "default", **) = JSON.generate({ class: "Work", args: [], jid:, queue:, created_at: 1.5, ** })

  def push(*jids, queue: "default")
    storage.push(jids.map { |jid| Storage::Push.new(queue, job(jid, queue:), jid) })
  end

  def move(*words)
    output = StringIO.new
    @errors = StringIO.new
    arguments = CLI.const_get(:Arguments).new(["move", *words])
    assert_equal false, arguments.command.storage?(arguments.options)
    [arguments.command.new(nil, arguments.options, output:, errors: @errors).call(arguments.names), output.string]
  end

  def refused(*) = assert_raises(Jobs::ConfigError) { move(*) }.message

  def jids(all) = all.map { |one| Jobs::Wire.jid(one.entry) }

  def test_there_and_back
    push("a", "b")
    storage.restore(:dead, [Storage::Stored.new(nil, job("c"), 5.0)])
    storage.pause("slow")
    there = "3 jobs moved from #{url} to #{file}\n"
    assert_equal [0, there], move("--from", url, "--to", file)
    assert_equal [%w[a b], %w[c], %w[slow]], [jids(target.list("default", 0, 9)), jids(target.scan(:dead, 0, 9)), target.paused]
    target.close # in this process the command has closed its own
    assert_equal [0, "3 jobs moved from #{file} to #{url}\n"], move("--from", file, "--to", url)
    assert_equal [%w[a b], %w[c]], [jids(storage.list("default", 0, 9)), jids(storage.scan(:dead, 0, 9))]
  end

  def test_a_count_changes_nothing
    push("a", "b")
    push("c", queue: "slow")
    storage.pause("slow")
    storage.fetch(NODE, ["default"], 1)
    expected = <<~TEXT
      queue:default  1
      queue:slow     1
      scheduled      0
      retries        0
      dead           0
      in flight      1

      paused: slow
      nothing was moved
    TEXT
    assert_equal [0, expected], move("--from", url, "--to", file, "--dry-run")
    refute_path_exists "#{@folder}/jobs.sqlite3"
    counts = { "queues" => { "default" => 1, "slow" => 1 }, "enqueued" => 2, "scheduled" => 0, "retries" => 0, "dead" => 0,
               "in_flight" => 1 }
    assert_equal counts, JSON.parse(move("--from", url, "--to", file, "--dry-run", "--json").last)
  end

  def test_once_waits_for_nobody
    push("a", "b")
    storage.extend([NODE], 600)
    storage.announce(NODE, { "concurrency" => 1 }, [])
    storage.fetch(NODE, ["default"], 1)
    storage.restore(:schedule, [Storage::Stored.new(nil, job("soon"), storage.time + 9)])
    assert_equal [0, <<~TEXT], move("--from", url, "--to", file, "--once")
      1 job moved from #{url} to #{file}
      left: 1 scheduled, 1 in flight
      1 process still serves the old storage
    TEXT
    report = JSON.parse(move("--from", url, "--to", file, "--once", "--json").last)
    assert_equal [0, 0, 0, 1], [*report.values_at("moved", "there", "gone"), report["left"]["in_flight"]]
  end

  # It has copied them, and was killed.
  def test_what_is_there_already_is_not_stored_again
    push("a", "b")
    target.restore("default", [Storage::Stored.new(nil, job("a"))])
    target.close
    assert_equal [0, "1 job moved from #{url} to #{file}\n1 job was there already\n"], move("--from", url, "--to", file)
    assert_equal %w[a b], jids(target.list("default", 0, 9))
  end

  def test_another_job_with_the_same_jid_is_one_of_its_own
    push("a")
    target.restore("default", [Storage::Stored.new(nil, job("a", created_at: 7.5))])
    target.close
    assert_equal [0, "1 job moved from #{url} to #{file}\n"], move("--from", url, "--to", file)
    assert_equal %w[a a], jids(target.list("default", 0, 9))
  end

  def test_entries_of_cron_that_are_paused
    storage.cron_define("shop", %w[nightly weekly].map { |name| Storage::Cron.new(name, nil, "daily", "{}") })
    storage.cron_pause("nightly", true)
    move("--from", url, "--to", file)
    assert_equal [["nightly", "shop", true]], target.crons.map { |cron| [cron.name, cron.source, cron.paused] }
    target.cron_pause("nightly", false)
    target.close
    move("--from", url, "--to", file) # which takes nothing back
    assert_equal [false], target.crons.map(&:paused)
  end

  def test_what_makes_no_sense
    assert_match(/\Amove: say from where to where: move --from STORAGE --to STORAGE/, refused("--from", url))
    assert_match(/\Amove: say from where to where/, refused("--once"))
    assert_equal "move: from one storage to another it moves all jobs, and takes no \"dead\"",
                 refused("dead", "--from", url, "--to", file)
    assert_equal "move: from one storage to another it moves all jobs, and takes no --class",
                 refused("--from", url, "--to", file, "--class", "A")
    assert_equal "move: --once and --stay exclude each other", refused("--from", url, "--to", file, "--once", "--stay")
    assert_match(/\Amove: memory is in the memory of this process, /, refused("--from", url, "--to", "memory"))
    assert_match(/\Athere is no storage "elsewhere"; there are redis, /, refused("--from", url, "--to", "elsewhere"))
    File.symlink(redis_path, "#{@folder}/another")
    assert_equal "move: --from and --to are the same place, #{url}", refused("--from", url, "--to", "unix://#{@folder}/another")
  end

  # --- as a process ---

  def start(*words) = opened(ForkedCommand.new("move", *words, chdir: @folder))

  def test_it_is_killed_and_begins_again
    jids = (1..2000).map(&:to_s)
    push(*jids)
    killed = start("--from", url, "--to", file)
    Patience.poll(60, pause: 0.001) { begun? }
    killed.signal(:KILL)
    killed.wait
    lapse_all
    command = start("--from", url, "--to", file)
    assert_equal 0, command.wait.exitstatus, command.lines.join
    assert_equal jids.sort, jids(target.list("default", 0, 9999)).sort
    assert_equal [0, 0], storage.stats.values_at(:enqueued, :in_flight)
  end

  # Ends the command in the middle of its third page.
  module InTheThirdPage
    class << self
      attr_accessor :signal, :pages
    end

    def ack(...)
      signal = InTheThirdPage.signal
      Process.kill(signal, Process.pid) if signal && (InTheThirdPage.pages += 1) == 3
      super
    end
  end

  # What has come to the new storage leaves the old one before.
  def test_it_is_told_to_end
    Storage::Redis.prepend(InTheThirdPage)
    jids = (1..500).map(&:to_s)
    { INT: [[], 130], TERM: [%w[--stay], 0] }.each do |signal, (words, status)|
      storage.clear("default")
      push(*jids)
      InTheThirdPage.pages = 0
      InTheThirdPage.signal = signal
      ended, told = move("--from", url, "--to", file, *words)
      InTheThirdPage.signal = nil
      assert_equal [status, "300 jobs moved from #{url} to #{file}", "left: 200 in queues"], [ended, *told.lines(chomp: true)]
      assert_equal [200, 0, 300], [*storage.stats.values_at(:enqueued, :in_flight), target.stats[:enqueued]]
      assert_equal jids, jids(target.list("default", 0, 999)) + jids(storage.list("default", 0, 999))
      target.clear("default")
    end
  ensure
    InTheThirdPage.signal = nil
  end

  # Without a storage of the test's that has the file open: it would write to it.
  def begun? = storage.stats[:enqueued].between?(1, 1900)

  def lapse_all = call("SMEMBERS", "ringspun:nodes").each { |node| storage.extend([node], 0.001) }

  def test_a_server_that_is_away
    command = start("--from", "unix://#{@folder}/none", "--to", file)
    assert_equal 1, command.wait.exitstatus
    assert_match(/\Aringspun-jobs: Redis cannot be reached, and nothing was sent: /, command.lines.join)
  end
end
