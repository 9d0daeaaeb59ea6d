# frozen_string_literal: true

require "tempfile"
require_relative "expected_failures"
require_relative "patience"
require_relative "seeds"
require_relative "shrink"

# Runs random programs in forked children, because one may abort its process, or never end. A child runs many and says before
# each which it is, so that its end tells whose doing it was.
class ForkedPrograms
  # The test of a class of such programs. It says by `generator` whose failures are expected, by `path` which file it is, by
  # `programs` how many a day there are, and by `draw(seed)` what they are.
  module Tests
    def test_random_programs
      expected = ExpectedFailures.new(File.expand_path("../random/expected_failures.yml", __dir__), generator)
      forked = ForkedPrograms.new(again: "bin/test #{path} -n /#{self.class.name}/", expected:)
      failures = forked.failures(Seeds.of_the_day(programs)) { |seed| draw(seed) }
      assert failures.empty?, failures.join("\n\n")
    ensure
      puts expected unless expected.to_s.empty?
    end
  end

  SECONDS_MAX = 60
  FAILURES_MAX = 3
  SHRINK_TRIES = 300
  # A program that hangs takes its time at each try.
  SHRINK_SECONDS = 20

  # What a child has met: the place of the program that failed, and how.
  Failure = Data.define(:at, :message)

  # @param again [String] the command that runs a seed again, without the seed
  # @param expected [ExpectedFailures]
  # @param seconds [Integer] how long a program may run
  def initialize(again:, expected:, seconds: SECONDS_MAX)
    @again = again
    @expected = expected
    @seconds = seconds
  end

  # @param seeds [Array<Integer>]
  # @yieldparam seed [Integer]
  # @yieldreturn [Object] a program: `steps`, `with(steps:)`, `run`, which raises when a rule is broken, and `to_s`
  # @return [Array<String>] what failed and is not known, a few at most
  def failures(seeds, &generator)
    found = []
    while seeds.any? && found.size < FAILURES_MAX
      failure = first_failure(seeds) { |seed| generator.call(seed).run } or break
      seed = seeds[failure.at]
      found << describe(seed, generator.call(seed), failure.message) unless @expected.known?(failure.message)
      seeds = seeds.drop(failure.at + 1)
    end
    found
  end

  private

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def describe(seed, program, message)
    until_s = now + SHRINK_SECONDS
    steps = Shrink.smallest(program.steps, tries: SHRINK_TRIES) do |some|
      next if now > until_s

      failure = first_failure([some]) { |fewer| program.with(steps: fewer).run }
      failure && !@expected.known?(failure.message) && (message = failure.message)
    end
    "seed #{seed}: #{message}\nRun it again: RINGSPUN_SEED=#{seed} #{@again}\n" \
      "The program, shrunk from #{program.steps.size} to #{steps.size} steps:\n#{program.with(steps:)}"
  end

  def first_failure(subjects, &)
    Tempfile.create("errors") do |errors|
      reader, writer = IO.pipe
      pid = fork { run_all(subjects, writer, errors, &) }
      writer.close
      begun, message = listen(reader, pid)
      _, status = Process.wait2(pid)
      message ||= "the process has ended: #{status}: #{File.read(errors.path)[0, 500]}" unless status.success?
      return message && Failure.new([begun - 1, 0].max, message)
    ensure
      reader.close
    end
  end

  # How many have begun, and how the last one failed, if it was alive to say so.
  def listen(reader, pid)
    begun = 0
    while Patience.new(@seconds, pid).until_true { |left| reader.wait_readable(left) }
      return [begun, nil] unless (report = reader.gets)
      return [begun, Marshal.load(reader)] if report == "failed\n"

      begun += 1
      Supervised.tick
    end
    Process.kill(:KILL, pid)
    [begun, "it has not ended after #{@seconds} s"]
  end

  def run_all(subjects, writer, errors)
    $stderr.reopen(errors)
    subjects.each do |subject|
      writer.syswrite("begins\n")
      yield subject
    rescue Exception => error
      place = error.backtrace&.first(3)&.join("\n  ")
      writer.syswrite("failed\n#{Marshal.dump("#{error.class}: #{error.message}\n  #{place}")}")
      break
    end
  ensure
    exit!(true)
  end
end
