# frozen_string_literal: true

require "tempfile"
require_relative "watchdog"

# A process that runs tests and says which (runtime/test/support/supervised.rb), until it has ended by itself or the watchdog has
# ended it.
class WatchedProcess
  # A test that has failed. text: as Minitest prints it. load: of the machine, by proc_loadavg(5). waited: the seconds for which
  # the process had waited for a processor until then.
  Failure = Data.define(:test, :text, :load, :waited) do
    def to_s = "FAILED: #{test}\n#{text}"
    def circumstances = format("load %<load>s; the process had waited %<waited>.1f s for a processor", load:, waited:)
  end

  # How long it may take to print where its threads are.
  PRINT_SECONDS = 5

  # For the C stack of one that holds the GVL, where there is a debugger.
  DEBUGGER = %w[timeout 20 gdb --batch -ex thread\ apply\ all\ bt -p].freeze

  # How long tests may take to end after they have been asked to.
  ASKED_SECONDS = 30

  OUTSIDE = "outside of any test"

  # The tests that ran to their end, whatever became of them, and the assertions in them.
  attr_reader :done, :assertions

  # The test that ran when the process ended.
  attr_reader :test

  # @param command [Array<String>]
  # @param limits [Watchdog::Limits]
  # @param only [Array<String>, nil] names of the tests to run; nil: all
  # @param except [Array<String>] names of tests to leave out
  # @param silent [Boolean] what it prints is not wanted
  # @yieldparam failure [Failure] when it happens
  def initialize(command, limits:, only: nil, except: [], silent: false, &failed)
    @command = command
    @redirection = silent ? { %i[out err] => File::NULL } : {}
    @limits = limits
    @lists = { "RINGSPUN_TESTS_ONLY" => only, "RINGSPUN_TESTS_EXCEPT" => except }.compact
    @failed = failed
    @done = []
    @assertions = 0
  end

  # @return [Process::Status]
  def run
    with_lists { |env| start(env) }
    watch
    @waiter.value
  end

  # @return [Boolean] true when Minitest has come to its end
  def finished? = @reported && !@ended_by_us

  # Asks it to end, as Ctrl-C would.
  #
  # @param signal [String]
  def ask_to_end(signal)
    @asked_at ||= now
    @asked = signal
    kill(signal, @pid) if @pid # else when it has begun
  end

  # @return [Failure] one of now
  def failure(test, text)
    Failure.new(test:, text:, load: File.read("/proc/loadavg").split.first(3).join(" "), waited: @times.sample&.waited || 0)
  end

  private

  def with_lists
    files = @lists.transform_values { |tests| Tempfile.new("tests").tap { |file| file.puts(tests) } }
    files.each_value(&:flush)
    yield files.transform_values(&:path)
  ensure
    @files = files.values # the process reads them when it begins, so they have to stay as long as this object
  end

  def start(env)
    @out, theirs = IO.pipe
    asked, @asks = IO.pipe
    # In a group of its own, so that it can be ended with all that it has started.
    @pid = spawn({ **env, "RINGSPUN_SUPERVISOR" => "#{theirs.fileno},#{asked.fileno}" }, *@command,
                 theirs => theirs, asked => asked, pgroup: true, **@redirection)
    kill(@asked, @pid) if @asked
    [theirs, asked].each(&:close)
    @times = ProcessTimes.new(@pid, @kept = [])
    @watchdog = Watchdog.new(@limits) { @times.sample }
    begin_test(nil)
  end

  def watch
    over, ended = IO.pipe
    @waiter = Thread.new { Process.wait2(@pid).last.tap { ended.close } }
    loop do
      ready, = IO.select([@out, over], nil, nil, 1)
      break if ready&.include?(over)

      hear if ready
      look
    end
    nil while @out.wait_readable(0) && hear # what it has said last
  ensure
    [@out, @asks, over].each(&:close)
  end

  def look
    late = @asked_at && now - @asked_at > ASKED_SECONDS ? "it has not ended when it was asked to" : @watchdog.look(now)
    end_for(late) if late && !@ended_by_us
  end

  # One message.
  #
  # @return [Boolean] false when there will be no more
  def hear
    header = @out.read(4) or return false
    what, *more = @out.read(header.unpack1("N")).force_encoding(Encoding::UTF_8).split("\0", -1)
    case what
    when "begins" then begin_test(more.first)
    when "ended" then end_test(*more)
    when "tick" then begin_test(@test)
    when "keeps" then @kept << Integer(more.first)
    when "reported" then @reported = true
    when "printed" then @printed = true
    end
    true
  end

  def begin_test(name)
    @test = name
    @watchdog.begin_test(name || OUTSIDE, now)
  end

  def end_test(name, assertions, text = nil)
    @done << name
    @assertions += Integer(assertions)
    @failed.call(failure(name, text)) if text
    begin_test(nil)
  end

  # Its threads say first where they are, if they can.
  def end_for(reason)
    @ended_by_us = true
    groups = @times.groups
    seen = IO.popen([{ "LD_PRELOAD" => nil }, "ps", "-o", "pid,pgid,stat,etime,time,wchan:20,args",
                     "-p", [@pid, *@times.descendants].join(",")], &:read)
    ask_for_threads
    stack = @printed ? "" : "It holds the GVL.\n#{stack_in_c}"
    @failed.call(failure(@test || OUTSIDE, "ended, for #{reason}\n#{seen}#{stack}"))
  ensure
    groups.each { |group| kill(:KILL, -group) }
  end

  def ask_for_threads
    return if @redirection.any? # nobody reads it

    @asks.puts
    give_up = now + PRINT_SECONDS
    nil while !@printed && @out.wait_readable([give_up - now, 0].max) && hear
  rescue Errno::EPIPE # it has just ended
    @printed = true
  end

  def stack_in_c
    return "" if @redirection.any? # nobody reads it

    IO.popen([*DEBUGGER, @pid.to_s], err: File::NULL, &:read)
  rescue Errno::ENOENT
    ""
  end

  def kill(signal, pid)
    Process.kill(signal, pid)
  rescue Errno::ESRCH # it has just ended
    nil
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
