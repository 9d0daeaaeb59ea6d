# frozen_string_literal: true

require "jobs_helper"
require "pty"
require "ringspun/jobs/cli"
require "stringio"
require "support/command"
require "ringspun/jobs/storage/sqlite"
require "support/redis_case"

# The live view, on a terminal of the test's, and what it says where there is none.
class TopTest < RedisCase
  include AnyBackend

  CLI = Jobs::CLI
  Top = CLI.const_get(:Top)
  LEFT = "\e[?7h\e[?25h\e[?1049l"

  def memory = @memory ||= Storage::Memory.new

  def entry(jid, **) = JSON.generate("class" => "Work", "args" => [1], "jid" => jid, "queue" => "default", **)

  def fill(storage)
    storage.push(%w[a b].map { |jid| Storage::Push.new("default", entry(jid), jid) })
    storage.push([Storage::Push.new("markup\e[2J", "no job", nil)])
    storage.announce("host:1:aa", { "concurrency" => 1000, "queues" => %w[default], "rss" => 2048 },
                     [["1", "default", entry("r", "wrapped" => "Inner"), storage.time - 61]])
    storage.measure([Storage::Measure.new(29_000_000, "Work", 21, 1, 100, { 0 => 9, 3 => 9, 4 => 1, 9 => 1 })])
    storage.pause("default")
  end

  # --- without a terminal ---

  def report(storage, *words)
    output = StringIO.new
    arguments = CLI.const_get(:Arguments).new(["top", "--interval", "0.1", *words])
    assert_equal 0, arguments.command.new(storage, arguments.options, input: StringIO.new, output:).call([])
    output.string
  end

  def assert_report(storage, place)
    fill(storage)
    text = report(storage)
    assert_match(/\A\d\d:\d\d:\d\d  processed 0 \(0\.0\/s\)  failed 0 \(0\.0\/s\)$/, text)
    assert_match(/^enqueued 3  scheduled 0  retries 0  dead 0  in flight 0  busy 1 of 1,000$/, text)
    assert_match(/^#{Regexp.escape(place)}$/, text)
    assert_match(/^default   +2   +paused$/, text)
    assert_match(/^markup\?\[2J +1$/, text)
    assert_match(/^host:1:aa +1  1000  2 MB    default$/, text)
    assert_match(/^6\d s  r    Inner  default  \[1\]$/, text)
    assert_match(/^Work +21 +1  65 ms       100 ms$/, text)
    refute_includes text, "\e"
  end

  def test_one_plain_report = assert_report(memory, "in the memory of process #{Process.pid}")

  def test_one_of_a_file
    Dir.mktmpdir("ringspun-top-") do |folder|
      file = Storage::Sqlite.new("#{folder}/jobs.sqlite3")
      assert_report(file, "in #{file.identity}")
    ensure
      file.close
    end
  end

  def test_as_json
    fill(memory)
    top = JSON.parse(report(memory, "--json"))
    assert_equal [3, { "default" => 2, "markup\e[2J" => 1 }, %w[default], 0.0],
                 top.values_at("enqueued", "queues", "paused", "processed_per_second")
    assert_equal "the memory of process #{Process.pid}", top["storage"]
    assert_equal [{ "class" => "Work", "processed" => 21, "failed" => 1, "p50_ms" => 65, "p95_ms" => 100 }], top["classes"]
  end

  def test_nothing_there
    assert_equal 3, report(memory).lines.size
  end

  # --- what fits ---

  def lines(rows, storage = memory)
    history = Top.const_get(:History).new
    2.times { history.add(Jobs::Metrics.sample(storage)) }
    work = storage.work(storage.nodes.map { |node| node["identity"] }).flatten
    Top.const_get(:Report).new(history, work, storage.measured, place: storage.identity).lines(rows)
  end

  def test_it_fits_whatever_the_size
    40.times { |number| memory.push([Storage::Push.new("queue#{number}", entry("a"), "a")]) }
    fill(memory)
    (1..80).each { |rows| assert_operator lines(rows).size, :<=, [rows, 4].max, rows }
    assert_includes lines(24).join("\n"), "  and 40 more"
    assert_includes lines(24).join("\n"), "host:1:aa"
    assert_equal lines(nil).size, lines(200).size
  end

  def test_throughput
    history = Top.const_get(:History).new
    sample = Jobs::Metrics.const_get(:Sample)
    [[0, 10], [1, 30], [3, 30], [4, 130]].each { |time, processed| history.add(sample.new(time, { processed: })) }
    assert_equal [[20.0, 0.0, 100.0], "▂▁█"], [history.rates(:processed), history.bars(:processed)]
    100.times { |time| history.add(sample.new(time, { processed: 0 })) }
    assert_equal 60, history.rates(:processed).size
  end

  # --- on a terminal ---

  # What is drawn next. A frame ends by clearing what is left over.
  def frame
    text = @shown.slice!(/\A.*?\e\[J\e\[\?2026l/m) and return text
    @shown << @master.readpartial(65_536)
    frame
  rescue Errno::EIO
    flunk "it has ended: #{@shown}"
  end

  def frame_until
    loop do
      text = frame
      return text if yield text
    end
  end

  def start
    @master, @slave = PTY.open
    [@master, @slave].each { |one| opened(one) }
    @slave.winsize = [24, 100]
    @shown = +""
    fill(storage)
    @pid = spawn({ "RUBYOPT" => nil }, RbConfig.ruby, "-w", *Command::LOAD_PATH, Command::EXECUTABLE, "top", "--interval", "0.1",
                 "--redis", "unix://#{redis_path}", in: @slave, out: @slave, err: @slave, pgroup: true)
    opened(Ended.new(@pid))
    frame
  end

  # Whatever happens to the test.
  Ended = Struct.new(:pid) do
    def close
      Process.kill(:KILL, pid)
      Process.wait(pid)
    rescue SystemCallError
      nil
    end
  end

  def status = Process.wait2(@pid).last

  # The kernel passes on what was written to a terminal when it comes to it.
  def assert_restored
    patience = Patience.new(40)
    until @shown.include?(LEFT)
      patience.until_true { |left| @master.wait_readable(left) } or break
      @shown << @master.readpartial(65_536)
    end
    assert_includes @shown, LEFT
    assert @slave.echo?
  end

  def test_live_until_q
    text = start
    assert_includes text, "busy 1 of 1,000"
    assert_includes text, "markup?[2J"
    refute @slave.echo?
    storage.push([Storage::Push.new("fresh", entry("c"), "c")])
    frame_until { |one| one.include?("fresh") }
    @master.write("xq")
    assert_equal 0, status.exitstatus
    assert_restored
  end

  def test_it_follows_the_size_of_the_terminal
    assert_operator start.scan("\n").size, :>, 6
    @slave.winsize = [5, 20]
    Process.kill(:WINCH, @pid)
    small = frame_until { |one| one.scan("\n").size < 5 }
    widths = small.gsub(/\e\[[?\d]*[A-Za-z]/, "").delete("\r").split("\n").map(&:size)
    assert_operator widths.max, :<=, 20
    Process.kill(:TERM, @pid)
    assert_equal Signal.list["TERM"], status.termsig
    assert_restored
  end

  def test_control_c
    start
    Process.kill(:INT, @pid)
    assert_equal 0, status.exitstatus
    assert_restored
  end

  def test_control_z_and_back
    start
    Process.kill(:TSTP, @pid)
    Process.wait2(@pid, Process::WUNTRACED)
    assert_restored # so that a frame from before is not taken for one from afterwards
    @shown.clear
    Process.kill(:CONT, @pid)
    frame
    refute @slave.echo?
    @master.write("q")
    assert_equal 0, status.exitstatus
    assert_restored
  end

  # The second look raises.
  def test_a_crash
    @master, @slave = PTY.open
    [@master, @slave].each { |one| opened(one) }
    @shown = +""
    looks = 0
    broken = Class.new(SimpleDelegator) do
      define_method(:stats) { |**options| (looks += 1) > 1 ? raise("broken") : super(**options) }
    end
    assert_raises(RuntimeError) { Top.new(broken.new(memory), { interval: 0.1 }, input: @slave, output: @slave).call([]) }
    assert_restored
  end

  def test_the_storage_is_away_for_a_while
    @master, @slave = PTY.open
    [@master, @slave].each { |one| opened(one) }
    @shown = +""
    away = Class.new(SimpleDelegator) do
      attr_accessor :away

      def stats(**) = away ? raise(Ringspun::Jobs::UnavailableError, "gone fishing") : super
    end.new(memory)
    top = Thread.new { Top.new(away, { interval: 0.1 }, input: @slave, output: @slave).call([]) }
    frame
    away.away = true
    frame_until { |one| one.include?("no answer: gone fishing") }
    away.away = false
    frame_until { |one| !one.include?("no answer") }
    @master.write("q")
    assert_equal 0, top.value
  end

  def test_an_interval_that_makes_no_sense
    error = assert_raises(Jobs::ConfigError) { Top.new(memory, { interval: 0 }).call([]) }
    assert_equal "top: --interval must be 0.1 or more, got 0", error.message
  end
end
