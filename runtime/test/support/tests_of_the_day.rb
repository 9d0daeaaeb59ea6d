# frozen_string_literal: true

require_relative "../../../bin/support/selection"
require_relative "share_of_the_day"

# A share of the tests: for a pass that repeats in other circumstances what another pass runs whole. Those of a file that has
# changed, or whose inputs have, all run, and so do the few about what CRuby does not promise.
class TestsOfTheDay
  WHOLE = %r{\Aruntime/test/cruby/}

  # @param parts [Integer, String] how many shares there are
  # @param changes [Changes]
  # @param options [Hash] see {ShareOfTheDay}
  def initialize(parts, changes: Changes.new(ShareOfTheDay::ROOT), **options)
    @shares = Hash.new do |all, path|
      inputs = [path, *Selection.inputs_of(File.join(ShareOfTheDay::ROOT, path))]
      all[path] = ShareOfTheDay.new(path.match?(WHOLE) ? 1 : parts, inputs:, changes:, **options)
    end
    @turns = Hash.new { |all, test_class| all[test_class] = turns_of(test_class) }
  end

  # @param test_class [Class]
  # @param name [String] of a test method
  def include?(test_class, name)
    path = test_class.instance_method(name).source_location.first.delete_prefix("#{ShareOfTheDay::ROOT}/")
    @shares[path].at?(@turns[test_class].fetch(name))
  end

  private

  # Each class is divided by itself, for those of one class often take as long as each other.
  def turns_of(test_class)
    names = test_class.public_instance_methods.grep(/\Atest_/).map(&:to_s).sort
    names.each_with_index.to_h { |name, index| [name, index + test_class.to_s.sum] }
  end
end
