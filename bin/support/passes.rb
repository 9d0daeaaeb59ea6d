# frozen_string_literal: true

require "etc"
require "rbconfig"
require "tempfile"

# Runs passes beside each other, JOBS at a time: by default one more than there are processors, for most wait now and then. A
# pass is a command that can run beside others. Its output is printed in one piece when it has ended, and that of failed ones
# again at the end, where a person looks; failures of tests are told at once as well. All run, whatever fails: the second failure
# may explain the first. A single pass prints as it goes. At the end stands what each has cost.
class Passes
  Pass = Data.define(:name, :command, :env)

  def self.pass(name, *command, env: {}) = Pass.new(name:, command: command.map(&:to_s), env:)
  def self.jobs = Integer(ENV.fetch("JOBS") { Etc.nprocessors + 1 })

  def initialize(passes, jobs: self.class.jobs, out: $stdout)
    raise ArgumentError, "jobs: must be 1 or more, got #{jobs}" unless jobs.positive?

    @waiting = Thread::Queue.new(passes).close
    @jobs = [jobs, passes.size].min
    @alone = passes.size == 1
    @out = out
    @lock = Mutex.new
    @running = []
    @ended = []
  end

  # @return [Boolean] true when all have passed
  def run
    workers = Array.new(@jobs) { Thread.new { work } }
    workers.each(&:join)
    failures.empty?
  ensure
    stop(workers)
    report
  end

  private

  METERED = File.expand_path("metered.rb", __dir__)

  # status: as wait(2) has it. seconds: by the clock. cpu: seconds of processors, children included.
  Ended = Data.define(:pass, :output, :status, :seconds, :cpu) do
    def passed? = status.zero?
    def to_s = format("%<cpu>7.1f s CPU %<seconds>6.1f s  %<how>s%<name>s", cpu:, seconds:, name: pass.name, how:)
    def how = passed? ? "" : "FAILED: "
    def tests = output.scan(/^\w[\w:]*#test_\w+/).uniq
    def signal = status & 0x7f # as WTERMSIG does it
    def reason = signal.zero? ? "exit #{status >> 8}" : "signal #{Signal.signame(signal)}"
  end

  def work
    while (pass = @waiting.pop)
      ended = take(pass)
      @lock.synchronize do
        @ended << ended
        tell(ended)
      end
    end
  end

  def take(pass)
    began = now
    return ended(pass, "", began, meter(pass)) if @alone

    # Into a file, because a process that a pass leaves running could hold a pipe open for ever.
    Tempfile.create("pass") do |output|
      told = meter(pass, in: File::NULL, %i[out err] => output)
      ended(pass, File.read(output.path), began, told)
    end
  end

  def ended(pass, output, began, (status, cpu))
    Ended.new(pass:, output:, status: status.to_i, seconds: now - began, cpu: cpu.to_f)
  end

  # @return [Array(String, String)] what metered.rb says
  def meter(pass, **redirections)
    reader, writer = IO.pipe
    live = @out.dup if tells_at_once?
    env = { **pass.env, **(live ? { "RINGSPUN_LIVE" => live.fileno.to_s } : {}) }
    wait(spawn({ **env, **for_the_command(env) }, RbConfig.ruby, "--disable-gems", METERED, writer.fileno.to_s, *pass.command,
               **[writer, live].compact.to_h { |io| [io, io] }, **redirections))
    writer.close
    said = reader.read.split
    said.empty? ? [Signal.list.fetch("KILL").to_s, "0"] : said
  ensure
    [reader, live].compact.each(&:close)
  end

  # What would have the one that meters it load Bundler as well, which takes longer than all else that it does.
  BUNDLER = %w[RUBYOPT BUNDLER_SETUP].freeze

  def for_the_command(env)
    BUNDLER.flat_map { |name| [[name, nil], ["METERED_#{name}", env.fetch(name) { ENV.fetch(name, nil) }]] }.to_h
  end

  # Whether tests have to be told of at once, for the output of their pass comes when it has ended.
  def tells_at_once? = !@alone && @out.is_a?(IO)

  def wait(pid)
    @lock.synchronize { @running << pid }
    Process.wait(pid)
  ensure
    @lock.synchronize { @running.delete(pid) }
  end

  def tell(ended)
    return if @alone

    @out.puts "", "== #{ended.pass.name}: #{ended.passed? ? "passed" : "FAILED (#{ended.reason})"}, #{ended.seconds.round} s",
              ended.output
    @out.flush
  end

  def failures = @ended.reject(&:passed?)

  def report
    return if @alone

    @out.puts "", "== all passes", @ended, format("%<cpu>7.1f s CPU in all", cpu: @ended.sum(&:cpu)), counted,
              booted
    failures.each { |ended| tell(ended) }
    # Last only their names, for of a long output some see no more than the end.
    failures.each { |ended| @out.puts "", "FAILED: #{ended.pass.name}", ended.tests }
    @out.flush
  end

  # Rubies that tests have booted, which costs more than all else.
  def booted = "#{@ended.sum { |ended| ended.output.scan(/^Rubies: (\d+) fresh/).sum { |count,| count.to_i } }} fresh Rubies"

  # What Minitest has counted, in all passes together. Where a pass took several processes, each has counted its own.
  def counted
    names = %w[runs assertions failures errors]
    counts = @ended.flat_map { |ended| ended.output.scan(/^(\d+) #{names.join(", (\\d+) ")}/) }
    names.zip(counts.transpose).map { |name, all| "#{all.to_a.sum(&:to_i)} #{name}" }.join(", ")
  end

  # After an interrupt. Ctrl-C reaches the passes as well; a signal to this process alone does not.
  def stop(workers)
    @waiting.clear
    @lock.synchronize { @running.each { |pid| interrupt(pid) } }
    workers&.each(&:join)
  end

  def interrupt(pid)
    Process.kill(:INT, pid)
  rescue Errno::ESRCH # it has ended just now
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
