# frozen_string_literal: true

require "etc"
require "tempfile"

# Runs passes beside each other, JOBS at a time (by default as many as there are processors). A pass is a command that can run
# beside others. Its output is printed in one piece when it has ended, and that of failed ones again at the end, where a person
# looks. All run, whatever fails: the second failure may explain the first. A single pass prints as it goes.
class Passes
  Pass = Data.define(:name, :command, :env)

  def self.pass(name, *command, env: {}) = Pass.new(name:, command: command.map(&:to_s), env:)
  def self.jobs = Integer(ENV.fetch("JOBS") { Etc.nprocessors })

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

  Ended = Data.define(:pass, :output, :status, :seconds) do
    def passed? = status.success?
    def to_s = format("%<seconds>6.1f s  %<how>s%<name>s", seconds:, name: pass.name, how: passed? ? "" : "FAILED: ")
    def tests = output.scan(/^\w[\w:]*#test_\w+/).uniq
    def reason = status.signaled? ? "signal #{Signal.signame(status.termsig)}" : "exit #{status.exitstatus}"
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
    return Ended.new(pass:, output: "", status: wait(spawn(pass.env, *pass.command)), seconds: now - began) if @alone

    # Into a file, because a process that a pass leaves running could hold a pipe open for ever.
    Tempfile.create("pass") do |output|
      status = wait(spawn(pass.env, *pass.command, in: File::NULL, %i[out err] => output))
      Ended.new(pass:, output: File.read(output.path), status:, seconds: now - began)
    end
  end

  def wait(pid)
    @lock.synchronize { @running << pid }
    Process.wait2(pid).last
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

    @out.puts "", "== all passes", @ended
    failures.each { |ended| tell(ended) }
    # Last only their names, for of a long output some see no more than the end.
    failures.each { |ended| @out.puts "", "FAILED: #{ended.pass.name}", ended.tests }
    @out.flush
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
