# frozen_string_literal: true

require "jobs_helper"
require "ringspun/jobs/cli"
require "stringio"
require "support/locale"
require "support/redis_case"
require "support/sqlite_case"
require "tmpdir"

# The commands that list, change, export and import jobs.
module JobCommandsSuite
  CLI = Ringspun::Jobs::CLI
  Jobs = Ringspun::Jobs
  Storage = Jobs::Storage

  # Somebody at a terminal who answers.
  class Terminal < StringIO
    def tty? = true
  end

  def entry(jid, job_class: "Work", queue: "default", **fields)
    JSON.generate("class" => job_class, "args" => fields.delete(:args) || [], "jid" => jid, "queue" => queue,
                  **fields.transform_keys(&:to_s))
  end

  def push(*jids, queue: "default", **)
    kept.push(jids.map { |jid| Storage::Push.new(queue, entry(jid, queue:, **), jid) })
  end

  def add(set, *jids, at: 100.0, **)
    kept.restore(set, jids.each_with_index.map { |jid, index| Storage::Stored.new(nil, entry(jid, **), at + index) })
  end

  # What it prints, and its status.
  def command(*words, input: StringIO.new)
    @output = StringIO.new
    @errors = StringIO.new
    arguments = CLI.const_get(:Arguments).new(words)
    status = arguments.command.new(kept, arguments.options, input:, output: @output, errors: @errors).call(arguments.names)
    [@output.string, status]
  end

  def text(*words, **) = command(*words, **).first

  def json(...) = text(...).lines.map { |line| JSON.parse(line) }

  def refused(...) = assert_raises(Jobs::ConfigError) { command(...) }.message

  def jids(place)
    all = place.is_a?(Symbol) ? kept.scan(place, 0, 10_000) : kept.list(place, 0, 10_000)
    all.map { |one| JSON.parse(one.entry)["jid"] }
  end

  # --- lists ---

  def test_a_list
    add(:retry, "a", "b", queue: "slow", error_class: "IOError", error_message: "no\e[2J", args: [1, "x" * 100])
    lines = text("retries").lines
    assert_match(/\Aat +jid  class  queue  arguments +error$/, lines.first)
    assert_match(/\A1970-01-01 .*  a    Work   slow   \[1,"x+\.\.\.  IOError: no\?\[2J$/, lines[1])
    assert_equal 3, lines.size
    last = json("retries", "--json").last
    assert_equal ["retries", 101.0, "b"], [*last.values_at("place", "at"), last["job"]["jid"]]
  end

  def test_the_dead_begin_with_the_last
    add(:dead, *("a".."e"))
    assert_equal %w[e d c], json("dead", "--json", "--limit", "3").map { |row| row["job"]["jid"] }
    assert_equal %w[e d c b a], json("dead", "--json", "--all").map { |row| row["job"]["jid"] }
  end

  def test_a_list_of_many_is_read_in_pages
    add(:schedule, *(1..2500).map(&:to_s))
    assert_equal [100, 2500, 1500], [[], ["--all"], ["--limit", "1500"]].map { |words| json("scheduled", "--json", *words).size }
    assert_equal [2500, 1], [text("scheduled", "--all").lines.size - 1, text("scheduled", "--all").scan(/arguments/).size]
  end

  def test_what_is_listed_may_be_chosen
    add(:dead, "a", job_class: "A", tags: %w[x], args: ["needle"])
    add(:dead, "b", job_class: "Wrapper", wrapped: "A", queue: "other")
    add(:dead, "c")
    { %w[--class A] => %w[a b], %w[--jid b --jid c --jid d] => %w[b c], %w[--tag x] => %w[a], %w[--text eedl] => %w[a],
      %w[--queue other] => %w[b], %w[--class A --queue default] => %w[a] }.each do |words, expected|
      assert_equal expected, json("dead", "--json", *words).map { |row| row["job"]["jid"] }.sort, words.inspect
    end
  end

  def test_an_entry_that_is_no_job_is_listed
    kept.restore(:dead, [Storage::Stored.new(nil, "no job", 5)])
    assert_match(/  no job     no job$/, text("dead"))
    assert_equal "no job", json("dead", "--json").first["entry"]
  end

  def test_what_runs
    kept.announce("host:1:aa", { "concurrency" => 5 },
                  [["1", "default", entry("a"), 7.0], ["2", "slow", entry("b", queue: "slow"), 8.0]])
    assert_match(/^1970-01-01 \S+  host:1:aa  b    Work   slow     \[\]$/, text("busy"))
    assert_equal %w[b], json("busy", "--json", "--queue", "slow").map { |row| row["job"]["jid"] }
    assert_equal [["host:1:aa", "default", 7.0]], json("busy", "--json", "--jid", "a").map { |row| row.values.first(3) }
    assert_equal 1, json("busy", "--json", "--limit", "1").size
    assert_empty text("busy", "--class", "Other")
  end

  # --- changes ---

  def test_retry
    add(:retry, "a", "b", "c")
    add(:dead, "d")
    assert_equal ["1 job enqueued\n", 0], command("retry", "retries", "--jid", "b")
    assert_equal ["1 job enqueued\n", 0], command("retry", "--jid", "d")
    assert_equal [%w[b d], %w[a c], []], [jids("default"), jids(:retry), jids(:dead)]
    assert_equal ["2 jobs enqueued\n", 0], command("retry", "retries", "--all", "--yes")
    assert_empty jids(:retry)
  end

  def test_kill_and_delete
    push("a", "b", "c", "d")
    add(:schedule, "e", job_class: "Other")
    assert_equal ["1 job killed\n", 0], command("kill", "queue:default", "--jid", "b")
    assert_equal ["1 job killed\n", 0], command("kill", "scheduled", "--class", "Other")
    assert_equal ["1 job deleted\n", 0], command("delete", "default", "--jid", "c")
    assert_equal [%w[a d], %w[b e], []], [jids("default"), jids(:dead).sort, jids(:schedule)]
    assert_equal [{ "deleted" => 2, "gone" => 0, "missing" => [] }], json("delete", "dead", "--all", "--yes", "--json")
  end

  def test_a_job_that_is_nowhere
    assert_equal ["0 jobs deleted\nthere is no x to delete\n", 1], command("delete", "dead", "--jid", "x")
    add(:dead, "a")
    assert_equal [{ "enqueued" => 1, "gone" => 0, "missing" => ["x"] }], json("retry", "--jid", "a", "--jid", "x", "--json")
  end

  def test_a_job_that_runs
    push("a")
    kept.fetch("host:1:aa", ["default"], 1)
    assert_equal ["0 jobs killed\nthere is no a to kill\n", 1], command("kill", "--jid", "a")
    assert_equal "a runs at host:1:aa; cancel it if it is to end\n", @errors.string
    kept.announce("host:1:aa", { "concurrency" => 5 }, [])
    assert_equal ["all processes are told\n", 0], command("cancel", "a")
    kept.retract("host:1:aa")
    assert_equal ["no process runs jobs, so nobody was told\n", 1], command("cancel", "a")
    assert_equal [%(CANCEL:{"jid":"a"})], kept.signals("host:1:aa").map { |text| text.delete(" ") }
  end

  # Of a queue from which jobs are removed a search misses others.
  def test_many
    push(*(1..2500).map(&:to_s))
    push(*(1..300).map { |number| "x#{number}" }, job_class: "Other")
    assert_equal "2500 jobs deleted\n", text("delete", "default", "--class", "Work", "--yes")
    assert_equal 300, jids("default").size
    add(:retry, *(1..2500).map { |number| "r#{number}" })
    assert_equal "2500 jobs enqueued\n", text("retry", "retries", "--all", "--yes")
    assert_equal "2800 jobs moved\n", text("move", "default", "slow", "--all", "--yes")
    assert_equal [0, 2800], [jids("default").size, jids("slow").size]
  end

  # A storage finds the oldest of a queue soonest.
  def test_a_queue_is_changed_from_the_oldest_on
    push(*(1..1500).map(&:to_s), job_class: "Stays")
    push(*(1501..4000).map(&:to_s))
    sizes = []
    broken = Class.new(SimpleDelegator) do
      define_method(:remove) do |place, tokens, **options|
        sizes << tokens.size
        sizes.size > 2 ? raise(Ringspun::Jobs::UnavailableError, "away") : super(place, tokens, **options)
      end
    end
    arguments = CLI.const_get(:Arguments).new(%w[delete default --class Work --yes])
    command = arguments.command.new(broken.new(kept), arguments.options, output: StringIO.new)
    assert_raises(Jobs::UnavailableError) { command.call(["default"]) }
    assert_equal [500, 1000, 1000], sizes
    assert_equal (3001..4000).map(&:to_s), jids("default").drop(1500)
  end

  def test_move
    push("a", "b")
    add(:dead, "c", failed_at: 5)
    assert_equal ["1 job moved\n", 0], command("move", "default", "queue:slow", "--jid", "b")
    assert_equal ["1 job moved\n", 0], command("move", "dead", "slow", "--all", "--yes")
    assert_equal [%w[a], %w[b c]], [jids("default"), jids("slow")]
    moved = JSON.parse(kept.list("slow", 1, 1).first.entry)
    assert_equal ["slow", 5], moved.values_at("queue", "failed_at")
    assert_in_delta kept.time, moved["enqueued_at"], 60
    assert_equal "move: they are there already", refused("move", "slow", "slow", "--all", "--yes")
    assert_equal "move: jobs are moved to a queue; to the dead by kill", refused("move", "slow", "dead", "--all", "--yes")
    assert_match(/\Amove: say from where to where/, refused("move", "slow", "--all"))
    assert_match(/quarantine/, refused("move", "slow", Storage::QUARANTINE, "--all"))
  end

  def test_a_lock_is_released
    %w[success start expiry].each { |ends| add(:retry, ends, unique_token: ends, unique_until: ends) }
    %w[success start expiry].each { |ends| kept.lock(ends, ends, 100) }
    assert_equal "3 jobs deleted\n", text("delete", "retries", "--all", "--yes")
    assert_equal [nil, nil, "expiry"], %w[success start expiry].map { |token| kept.lock(token, "other", 100) }
  end

  def test_somebody_is_asked
    add(:dead, "a", "b")
    assert_equal ["", 0], command("delete", "dead", "--all", input: Terminal.new("no\n"))
    assert_equal "delete 2 jobs of dead? [y/N] nothing is done\n", @errors.string
    assert_equal ["", 0], command("delete", "dead", "--all", input: Terminal.new(""))
    assert_equal 2, jids(:dead).size
    assert_equal ["1 job deleted\n", 0], command("delete", "dead", "--jid", "a", input: Terminal.new(""))
    assert_equal ["1 job deleted\n", 0], command("delete", "dead", "--all", input: Terminal.new("y\n"))
  end

  def test_where_nobody_can_be_asked
    add(:dead, "a", "b", job_class: "A")
    assert_equal "delete: --all of dead needs --yes where nobody can be asked", refused("delete", "dead", "--all")
    assert_equal ["2 jobs deleted\n", 0], command("delete", "dead", "--class", "A")
  end

  def test_orders_that_make_no_sense
    assert_equal "delete: say which jobs: by --class, --jid, --tag, --text or --queue, or --all", refused("delete", "dead")
    assert_equal "delete: say where: scheduled, retries, dead or queue:NAME; a --jid is looked for everywhere",
                 refused("delete", "--all")
    assert_equal "delete: --all and a choice exclude each other", refused("delete", "dead", "--all", "--jid", "a")
    assert_equal "delete: there is no queue retires", refused("delete", "retires", "--all")
    assert_equal "kill: it does nothing to dead; it takes retries, scheduled or queue:NAME", refused("kill", "dead", "--all")
    assert_equal "retry: it does nothing to default; it takes retries, dead or scheduled", refused("retry", "default", "--all")
    assert_equal "delete: it takes one place, got dead retries", refused("delete", "dead", "retries", "--all")
    assert_equal "dead: --limit must be 1 or more, got 0", refused("dead", "--limit", "0")
    assert_equal '"queue:" is no place; there are scheduled, retries, dead and queue:NAME', refused("delete", "queue:", "--all")
    assert_equal "cancel: it needs the jids of jobs", refused("cancel")
  end

  # --- from storage to storage ---

  def test_an_export_is_read_back
    push(*(1..2300).map(&:to_s), args: ["ü"])
    push("other", queue: "x::y")
    add(:retry, "r")
    kept.restore(:dead, [Storage::Stored.new(nil, "no \xff job".b, 5.5)])
    before = all
    file = text("export", "all")
    assert_equal [2303, "2303 jobs exported\n"], [file.lines.size, @errors.string]
    assert_equal ["0 jobs imported, 2303 were there\n", 0], command("import", input: StringIO.new(file))
    ["default", "x::y", :retry, :dead].each { |place| kept.clear(place) }
    assert_equal ["2303 jobs imported, 0 were there\n", 0], command("import", "-", input: StringIO.new(file))
    assert_equal before, all
    assert_equal [{ "imported" => 0, "there" => 2303 }], json("import", "--json", input: StringIO.new(file))
  end

  # Under cron there is no LANG.
  def test_an_export_in_the_locale_c
    push("a", args: ["ü"], queue: "müll")
    Dir.mktmpdir("ringspun-export-") do |folder|
      path = "#{folder}/jobs.jsonl"
      Locale.in_locale_c { command("export", Locale.word("queue:müll"), path) }
      kept.clear("müll")
      file = StringIO.new(File.read(path, encoding: Encoding::US_ASCII))
      assert_equal "1 job imported, 0 were there\n", Locale.in_locale_c { text("import", path) }
      kept.clear("müll")
      assert_equal "1 job imported, 0 were there\n", text("import", input: file)
      assert_equal ["ü"], JSON.parse(kept.list("müll", 0, 1).first.entry)["args"]
    end
  end

  def test_a_choice_in_the_locale_c
    add(:dead, "a", "b", job_class: "Größe", args: ["ü"], tags: ["ä"])
    { "--class" => "Größe", "--text" => "ü", "--tag" => "ä" }.each do |name, value|
      assert_equal 2, json("dead", "--json", name, Locale.word(value)).size, name
    end
    push("c", queue: "müll")
    assert_equal ["1 job deleted\n", 0], command("delete", Locale.word("müll"), "--class", "Work")
  end

  # Other programs may write any bytes, and any time.
  def test_jobs_that_json_cannot_say
    odd = entry("a", args: ["b", 1]).sub('"b"', %("\xff")).sub(",1]", ",1e400]")
    kept.restore(:dead, [Storage::Stored.new(nil, odd, 5.0)])
    kept.restore(:retry, [Storage::Stored.new(nil, odd, Float::INFINITY)])
    kept.announce("host:1:aa", { "concurrency" => 5 }, [["1", "default", odd.scrub, 1.0]]) # as workers do
    %w[dead retries busy].each do |command|
      assert_match(/ a +Work /, text(command), command)
      assert_equal ["\u{fffd}", "Infinity"], json(command, "--json").first["job"]["args"], command
    end
    file = text("export", "all")
    %i[dead retry].each { |set| kept.clear(set) }
    assert_equal "1 job imported, 1 was there\n", text("import", input: StringIO.new(file))
    assert_equal [odd.b], kept.scan(:retry, 0, 9).map { |one| one.entry.b }
  end

  def test_words_that_are_no_text
    ["\xff", Locale.word("\xff")].each do |word|
      [["retry", "--jid", word, "--json"], ["dead", "--text", word], ["cancel", word], ["pause", word]].each do |words|
        assert_match(/\Aa word of the command line is no UTF-8: "\\xFF"\z/, refused(*words), words.inspect)
      end
    end
  end

  def test_a_job_that_has_moved_on_is_not_imported
    add(:retry, "a", "b")
    file = text("export", "retries")
    text("retry", "retries", "--jid", "a")
    kept.fetch("host:1:aa", ["default"], 1)
    assert_equal "0 jobs imported, 2 were there\n", text("import", input: StringIO.new(file))
  end

  def test_a_file
    Dir.mktmpdir("ringspun-export-") do |folder|
      path = "#{folder}/jobs.jsonl"
      push("a")
      assert_equal ["", 0], command("export", "queue:default", path)
      assert_equal 0o600, File.stat(path).mode & 0o777
      assert_equal "export: #{path} is there already", refused("export", "all", path)
      kept.clear("default")
      assert_equal "1 job imported, 0 were there\n", text("import", path)
      assert_match(%r{\Aimport: .*none cannot be read: }, refused("import", "#{folder}/none"))
      assert_equal "export: there is no queue nothing", refused("export", "nothing")
      assert_match(/\Aexport: say what: all, /, refused("export"))
    end
  end

  def test_a_file_that_is_none
    ["no json", "{}", %({"place":"retries","entry":"x"}), %({"place":"a","at":5,"entry":"x"}), "[]"].each do |line|
      file = %({"place":"queue:default","entry":#{entry("a").to_json}}\n#{line}\n)
      assert_equal "import: line 2 is none of an export; before it 0 jobs were imported",
                   refused("import", input: StringIO.new(file))
    end
  end

  # Jobs that are fetched while a queue is exported shift the others.
  def test_an_export_of_a_queue_that_is_served
    push(*(1..3000).map(&:to_s))
    export = CLI.const_get(:Export).new(kept, {}, output: StringIO.new)
    seen = []
    export.send(:queue, "default") do |jobs|
      seen.concat(jobs.map { |job| JSON.parse(job.entry)["jid"] })
      kept.fetch("host:1:aa", ["default"], 700)
    end
    assert_equal (1..3000).map(&:to_s), seen
  end

  def all = [jids("default"), jids("x::y"), jids(:retry), kept.scan(:dead, 0, 5).map { |job| [job.entry.b, job.at] }]
end

class MemoryJobCommandsTest < Minitest::Test
  include AnyBackend
  include JobCommandsSuite

  def kept = @kept ||= Storage::Memory.new
end

class RedisJobCommandsTest < RedisCase
  include AnyBackend
  include JobCommandsSuite

  def kept = storage
end

class SqliteJobCommandsTest < SqliteCase
  include AnyBackend
  include JobCommandsSuite

  def kept = storage
end
