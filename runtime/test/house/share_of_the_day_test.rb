# frozen_string_literal: true

require "test_helper"
require "open3"
require "support/share_of_the_day"

# rubies: one
# inputs: bin/support, runtime/test/support/share_of_the_day.rb, runtime/test/support/supervised.rb

# A share of the tests that is another one each day.
class ShareOfTheDayTest < Minitest::Test
  include AnyBackend

  SCRIPT = File.expand_path("../../../bin/support/run_tests.rb", __dir__)
  TESTS = Array.new(100) { |number| "test_#{number}" }.freeze

  # Has methods of these names; Minitest runs none of them.
  TESTED = Class.new do
    def self.to_s = "TestedTest"
    TESTS.each { |name| define_method(name) { nil } }
  end

  # What runs on that day.
  def share(day, parts: 3, changed: [])
    one = ShareOfTheDay.new(parts, changed:, now: Time.at(day * Seeds::SECONDS_A_DAY))
    TESTS.select { |name| one.include?(TESTED, name) }
  end

  def test_each_test_has_its_day
    days = Array.new(3) { |day| share(day) }
    assert_equal TESTS, days.flatten.sort_by { |name| TESTS.index(name) }
    days.each { |tests| assert_operator tests.size, :>, 20 }
    assert_equal share(1), share(4)
    assert_equal TESTS, share(1, parts: 1)
  end

  def test_all_of_a_changed_file_run
    assert_equal TESTS, share(1, changed: ["runtime/test/house/share_of_the_day_test.rb"])
    assert_equal share(1), share(1, changed: ["runtime/test/house/zygote_test.rb"])
    assert_equal share(1), share(1, changed: nil)
  end

  # Those that fail run again alone.
  def test_a_process_of_tests_takes_its_share
    Tempfile.create(["inner", ".rb"]) do |file|
      methods = TESTS.first(4).map { |name| "def #{name} = flunk('here')\n" }
      file.write("class InnerTest < Minitest::Test\n", *methods, "end\n")
      file.close
      env = { "RUBYOPT" => nil, "RINGSPUN_ONE_TEST_IN" => "2" }
      output, status = Open3.capture2e(env, RbConfig.ruby, SCRIPT, file.path)
      refute_predicate status, :success?
      assert_match(/^2 runs, /, output)
      assert_equal 2, output.scan(/^again: .* fails alone as well: a defect/).size, output
    end
  end
end
