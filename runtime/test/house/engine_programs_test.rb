# frozen_string_literal: true

require "test_helper"
require "json"
require "support/rakefile"

# rubies: one
# inputs: rakelib, Rakefile

# How rake counts what the engine's test programs have done.
class EngineProgramsTest < Minitest::Test
  include AnyBackend
  include Rakefile

  # @param output [String] what a program prints
  # @return [String] what is made of it
  def counted(output, status = 0)
    answer = rake_child(<<~'RUBY', output, status.to_s)
      p run_engine_program("sh", "-c", 'printf "%s" "$1"; exit $2', "sh", *ARGV)
    RUBY
    assert_equal ["", true], [answer.err, answer.status.success?]
    answer.out.lines(chomp: true).last
  end

  def test_what_has_passed_and_what_was_left_out_are_counted
    assert_equal "[3, 0]", counted("3 passed, 0 failed\n")
    assert_equal "[3, 4]", counted("4 left out\n3 passed, 0 failed\n")
    assert_equal "[0, 4]", counted("4 left out\n0 passed, 0 failed\n")
  end

  def test_a_program_that_has_tested_nothing_has_failed
    ["", "0 passed, 0 failed\n", "0 left out\n0 passed, 0 failed\n", "4 left out\n"].each do |output|
      assert_equal "nil", counted(output), output
    end
    assert_equal "nil", counted("3 passed, 1 failed\n")
    assert_equal "nil", counted("3 passed, 0 failed\n", 1)
  end

  # Which programs run on two days and the third.
  def programs(parts)
    answer = rake_child(<<~'RUBY', env: { "RINGSPUN_ONE_TEST_IN" => parts, "RINGSPUN_NIGHTLY" => nil })
      p(3.times.map { |day| engine_tests(Time.at(day * Seeds::SECONDS_A_DAY)) })
    RUBY
    assert_equal ["", true], [answer.err, answer.status.success?]
    JSON.parse(answer.out)
  end

  def test_each_has_its_day_where_they_take_turns
    all, again, = programs(nil)
    assert_equal all, again
    one, other, first = programs("2")
    assert_equal all, (one + other).sort
    assert_equal one, first
    assert_in_delta one.size, other.size, 1
  end
end
