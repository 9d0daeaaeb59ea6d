# frozen_string_literal: true

require "minitest/autorun"
require "tempfile"
require "support/expected_failures"
require "support/forked_programs"
require "support/seeds"
require "support/shrink"

# What the random programs share.
class RandomSupportTest < Minitest::Test
  DAY = 24 * 60 * 60

  def test_seeds_begin_anew_each_day
    noon = Time.at(20_000 * DAY + DAY / 2)
    assert_equal [20_000_000_000, 20_000_000_001], Seeds.of_the_day(2, env: {}, now: noon)
    assert_equal Seeds.of_the_day(2, env: {}, now: noon), Seeds.of_the_day(2, env: {}, now: noon + 60)
    assert_empty Seeds.of_the_day(9, env: {}, now: noon) & Seeds.of_the_day(9, env: {}, now: noon + DAY)
  end

  def test_seeds_that_the_environment_names
    assert_equal [7], Seeds.of_the_day(2, env: { "RINGSPUN_SEED" => "7", "RINGSPUN_SEEDS" => "3" })
    assert_equal 3, Seeds.of_the_day(2, env: { "RINGSPUN_SEEDS" => "3" }).size
    assert_equal 20, Seeds.of_the_day(2, env: { "RINGSPUN_SEEDS_TIMES" => "10" }).size
    assert_equal 3, Seeds.of_the_day(10, env: { "RINGSPUN_SEEDS_TIMES" => "1/4" }).size
  end

  def test_a_seed_that_is_none
    %w[RINGSPUN_SEED RINGSPUN_SEEDS].each do |name|
      error = assert_raises(ArgumentError) { Seeds.of_the_day(2, env: { name => "n" }) }
      assert_equal "#{name}=n is no number", error.message
    end
  end

  def test_a_program_shrinks_to_the_steps_that_fail
    100.times do |seed|
      random = Random.new(seed)
      steps = (0...random.rand(1..60)).to_a
      guilty = steps.sample(random.rand(1..[3, steps.size].min), random:).sort
      assert_equal guilty, Shrink.smallest(steps) { |some| (guilty - some).empty? }, "seed #{seed}"
    end
  end

  def test_a_program_shrinks_by_as_many_tries_as_it_may
    tried = 0
    smaller = Shrink.smallest((0...100).to_a, tries: 10) { |some| (tried += 1) && some.include?(99) && some.include?(0) }
    assert_equal 10, tried
    assert_equal [0, 99], smaller & [0, 99]
  end

  def test_a_program_that_always_fails_shrinks_to_nothing
    assert_empty Shrink.smallest([1, 2, 3]) { true }
    assert_empty Shrink.smallest([]) { flunk "nothing is left to be tried" }
  end

  def test_failures_that_are_expected
    Tempfile.create("expected") do |file|
      file.write([{ "generator" => "a", "pattern" => "lost.*byte", "defect" => "a byte is lost" },
                  { "generator" => "b", "pattern" => ".", "defect" => "another's" }].to_yaml)
      file.close
      expected = ExpectedFailures.new(file.path, "a")
      assert expected.known?("seed 1: lost\none byte")
      refute expected.known?("seed 2: doubled")
      assert_equal "1 x expected: a byte is lost", expected.to_s
    end
    refute ExpectedFailures.new("/nowhere.yml", "a").known?("x")
  end

  # Steps that do what they are named.
  Program = Data.define(:steps) do
    def run
      steps.each do |step|
        case step
        when :abort then Process.kill(:ABRT, Process.pid)
        when :hang then sleep
        when :raise then raise "lost"
        end
      end
    end

    def to_s = steps.join(" ")
  end

  def test_programs_in_forked_children
    programs = [%i[good], %i[good raise good], %i[good], %i[good good abort], %i[hang good]].map { |steps| Program.new(steps:) }
    found = forked(seconds: 2).failures((0..4).to_a) { |seed| programs[seed] }
    assert_equal 3, found.size
    assert_match(/\Aseed 1: RuntimeError: lost\n.*RINGSPUN_SEED=1 bin\/test.* from 3 to 1 steps:\nraise\z/m, found[0])
    assert_match(/\Aseed 3: the process has ended: .*SIGABRT.* from 3 to 1 steps:\nabort\z/m, found[1])
    assert_match(/\Aseed 4: it has not ended after 2 s.* to 1 steps:\nhang\z/m, found[2])
  end

  def test_a_known_failure_does_not_end_the_run
    Tempfile.create("expected") do |file|
      file.write([{ "generator" => "a", "pattern" => "SIGABRT", "defect" => "it aborts" }].to_yaml)
      file.close
      expected = ExpectedFailures.new(file.path, "a")
      found = forked(expected:).failures((0..3).to_a) { |seed| Program.new(steps: [seed == 3 ? :raise : :abort]) }
      assert_match(/\Aseed 3: /, found.fetch(0))
      assert_equal [1, "3 x expected: it aborts"], [found.size, expected.to_s]
    end
  end

  private

  def forked(expected: ExpectedFailures.new("/nowhere.yml", "a"), **) = ForkedPrograms.new(again: "bin/test", expected:, **)
end
