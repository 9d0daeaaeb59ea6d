# frozen_string_literal: true

require "test_helper"
require "open3"
require "support/tests_of_the_day"

# rubies: one
# inputs: bin/support, runtime/test/support/{share,tests}_of_the_day.rb, runtime/test/support/supervised.rb

# A share of what is tried, and of the tests, that is another one each day.
class ShareOfTheDayTest < Minitest::Test
  include AnyBackend

  SCRIPT = File.expand_path("../../../bin/support/run_tests.rb", __dir__)
  TESTS = Array.new(100) { |number| "test_#{number}" }.freeze

  # Has methods of these names; Minitest runs none of them.
  TESTED = Class.new do
    def self.to_s = "TestedTest"
    TESTS.each { |name| define_method(name) { nil } }
  end

  Changed = Data.define(:paths) do
    def among(patterns) = paths && (paths & patterns)
  end

  def options(day, changed: [], env: {})
    { changes: Changed.new(changed), env:, now: Time.at(day * Seeds::SECONDS_A_DAY) }
  end

  # What of 100 things, and of as many tests, is tried on that day.
  def things(day, parts: 3, inputs: [], **) = ShareOfTheDay.new(parts, inputs:, **options(day, **)).of((0...100).to_a)

  def tests(day, parts: 3, **)
    TestsOfTheDay.new(parts, **options(day, **)).then { |share| TESTS.select { |name| share.include?(TESTED, name) } }
  end

  def assert_each_has_its_day(all, days)
    assert_equal all, days.flatten.sort_by { |thing| all.index(thing) }
    days.each { |share| assert_operator share.size, :>, 20 }
  end

  def test_each_thing_has_its_day
    assert_each_has_its_day((0...100).to_a, Array.new(3) { |day| things(day) })
    assert_equal things(1), things(4)
    assert_equal (0...100).to_a, things(1, parts: 1)
    assert_equal things(1), things(1, parts: "3")
  end

  def test_the_first_and_the_step_to_the_next
    share = ShareOfTheDay.new(5, **options(7))
    assert_equal things(7, parts: 5), share.first.step(by: share.step).take(20)
  end

  def test_all_by_night_and_where_an_input_has_changed
    all = (0...100).to_a
    assert_equal all, things(1, env: { "RINGSPUN_NIGHTLY" => "1" })
    assert_equal all, things(1, inputs: %w[docs README.md], changed: %w[README.md])
    assert_equal things(1), things(1, inputs: %w[docs], changed: %w[README.md])
    assert_equal things(1), things(1, inputs: %w[docs], changed: nil)
  end

  def test_each_test_has_its_day
    assert_each_has_its_day(TESTS, Array.new(3) { |day| tests(day) })
    assert_equal tests(1), tests(4)
    assert_equal TESTS, tests(1, env: { "RINGSPUN_NIGHTLY" => "1" })
  end

  # Inputs that a file names in its comment count as the file itself.
  def test_all_tests_of_a_changed_file_run
    assert_equal TESTS, tests(1, changed: ["runtime/test/house/share_of_the_day_test.rb"])
    assert_equal TESTS, tests(1, changed: ["bin/support"])
    assert_equal tests(1), tests(1, changed: ["runtime/test/house/zygote_test.rb"])
    assert_equal tests(1), tests(1, changed: nil)
  end

  # Those that fail run again alone.
  def test_a_process_of_tests_takes_its_share
    Tempfile.create(["inner", ".rb"]) do |file|
      methods = TESTS.first(4).map { |name| "def #{name} = flunk('here')\n" }
      file.write("class InnerTest < Minitest::Test\n", *methods, "end\n")
      file.close
      env = { "RUBYOPT" => nil, "RINGSPUN_NIGHTLY" => nil, "RINGSPUN_ONE_TEST_IN" => "2" }
      output, status = Open3.capture2e(env, RbConfig.ruby, SCRIPT, file.path)
      refute_predicate status, :success?
      assert_match(/^2 runs, /, output)
      assert_equal 2, output.scan(/^again: .* fails alone as well: a defect/).size, output
    end
  end
end
