# frozen_string_literal: true

require "jobs_helper"
require "ringspun/jobs/cli"
require "stringio"
require "support/command"
require "support/redis_case"
require "tmpdir"

# What the executable does instead of running jobs.
class CommandsTest < RedisCase
  CLI = Jobs::CLI

  def memory = @memory ||= Storage::Memory.new

  def push(queue) = memory.push([Storage::Push.new(queue, JOB, "a")])

  def command(*words) = answer(words).last

  def status(*words) = answer(words).first

  def answer(words)
    output = StringIO.new
    arguments = CLI.const_get(:Arguments).new(words)
    [arguments.command.new(memory, arguments.options, output: output).call(arguments.names), output.string]
  end

  def refused(*words)
    assert_raises(Jobs::ConfigError) { command(*words) }.message
  end

  def test_queues_are_paused_and_go_on
    push("reports")
    assert_equal "reports is paused\nslow is paused; nothing was ever enqueued there\n", command("pause", "reports", "slow")
    assert_equal %w[reports slow], memory.paused
    assert_equal "reports goes on\nother was not paused\n", command("resume", "reports", "other")
    assert_equal %w[slow], memory.paused
  end

  # As other commands name them.
  def test_a_queue_by_its_place
    push("reports")
    assert_equal "reports is paused\n", command("pause", "queue:reports")
    assert_equal %w[reports], memory.paused
    assert_equal "reports goes on\n", command("resume", "queue:reports")
    assert_match(/"queue:" is no place/, refused("pause", "queue:"))
  end

  def test_how_things_are
    3.times { push("critical") }
    push("default")
    memory.pause("default")
    memory.pause("none yet")
    info = { "concurrency" => 1000, "queues" => %w[critical default] }
    memory.announce("host:1:aa", info, [["1", "default", JOB, 1.0]])
    memory.announce("host:22:bb", { **info, "queues" => ["critical"], "quiet" => true }, [])
    assert_equal <<~TEXT, command("status")
      queue     waiting
      critical        3
      default         1  paused
      none yet        0  paused

      process     busy    of  serves
      host:1:aa      1  1000  critical,default
      host:22:bb     0  1000  critical          quiet

      processed 0, failed 0, enqueued 4, scheduled 0, retries 0, dead 0, in flight 0
      in the memory of process #{Process.pid}
    TEXT
  end

  def test_how_things_are_as_json
    push("critical")
    memory.pause("other")
    memory.announce("host:1:aa", { "concurrency" => 5, "queues" => %w[critical] }, [])
    status = JSON.parse(command("status", "--json"))
    assert_equal ["the memory of process #{Process.pid}", { "critical" => 1 }, %w[other], 1, ["host:1:aa"]],
                 [*status.values_at("storage", "queues", "paused", "enqueued"),
                  status["processes"].map { |node| node["identity"] }]
  end

  def test_queues
    memory.push([Storage::Push.new("slow", JOB.sub("{", %({"enqueued_at":#{memory.time - 90},)))])
    push("other")
    memory.pause("none")
    memory.announce("one", { "queues" => %w[slow], "patterns" => %w[s*] }, [])
    lines = ["queue  waiting  latency  processes", "none         0                   0  paused",
             "other        1                   0", /slow         1  9\d s {13}1/].map { |line| Regexp.union(line) }
    assert_match(/\A#{lines.join("\n")}\n\nin the memory of process \d+\n\z/, command("queues"))
    rows = command("queues", "--json").lines.map { |line| JSON.parse(line) }
    assert_equal [["none", 0, nil, true, 0], ["other", 1, nil, false, 0]], rows.first(2).map(&:values)
    assert_in_delta 90, rows.last["latency"], 10
  end

  def test_check
    assert_equal [1, "no worker runs on the memory of process #{Process.pid}\n"], [status("check"), command("check")]
    memory.announce("one", { "queues" => %w[default], "patterns" => %w[mail_*] }, [])
    push("default")
    push("mail_a")
    assert_equal [0, "1 process, nothing is wrong\n"], [status("check"), command("check")]
    push("low")
    assert_equal [1, "no worker serves low, where 1 job waits\n"], [status("check"), command("check")]
    assert_equal({ "processes" => 1, "wrong" => ["no worker serves low, where 1 job waits"] },
                 JSON.parse(command("check", "--json")))
  end

  def test_there_may_be_nothing
    assert_equal "processed 0, failed 0, enqueued 0, scheduled 0, retries 0, dead 0, in flight 0\n" \
                 "in the memory of process #{Process.pid}\n", command("status")
  end

  def test_a_terminal_is_not_told_what_it_would_obey
    push("a\e[2J\xff")
    assert_match(/^a\?\[2J\?  +1$/, command("status"))
  end

  def test_orders_that_make_no_sense
    assert_match(/\Aunknown command "puase"; --help lists the options, and pause, resume, /, refused("puase", "reports"))
    assert_equal "pause: it needs the names of queues", refused("pause")
    assert_equal "resume: it needs the names of queues", refused("resume", "")
    assert_equal 'status: it takes no names, got "reports"', refused("status", "reports")
    assert_equal "status takes no --jid; --help lists the options", refused("status", "--jid", "a")
    of_worker = assert_raises(Jobs::ConfigError) { CLI.const_get(:Arguments).new(["--all"]) }.message
    assert_equal "a worker takes no --all; --help lists the options", of_worker
  end

  def test_each_has_a_help_of_its_own
    CLI.const_get(:Command).all.each do |title, command|
      help = CLI.const_get(:Arguments).new([title, "--help"]).answer
      assert_match(/\AUsage: ringspun-jobs #{Regexp.escape(command.usage)} \[options\]$/, help)
      assert_includes help, "--redis URL"
      named = help.scan(/^ .*--([a-z-]+)/).flatten.map { |name| name.tr("-", "_").to_sym }
      shown = named & CLI.const_get(:Command)::OPTIONS.keys
      assert_equal command.options.sort, shown.sort, title
    end
  end

  # As head does.
  def test_whoever_reads_has_read_enough
    push("reports")
    Jobs.storage = memory
    reader, writer = IO.pipe
    reader.close
    assert_equal 0, CLI.new(%w[export all], output: writer.tap { |one| one.sync = true }, errors: StringIO.new).run
  ensure
    Jobs.storage = nil
    writer&.close
  end

  # Ruby has it in a buffer until the process ends, and says nothing of an error then.
  def test_what_cannot_be_printed_is_told
    push("reports")
    Jobs.storage = memory
    [%w[export all], %w[status], %w[--help], %w[-V]].each do |words|
      closed = File.open(File::NULL, "w").tap(&:close)
      { File.open("/dev/full", "w") => /No space left/, closed => /closed/ }.each do |output, reason|
        status = CLI.new(words, output:, errors: errors = StringIO.new).run
        assert_equal [1, 1], [status, errors.string.lines.size], words
        assert_match(/\Aringspun-jobs: not all could be printed: .*#{reason}/, errors.string)
      ensure
        close_full(output)
      end
    end
  ensure
    Jobs.storage = nil
  end

  def close_full(output)
    output.close
  rescue Errno::ENOSPC # it tries once more
    nil
  end

  def test_control_c
    interrupting = Class.new(SimpleDelegator) { def stats(**) = raise(Interrupt) }.new(memory)
    Jobs.storage = interrupting
    assert_equal 130, CLI.new(["status"], output: StringIO.new, errors: StringIO.new).run
  ensure
    Jobs.storage = nil
  end

  # --- as a process ---

  def run_command(*words, chdir: @folder)
    command = opened(Command.new(*words, chdir:))
    [command.wait.exitstatus, command.lines.join]
  end

  def in_folder
    Dir.mktmpdir("ringspun-commands-") do |folder|
      @folder = folder
      yield
    end
  end

  def test_it_needs_no_program
    in_folder do
      redis = ["--redis", "unix://#{redis_path}", "--namespace", "of.commands"]
      assert_equal [0, "reports is paused; nothing was ever enqueued there\n"], run_command("pause", "reports", *redis)
      assert_equal %w[reports], open_storage({ path: redis_path }, namespace: "of.commands").paused
      assert_equal [0, "reports goes on\n"], run_command(*redis, "resume", "reports")
    end
  end

  def test_the_program_says_where_the_storage_is
    in_folder do
      File.write("#{@folder}/app.rb", <<~RUBY)
        Ringspun::Jobs.configure { |config| config.update(redis: { path: #{redis_path.inspect} }, namespace: "of.app") }
      RUBY
      File.write("#{@folder}/jobs.yml", "require: ./app.rb\nlog: no/such/folder/log\n")
      status, text = run_command("pause", "reports", "-C", "jobs.yml")
      assert_equal [0, %w[reports]], [status, open_storage({ path: redis_path }, namespace: "of.app").paused], text
    end
  end

  def test_without_a_server
    in_folder do
      status, text = run_command("status", "--redis", "unix://#{@folder}/none")
      assert_equal [1, 1], [status, text.lines.size]
      assert_match(/\Aringspun-jobs: Redis cannot be reached, and nothing was sent: /, text)
    end
  end
end
