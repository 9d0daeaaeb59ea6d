# frozen_string_literal: true

require "test_helper"
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
end
