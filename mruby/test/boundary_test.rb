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

  class Key
    def ==(_other) = wait(0)
    def eql?(_other) = wait(0)
    def hash = 1
    def look_up = Hash.new { wait(0) }[1]
    def inspect = wait(0).to_s
    def to_a = wait(0) && [1]
    def initialize_copy(_other) = wait(0)
    def respond_to_missing?(*) = wait(0)
    def self.const_missing(_name) = wait(0)
  end

  Plain = Struct.new(:one)

  class Pair < Plain
    def initialize(one)
      super
      wait(0)
    end
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
    "each of a Struct" => -> { Plain.new(1).each { wait(0) } },
    "eval" => -> { eval("wait(0)") },
    "a method object" => -> { Number.new(1).method(:<=>).call(Number.new(2)) },
    "Symbol#to_proc" => -> { [Number.new(1)].each(&:to_s) },
    "ensure" => -> { begin; 1; ensure; wait(0); end }
  }

  # What its message names, and what it tells to use.
  REFUSED = {
    "Hash.new {}" => [-> { Hash.new { |hash, key| hash[key] = wait(0) }[1] }, "a Hash's block", "use fetch with a block"],
    "Hash.new {} in a method" => [-> { Key.new.look_up }, "a Hash's block", "use fetch with a block"],
    "to_s in a String" => [-> { "#{Number.new(1)}" }, "to_s, called from C by mruby", "call it by name before"],
    "to_s of join" => [-> { [Number.new(1)].join }, "to_s, called from C by join", "call it by name before"],
    "inspect of a part" => [-> { [Key.new].inspect }, "inspect, called from C by inspect", "call it by name before"],
    "== that C calls" => [-> { [Key.new].index(1) }, "==", "use find or any? with a block"],
    "eql? of a key" => [-> { { Key.new => 1 }[Key.new] }, "eql?", "use find or any? with a block"],
    "<=> of a Range" => [-> { Number.new(1)..Number.new(2) }, "<=>", "use sort_by"],
    "a splat" => [-> { [*Key.new] }, "to_a", "call it by name before"],
    "dup" => [-> { Key.new.dup }, "initialize_copy, called from C by dup", "wait before or after"],
    "respond_to?" => [-> { Key.new.respond_to?(:any) }, "respond_to_missing?", "wait before or after"],
    "Class.new {}" => [-> { Class.new { wait(0) } }, "a block, called from C by new", "wait before or after"],
    "Struct.new {}" => [-> { Struct.new(:one) { wait(0) } }, "a block, called from C by new", "wait before or after"],
    "initialize of a Struct" => [-> { Pair.new(1) }, "initialize, called from C by new", "wait before or after"],
    "== of a Struct" => [-> { Plain.new(Key.new) == Plain.new(1) }, "==, called from C by ==", "use find or any? with a block"],
    "inspect of a Struct" => [-> { Plain.new(Key.new).inspect }, "inspect, called from C by inspect", "call it by name before"],
    "const_missing" => [-> { Key::ANY }, "const_missing, called from C by mruby", "wait before or after"],
    "each_object" => [-> { ObjectSpace.each_object(Class) { wait(0) } }, "a block, called from C by each_object",
                      "wait before or after"],
    "a read" => [-> { Hash.new { Ringspun.machine.pipe }[1] }, "a Hash's block", "use fetch with a block"],
    "a scope" => [-> { Hash.new { Ringspun.machine.scope { 1 } }[1] }, "a Hash's block", "use fetch with a block"]
  }

  # Where it is refused as well, and where there is more between.
  PLACES = {
    "the root" => ->(block) { block.call },
    "a generator" => ->(block) { Fiber.new { block.call }.resume },
    "an Enumerator" => ->(block) { Enumerator.new { |yielder| yielder << block.call }.next },
    "a generator in a function" => ->(block) { Hash.new { Fiber.new { block.call }.resume }[1] },
    "an ensure" => ->(block) { begin; 1; ensure; block.call; end }
  }

  ALLOWED.each do |name, block|
    define_method("test_may_wait_in_#{name}") { assert_same true, both(&block) }
  end

  REFUSED.each do |name, refused|
    block = refused.first
    words = refused.drop(1)
    PLACES.each do |place, around|
      define_method("test_may_not_wait_in_#{name}_in_#{place}") do
        error = assert_raises(Ringspun::UsageError) { around.call(block) }
        words.each { |word| assert_includes error.message, word } unless place == "a generator in a function"
        assert_raises(Ringspun::UsageError) { in_strand { around.call(block) } }
        assert_same true, both { wait(0) } # and goes on
      end
    end
  end

  # An op or a timer of it would keep the deadlock from being seen.
  def test_a_refused_wait_leaves_nothing
    read, = machine.pipe
    waits = [-> { wait(60) }, -> { read.read_partial }, -> { machine.scope(deadline: 60) { wait(60) } },
             -> { machine.timeout(60) { 1 } }]
    waits.each { |block| assert_raises(Ringspun::UsageError) { Hash.new { block.call }[1] } }
    assert_raises(Ringspun::DeadlockError) do
      in_scope do |scope|
        strands = []
        strands << scope.spin { machine.yield and strands[1].await }
        strands << scope.spin { strands[0].await }
      end
    end
  end

  # The scope's end has to wait, and cannot: its strands are cancelled.
  def test_a_generator_with_a_scope_is_resumed_by_a_function
    seen = []
    generator = Fiber.new do
      in_scope do |scope|
        scope.spin do
          wait(60)
        ensure
          seen << :ended
        end
        Fiber.yield
      end
    end
    generator.resume
    assert_raises(Ringspun::UsageError) { Hash.new { generator.resume }[1] }
    machine.yield
    assert_equal [:ended], seen
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
