# frozen_string_literal: true

require_relative "watched_process"

# Runs tests in a process of their own and watches it from outside, where no hang and no crash of a test reaches. A test that has
# ended its process, or that the watchdog has ended, has failed; those after it go on in a new process. A failure is told when it
# happens. At the end each failed test runs again, alone, only to say what kind of failure it was.
class Supervisor
  PROCESSES_MAX = 30
  AGAIN_MAX = 20

  # @param command [Array<String>] runs the tests in one process, and takes options of Minitest
  # @param limits [Watchdog::Limits]
  # @param out [IO] where the tests print
  # @param processes_max [Integer] after that many tests that have ended their process the rest does not run
  # @param live [IO, nil] another place to tell failures at once, where `out` is looked at only at the end
  def initialize(command, limits:, out: $stderr, live: nil, processes_max: PROCESSES_MAX)
    @seed = seed_of(command) || rand(0xFFFF)
    @command = seed_of(command) ? command : [*command, "--seed", @seed.to_s]
    @limits = limits
    @out = out
    @live = live
    @processes_max = processes_max
    @failures = []
    @done = []
    @assertions = 0
  end

  # @return [Boolean] true when all tests have passed
  def run
    trap_signals
    processes = (1..@processes_max).find { run_rest }
    return @passed if @passed || @signal

    tell("FAILED: #{@processes_max} tests have ended their process; those after them have not run") unless processes
    sum_up unless processes == 1
    classify
    false
  end

  private

  def seed_of(command) = command.each_cons(2).find { |option, _| %w[-s --seed].include?(option) }&.last&.to_i

  # What is trapped here has its default in the tests. What is ignored, as SIGINT is in the background of a script, would be
  # ignored there as well.
  def trap_signals
    %w[INT TERM QUIT].each do |signal|
      trap(signal) do
        @signal ||= signal
        @process&.ask_to_end(signal)
      end
    end
  end

  # @return [Boolean] true when nothing is left to run
  def run_rest
    @process = WatchedProcess.new(@command, limits: @limits, except: @done) { |failure| fail_by(failure) }
    status = @process.run
    take_down(@process)
    @passed = @failures.empty? && status.success? == true # nil after a signal
    return true if @signal || (@process.finished? && (status.success? || @failures.any?))
    return broken(status) unless @process.test

    fail_by_end(@process.test, status)
    false
  end

  def take_down(process)
    @done.concat(process.done, [process.test].compact)
    @assertions += process.assertions
  end

  # It has ended before the first test, or after the last one. Why, it has said itself.
  def broken(status)
    tell("FAILED: #{WatchedProcess::OUTSIDE}: the process of the tests has ended by #{status.to_s.sub(/\Apid \d+ /, "")}")
    true
  end

  # The watchdog has told of those that it has ended.
  def fail_by_end(test, status)
    return if @failures.last&.test == test

    fail_by(@process.failure(test, "has ended the process: #{status}"))
  end

  def fail_by(failure)
    @failures << failure
    tell(failure)
  end

  def tell(failure)
    [@live, @out].compact.each do |out|
      out.puts "", failure
      out.flush
    end
  end

  def sum_up
    @out.puts "", "#{@done.size} runs, #{@assertions} assertions, #{@failures.size} failures or errors, in several processes"
  end

  def classify
    @failures.map(&:test).uniq.first(AGAIN_MAX).each do |test|
      verdict = alone(test)
      break if @signal

      first = @failures.find { |failure| failure.test == test }
      tell("again: #{test} #{verdict} (seed #{@seed}; #{first.circumstances})")
    end
  end

  # @return [String] what kind of failure it was
  def alone(test)
    again = nil
    @process = WatchedProcess.new(@command, limits: @limits, only: [test], silent: true) { |failure| again = failure }
    status = @process.run
    return "cannot be run by its name" if @process.done.empty? && @process.test.nil?

    again || @process.test || !status.success? ? "fails alone as well: a defect" : "is right alone: timing, or what ran before it"
  end
end
