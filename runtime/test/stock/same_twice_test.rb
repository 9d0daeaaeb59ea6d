# frozen_string_literal: true

require "test_helper"
require "support/expected_failures"
require "support/seeds"
require "random/same_twice"

# What a small program of stock Ruby comes to is the same in threads and in strands.
class SameTwiceTest < Minitest::Test
  PROGRAMS = 200

  # Waits for what nobody brings.
  class Stuck < SameTwice::Thing
    def await = Thread::Queue.new.pop
    def give = nil
  end

  # Ends the process.
  class Deadly < SameTwice::Thing
    def await = Process.kill(:KILL, Process.pid)
    def give = nil
  end

  # Comes to something else in each world.
  class Unlike < SameTwice::Thing
    def await = Fiber.current_scheduler.class
    def give = nil
  end

  def explorer(**) = SameTwice::Explorer.new(expected, **)
  def expected = @expected ||= ExpectedFailures.new(File.expand_path("../random/expected_failures.yml", __dir__), "same_twice")

  def test_programs
    programs = Seeds.of_the_day(PROGRAMS).map { |seed| SameTwice::Program.drawn(seed) }
    failures = explorer.failures(programs)
    puts expected unless expected.to_s.empty?
    return if failures.empty?

    first = programs.find { |program| failures.first.start_with?("seed #{program.seed},") }
    flunk "#{failures.size} of #{programs.size} programs fail.\n#{failures.first}\nsmaller:\n#{explorer.smallest(first)}"
  end

  def test_a_seed_is_a_program
    assert_equal SameTwice::Program.drawn(7), SameTwice::Program.drawn(7)
    refute_equal SameTwice::Program.drawn(7), SameTwice::Program.drawn(8)
  end

  def step(thing, **options)
    SameTwice::Step.new(kind: :wait, options: { thing:, way: 0, before: true, pauses: 0, giver: :strand, **options }, body: [])
  end

  def program(*things) = SameTwice::Program.new(0, things.map { |thing| [0, step(thing)] })

  def test_a_program_that_hangs_is_told
    failures = explorer(seconds_max: 1).failures([program(SameTwice::Items, Stuck)])
    assert_equal 1, failures.size
    assert_match(/\Aseed 0.*it hangs in SameTwice::InThreads.*same_twice_test.rb:\d+:in .*await/m, failures.first)
  end

  def test_a_process_that_ends_is_told
    assert_match(/\Aseed 0.*has ended/m, explorer.failures([program(Deadly)]).join)
  end

  def test_a_program_that_differs_is_told_and_shrinks
    large = program(*[SameTwice::Items] * 5, Unlike, *[SameTwice::Room] * 4)
    failures = explorer.failures([large])
    assert_match(/\Aseed 0.*threads.*NilClass.*strands.*Ringspun::Scheduler/m, failures.join)
    assert_equal [Unlike], explorer.smallest(large).steps.map { |_, one| one.thing }
  end

  def test_what_differs
    between = ->(one, other) { SameTwice::Differences.between({ 0 => [:value, one] }, { 0 => [:value, other] }) }
    assert_empty between.call([["wait", 1]], [["wait", 1]])
    assert_empty between.call([["cut", SameTwice::EARLY]], [["cut", [nil]]])
    limited = "limited SameTwice::SleepOfMutex"
    assert_empty between.call([[limited, [NilClass]]], [[limited, [Integer]]])
    assert_equal 1, between.call([["limited SameTwice::Items", [NilClass]]], [["limited SameTwice::Items", [Integer]]]).size
    assert_equal 2, between.call([["a", 1], ["b", 2], ["c", 3]], [["a", 1], ["b", 3]]).size
    assert_equal 1, SameTwice::Differences.between({ 0 => [:value, []] }, { 0 => :killed }).size
    assert_equal 1, SameTwice::Differences.between({ 0 => [:value, []] }, {}).size
  end
end
