# frozen_string_literal: true

require "jobs_helper"
require "ringspun/jobs/cli"
require "stringio"
require "tmpdir"
require "support/client_storage"
require "support/command_case"

# Jobs that come by a schedule, from a shell, and in the worker's process.
class CronCommandTest < Minitest::Test
  include ClientStorage

  Jobs = Ringspun::Jobs
  Storage = Jobs::Storage
  CLI = Jobs::CLI
  NOW = 1_796_083_200.0 # the midnight of 2026-12-01

  def setup
    super
    @now = NOW
    entries = { "nightly" => { "schedule" => "every day at 4am", "class" => "Report", "args" => ["all"] },
                "cleanup" => { "schedule" => "*/20 * * * *", "class" => "Cleanup", "zone" => "Asia/Tokyo" } }
    definitions = Jobs.const_get(:Cron)::Definitions
    @crons = definitions.entries(entries).each_value.map { |entry| stored(entry.name, entry.key("UTC"), entry.to_text("UTC")) }
    memory.cron_define("shop", @crons)
  end

  def stored(name, schedule, text) = Storage::Cron.new(name:, schedule:, text:)

  def memory = @memory ||= Storage::Memory.new(clock: -> { @now })

  def answer(*words)
    output = StringIO.new
    arguments = CLI.const_get(:Arguments).new(["cron", *words])
    [arguments.command.new(memory, arguments.options, output: output).call(arguments.names), output.string]
  end

  def refused(*words) = assert_raises(Jobs::ConfigError) { answer(*words) }.message

  def push(name, tick, jid)
    entry = JSON.generate("class" => "Report", "args" => [], "jid" => jid)
    memory.cron_push(name, tick, Storage::Push.new(queue: "default", entry:, jid:))
  end

  def test_what_there_is
    push("nightly", NOW + 60, "abc")
    memory.cron_pause("cleanup", true)
    table = <<~TEXT
      entry    schedule          zone        job      next                  last
      cleanup  */20 * * * *      Asia/Tokyo  Cleanup                                              paused
      nightly  every day at 4am  UTC         Report   2026-12-01T04:00:00Z  2026-12-01T00:00:00Z

    TEXT
    assert_equal [0, table], answer
    assert_equal [0, table], answer("list")
    @now += 3600
    assert_match(/^nightly .*Z  no worker has it$/, answer.last)
  end

  def test_one_with_its_runs
    push("nightly", NOW + 60, "abc")
    memory.cron_push("nightly", nil, nil)
    status, text = answer("list", "nightly")
    assert_equal 0, status
    refute_match(/cleanup/, text)
    assert_match(/last runs of nightly:\ntick +enqueued +jid\nby hand +2026-12-01T00:00:00Z  no job$/, text)
    assert_match(/^2026-12-01T00:01:00Z  \S+Z  abc$/, text)
    assert_equal [1, "there is no cron entry weekly\n"], answer("list", "weekly")
  end

  def test_as_json
    push("nightly", NOW + 60, "abc")
    one = JSON.parse(answer("--json").last.lines.last)
    assert_equal ["nightly", "every day at 4am", "UTC", "Report", ["all"], "once", "shop", false, NOW + (4 * 3600)],
                 one.values_at("name", "schedule", "zone", "class", "args", "catch_up", "source", "paused", "next")
    assert_equal [{ "tick" => NOW + 60, "at" => NOW, "jid" => "abc" }], one["runs"]
  end

  def test_it_is_paused_and_goes_on
    assert_equal [0, "nightly is paused\ncleanup is paused\n"], answer("pause", "nightly", "cleanup")
    assert_equal [true, true], memory.crons.map(&:paused)
    assert_equal [1, "nightly was paused already\nthere is no cron entry weekly\n"], answer("pause", "nightly", "weekly")
    assert_equal [0, "nightly goes on\n"], answer("resume", "nightly")
    assert_equal [0, "nightly was not paused\n"], answer("resume", "nightly")
  end

  # By what the storage has of it, for this process has no such class.
  def test_it_runs_now
    memory.cron_pause("nightly", true)
    status, text = answer("run", "nightly")
    job = JSON.parse(memory.list("default", 0, 1).first.entry)
    assert_equal [0, "nightly is enqueued as #{job["jid"]}\n", "Report", ["all"]], [status, text, *job.values_at("class", "args")]
    assert_equal [1, "there is no cron entry weekly\n"], answer("run", "weekly")
  end

  def test_it_cannot_be_made_here
    text = JSON.generate("schedule" => "every day", "class" => "Nobody", "args" => [], "options" => {}, "wrapped" => true)
    memory.cron_define("shop", [*@crons, stored("job", "x", text)])
    assert_match(/only a program that has Nobody can make its jobs: do this in that one's folder/, refused("run", "job"))
    memory.cron_define("shop", [*@crons, stored("job", "y", "5")])
    assert_match(/^job +y .* the cron entry job is none of this version's/, answer.last)
  end

  def test_what_makes_no_sense
    assert_match(/cron: it needs the names of entries/, refused("pause"))
    assert_match(/cron: there is no stop; there are list, pause, resume and run/, refused("stop", "nightly"))
  end

  # Ours, and that of Sidekiq, which passes over it.
  def test_a_file_names_another_one
    Dir.mktmpdir do |folder|
      other = File.join(folder, "schedule.yml")
      File.write(other, "test: { a: { cron: '0 0 * * *', class: A } }\nproduction: { b: { cron: '0 0 * * *', class: B } }\n")
      %w[sidekiq.yml ringspun-jobs.yml].each do |name|
        File.write(path = File.join(folder, name), "cron: #{other}\ncron_zone: Asia/Tokyo\n")
        settings = CLI.const_get(:File).new(path, "production").settings
        config = Jobs::Config.new.update(settings)
        assert_equal [%w[b], "Asia/Tokyo"], [config.cron.keys, config.cron_zone], name
      end
    end
  end

  def test_nothing_there
    @memory = nil
    assert_equal [0, ""], answer
  end
end

# In a process of its own.
class CronProcessTest < CommandCase
  SETTINGS = "#{LEASE}cron: { beat: { schedule: every second, class: Note, args: [one] } }\n"

  PROGRAM = <<~'RUBY'
    require "redis-client"

    class Note
      include Ringspun::Jobs::Job

      def perform(text)
        redis = RedisClient.new(path: ENV.fetch("SEEN"), timeout: 60)
        redis.call("RPUSH", "seen", "#{text} #{jid}")
        redis.close
      end
    end

    Ringspun::Jobs.cron("coded", "every second", Note, "coded")

    # What nobody foresees.
    Ringspun::Jobs::Config.prepend(Module.new do
      def reload_cron(value) = value.key?("broken") ? raise(NotImplementedError, "broken") : super
    end)
  RUBY

  # The first job of that name, after whatever came before.
  def await(text)
    loop do
      found = @redis.blocking_call(45, "BLPOP", "seen", 40) or flunk "no #{text}: #{@command&.lines&.join}"
      return if found.last.start_with?("#{text} ")
    end
  end

  def reload(cron)
    File.write(path("fast.yml"), "#{LEASE}cron: #{cron}\n")
    @command.signal(:HUP)
  end

  def check_reload(*arguments)
    call("PING")
    one = start(*arguments)
    await("one")
    await("coded")
    reload("{ beat: { schedule: every second, class: Note, args: [two] } }")
    one.await(/the file was read again: the schedule has 1 entry/)
    await("two")
    reload("{ beat: { schedule: every blue moon, class: Note } }")
    one.await(/ERROR .*the schedule stays as it is: the cron entry beat: "every blue moon" is no schedule/)
    await("two")
    reload("{ beat: { schedule: every day at 4am UTC+3, class: Note } }")
    one.await(/ERROR .*the schedule stays as it is: the cron entry beat: "every day at 4am UTC\+3" is no schedule/)
    await("two")
    reload("{ broken: { schedule: every second, class: Note } }")
    one.await(/ERROR .*error=NotImplementedError .*SIGHUP was not obeyed: broken/)
    await("two")
    assert_equal 0, one.finish.exitstatus, one.lines.join
    runs = storage.crons.flat_map { |cron| cron.runs.map { |run| [cron.name, run.tick] } }
    assert_equal runs, runs.uniq
    runs.group_by(&:first).each_value { |all| assert_equal all, all.sort_by { |_, tick| -tick } }
  end

  def test_a_worker_reads_its_file_again = check_reload

  def test_a_parent_has_its_children_do_so = check_reload("--processes", "2")

  def test_what_is_wrong_is_told_before_anything_runs
    File.write(path("fast.yml"), "cron: { a: { schedule: every day, class: Note }, a: { schedule: every hour, class: Note } }\n")
    one = start
    assert_equal 64, one.wait.exitstatus
    assert_match(/fast.yml has a twice under cron; give one of them another name/, one.lines.join)
  end

  def test_a_file_of_others_that_nobody_has_named
    FileUtils.mkdir_p(path("config"))
    File.write(path("config/recurring.yml"), "a: { schedule: every second, class: Note, args: [three] }\n")
    File.write(path("fast.yml"), LEASE)
    one = start
    one.await(%r{WARN .*config/recurring.yml is not read: if it has a schedule for jobs, write "cron: config/recurring.yml"})
    one.await(/the worker is ready/) # a HUP before that ends it
    reload("config/recurring.yml")
    call("PING")
    await("three")
    assert_equal 0, one.finish.exitstatus, one.lines.join
  end
end
