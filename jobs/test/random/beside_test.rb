# frozen_string_literal: true

require "jobs_helper"
require "support/shrink"
require_relative "../support/sqlite_case"
require_relative "../support/beside"

# Random programs of two processes that share a file, while what is beside it is removed, moved away, put back and replaced:
# between two of their calls, or before any statement of one. What was accepted is there once, what was refused is not, and in the
# end both processes go on.
class RandomBesideTest < SqliteCase
  include AnyBackend

  PROGRAMS = 20
  # So many in a test: each has a limit of time.
  SLICE = 100
  STEPS = 14
  PARTS = %w[-wal -shm -locks].freeze
  FAULTS = %i[remove move put_back replace].freeze
  # Where nobody has a -wal open, it may be one or another. That is told, and a person has to decide.
  UNDECIDED = /-wal is not the one that was beside this file/
  TOLD = %w[Ringspun::Jobs::UnavailableError Ringspun::Jobs::UnknownOutcomeError].freeze
  # Calls after which a process must go on, for each of both may have to let go first.
  TRIES = 4

  Seeds.of_the_day(PROGRAMS).each_slice(SLICE).with_index(1) do |seeds, index|
    define_method(:"test_random_programs_#{index}") { seeds.each { |seed| check(seed) } }
  end

  # Old files are put back beside one that has its name: an idle process has them, and the other one what was stored after that.
  def test_two_of_three_are_put_back
    check("none", [[0, :push, 2, nil], [1, :work, 1, nil], [nil, nil, nil, [0, [:move, PARTS]]], [0, :work, 1, nil],
                   [0, :push, 2, nil], [nil, nil, nil, [0, [:put_back, %w[-locks -shm]]]]])
  end

  private

  def check(seed, steps = steps_of(Random.new(seed)))
    Supervised.tick
    failures = failures_of(steps)
    return if failures.empty?

    smaller = Shrink.smallest(steps, tries: 100) { |some| failures_of(some).any? }
    flunk <<~TEXT
      #{failures.join("\n")}
      Again: RINGSPUN_SEED=#{seed} bin/test jobs/test/random/beside_test.rb
      Smaller: #{failures_of(smaller).join("\n")}
        #{smaller.map(&:inspect).join("\n  ")}
    TEXT
  end

  # @return [Array] of who, what, how many jobs, and the fault before some statement; who is nil where there is a fault alone
  def steps_of(random)
    Array.new(STEPS) do
      fault = [random.rand(30), fault_of(random)] if random.rand < 0.3
      next [nil, nil, nil, [0, fault_of(random)]] if random.rand < 0.2

      [random.rand(2), %i[push push push work list close].sample(random: random), 1 + random.rand(2), fault]
    end
  end

  def fault_of(random) = [FAULTS.sample(random: random), PARTS.sample(1 + random.rand(3), random: random)]

  def harm((what, parts))
    parts.each do |part|
      file = "#{path}#{part}"
      case what
      when :remove then File.unlink(file)
      when :move then File.rename(file, "#{file}.moved")
      when :put_back then File.rename("#{file}.moved", file)
      when :replace
        FileUtils.cp(file, "#{file}.copy")
        File.rename("#{file}.copy", file)
      end
    rescue Errno::ENOENT
      next
    end
  end

  def failures_of(steps)
    Dir["#{path}*"].each { |file| FileUtils.rm_rf(file) }
    @pushed = {}
    @done = []
    @wrong = []
    @processes = Array.new(2) { Beside::Process.new(path, faults: method(:harm)) }
    decided = catch(:undecided) do
      steps.each_with_index { |(who, what, count, fault), index| who ? step(who, what, count, fault, index) : harm(fault.last) }
      @processes.each_index { |who| go_on(who) }
    end
    @wrong.concat(@processes.reject { |one| one.stop.success? }.map { "a process has failed" })
    judge if decided
    @wrong
  end

  def step(who, what, count, fault, index)
    names = what == :push ? Array.new(count) { |number| "#{who}.#{index}.#{number}" } : []
    value = @processes[who].call(what, names, fault: fault)
    told = value if value.is_a?(String)
    throw :undecided if told && @processes[who].message.match?(UNDECIDED)

    @wrong << "step #{index}, #{what}: #{told}: #{@processes[who].message}" unless told.nil? || TOLD.include?(told)
    names.each { |name| @pushed[name] = told }
    @done.concat(told ? [:unknown] : value) if what == :work
  end

  def go_on(who)
    answers = []
    TRIES.times do |number|
      answers << step(who, :push, 1, nil, "end #{number}").then { @pushed["#{who}.end #{number}.0"] }
      # Another one may have what is to be let go.
      @processes[1 - who].call(:list) if answers.last
      @processes[1 - who].call(:close) if answers.last && number == TRIES - 2
    end
    @wrong << "process #{who} does not go on: #{@processes[who].message}" if answers.last
  end

  # A job that a process has had done, where it was not told so, is there or is not.
  def judge
    there = places.map(&:first).tally
    @wrong << "twice: #{there.select { |_, count| count > 1 }}" if there.any? { |_, count| count > 1 }
    @pushed.each do |name, told|
      next if told == TOLD.last

      @wrong << "#{name} was refused, and is there" if told && there.key?(name)
      @wrong << "#{name} was accepted, and is lost" unless told || there.key?(name) || done?(name)
      @wrong << "#{name} is done, and is there" if @done.include?(name) && there.key?(name)
    end
  rescue Ringspun::Jobs::Error, Minitest::Assertion, Extralite::Error => error
    @wrong << "the file: #{error.message}"
  end

  def done?(name) = @done.include?(name) || @done.include?(:unknown)
end
