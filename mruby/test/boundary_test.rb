# frozen_string_literal: true

# Where a function in C has called the code that would wait, no fiber can be left. The wait is refused there before it begins, and
# everything goes on as if it had not been asked for.
class BoundaryTest < Minitest::Test
  include Strands

  class Number
    include Comparable
    attr_reader :value

    def initialize(value)
      machine = Ringspun.machine
      machine.yield
      @value = value
    end

    def <=>(other)
      wait(0)
      value <=> other.value
    end

    def to_s
      wait(0)
      "number"
    end

    def method_missing(name, *)
      wait(0)
      name
    end

    def respond_to_missing?(*) = true
  end

  class Equal
    def ==(_other) = wait(0)
  end

  ALLOWED = {
    "each" => -> { [1, 2].each { wait(0) } },
    "each of a Hash" => -> { { a: 1 }.each { wait(0) } },
    "times" => -> { 2.times { wait(0) } },
    "map" => -> { [1, 2].map { wait(0) } },
    "upto" => -> { 1.upto(2) { wait(0) } },
    "sort_by" => -> { [2, 1].sort_by { |one| wait(0) and one } },
    "inject" => -> { [1, 2].inject { |one, other| wait(0) and one + other } },
    "select" => -> { [1, 2].select { wait(0) } },
    "loop" => -> { loop { wait(0) and break } },
    "send" => -> { [1].send(:each) { wait(0) } },
    "instance_eval" => -> { Object.new.instance_eval { wait(0) } },
    "instance_exec" => -> { Object.new.instance_exec(1) { wait(0) } },
    "define_method" => -> { Class.new { define_method(:one) { wait(0) } }.new.one },
    "method_missing" => -> { Number.new(1).anything },
    "initialize" => -> { Number.new(1) },
    "Comparable" => -> { Number.new(1) < Number.new(2) },
    "gsub" => -> { "ab".gsub("a") { wait(0) and "c" } },
    "eval" => -> { eval("wait(0)") },
    "a method object" => -> { Number.new(1).method(:<=>).call(Number.new(2)) },
    "Symbol#to_proc" => -> { [Number.new(1)].each(&:to_s) },
    "ensure" => -> { begin; 1; ensure; wait(0); end }
  }

  REFUSED = {
    "Hash.new {}" => -> { Hash.new { |hash, key| hash[key] = wait(0) }[1] },
    "to_s in a String" => -> { "#{Number.new(1)}" },
    "== that C calls" => -> { [Equal.new].index(1) }
  }

  ALLOWED.each do |name, block|
    define_method("test_may_wait_in_#{name}") { assert_same true, both(&block) }
  end

  REFUSED.each do |name, block|
    define_method("test_may_not_wait_in_#{name}") do
      error = assert_raises(Ringspun::UsageError) { block.call }
      assert error.message.include?("cannot wait inside"), error.message
      assert_raises(Ringspun::UsageError) { in_strand(&block) }
      assert_same true, both { wait(0) } # and goes on
    end
  end

  private

  # In the root and in a strand, while another runs.
  def both(&block)
    block.call
    in_strand(&block)
    true
  end

  def in_strand(&block)
    in_scope do |scope|
      scope.spin { 3.times { machine.yield } }
      scope.spin(&block).await
    end
  end
end
