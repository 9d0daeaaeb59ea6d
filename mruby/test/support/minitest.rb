# frozen_string_literal: true

# The part of Minitest that the tests need, for mruby has none. Files of tests that run on CRuby too are the same there.
module Minitest
  class Assertion < Exception; end # rubocop:disable Lint/InheritException -- no rescue of the program's may take it

  class Test
    TEST_CLASSES = []

    class << self
      attr_accessor :assertions

      def inherited(test_class)
        TEST_CLASSES << test_class
        super
      end
    end
    self.assertions = 0

    def run_test(name) = __send__(name)
    def setup; end
    def teardown; end

    def assert(value, message = nil)
      Test.assertions += 1
      raise Assertion, message.is_a?(Proc) ? message.call : message || "expected #{value.inspect} to be true" unless value

      true
    end

    def refute(value, message = nil) = assert(!value, message || "expected #{value.inspect} to be false")
    def flunk(message = "flunked") = assert(false, message)

    def assert_equal(expected, actual, message = nil)
      assert(expected == actual, "#{"#{message}: " if message}#{differ(expected, actual)}")
    end

    def refute_equal(one, other, message = nil) = refute(one == other, message || "expected another than #{other.inspect}")
    def assert_same(one, other, message = nil) = assert(one.equal?(other), message || differ(one, other))
    def refute_same(one, other, message = nil) = refute(one.equal?(other), message)
    def assert_nil(value, message = nil) = assert(value.nil?, message || differ(nil, value))
    def refute_nil(value, message = nil) = refute(value.nil?, message || "expected anything but nil")
    def assert_empty(value, message = nil) = assert_predicate(value, :empty?, message)
    def refute_empty(value, message = nil) = refute_predicate(value, :empty?, message)
    def assert_includes(all, one, message = nil) = assert(all.include?(one), message || "no #{one.inspect} in #{all.inspect}")
    def refute_includes(all, one, message = nil) = refute(all.include?(one), message || "#{one.inspect} in #{all.inspect}")
    def assert_kind_of(type, value, message = nil) = assert(value.is_a?(type), message || differ(type, value))
    def assert_instance_of(type, value, message = nil) = assert(value.instance_of?(type), message || differ(type, value))
    def assert_predicate(value, name, message = nil) = assert(value.send(name), message || "#{value.inspect} is not #{name}")
    def refute_predicate(value, name, message = nil) = refute(value.send(name), message || "#{value.inspect} is #{name}")
    def assert_respond_to(value, name, message = nil) = assert(value.respond_to?(name), message || "#{value.inspect} lacks it")

    def assert_match(pattern, text) = assert(pattern.match?(text), "expected #{pattern.inspect} in #{text.inspect}")
    def refute_operator(one, operator, other) = refute(one.send(operator, other))

    # Floats have two bits less here where they are in one word with their type.
    def assert_operator(one, operator, other, message = nil)
      one += 1e-6 if one.is_a?(Float) && operator == :>=
      assert(one.send(operator, other), message || "expected #{one.inspect} #{operator} #{other.inspect}")
    end

    def assert_in_delta(expected, actual, delta = 0.001, message = nil)
      assert((expected - actual).abs <= delta, message || "expected about #{expected.inspect}, got #{actual.inspect}")
    end

    def assert_raises(*types)
      types << StandardError if types.empty?
      yield
    rescue *types => error
      Test.assertions += 1
      error
    else
      flunk("expected #{types.map(&:to_s).join(" or ")}, but nothing was raised")
    end

    private

    def differ(expected, actual) = "expected #{expected.inspect}, got #{actual.inspect}"
  end

  # Runs all tests, and ends the program with 1 if one has failed.
  def self.run
    failures = []
    count = left_out = 0
    Test::TEST_CLASSES.each do |test_class|
      test_class.instance_methods.select { |name| name.to_s.start_with?("test_") }.sort.each do |name|
        next left_out += 1 if Shared.left_out?(test_class, name)

        count += 1
        error = failure_of(test_class.new, name)
        failures << "#{test_class}##{name}: #{error.class}: #{error.message}\n  #{(error.backtrace || []).join("\n  ")}" if error
      end
    end
    failures.each { |failure| puts failure, "" }
    puts "#{count} runs, #{Test.assertions} assertions, #{failures.size} failures, #{left_out} left out"
    raise "tests have failed" if failures.any? || count.zero?
  end

  def self.failure_of(test, name)
    test.setup
    test.run_test(name)
    nil
  rescue Exception => error
    error
  ensure
    test.teardown
  end
end
