# frozen_string_literal: true

require_relative "../../../bin/support/changes"
require_relative "seeds"

# A share of the tests, others each day: for a pass that repeats in other circumstances what another pass runs whole. After as
# many days as there are shares each test has run. Those in a file that has changed all run, and so do the few about what CRuby
# does not promise.
class ShareOfTheDay
  ROOT = File.expand_path("../../..", __dir__)
  WHOLE = %r{/runtime/test/cruby/}

  # @param parts [Integer, String] how many shares there are
  # @param changed [Array<String>, nil] the test files that have changed; nil where nobody knows
  # @param now [Time]
  def initialize(parts, changed: Changes.new(ROOT).among(["**/*_test.rb"]), now: Time.now)
    @parts = Integer(parts)
    @changed = changed.to_a.to_h { |path| [File.join(ROOT, path), true] }
    @day = now.to_i / Seeds::SECONDS_A_DAY
    @turns = Hash.new { |all, test_class| all[test_class] = turns_of(test_class) }
  end

  # @param test_class [Class]
  # @param name [String] of a test method
  def include?(test_class, name)
    return true if @turns[test_class][name] == @day % @parts

    path = test_class.instance_method(name).source_location&.first.to_s
    @changed.key?(path) || path.match?(WHOLE)
  end

  private

  # Each class is divided by itself, for those of one class often take as long as each other.
  def turns_of(test_class)
    names = test_class.public_instance_methods.grep(/\Atest_/).map(&:to_s).sort
    names.each_with_index.to_h { |name, index| [name, (index + test_class.to_s.sum) % @parts] }
  end
end
