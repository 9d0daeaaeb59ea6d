# frozen_string_literal: true

# The collector, while strands wait. These run under MRB_GC_STRESS too, so they are small.
class GcTest < Minitest::Test
  include Strands

  class Tracked; end

  def teardown
    GC.generational_mode = true
    GC.step_ratio = 200
    GC.interval_ratio = 200
  end

  [true, false].each do |generational|
    [[200, 200], [1, 101], [10_000, 101]].each do |step, interval|
      define_method("test_strands_generational_#{generational}_step_#{step}") do
        GC.generational_mode = generational
        GC.step_ratio = step
        GC.interval_ratio = interval
        assert_equal Array.new(5) { |one| "#{one}" * 3 }, in_scope { |scope| values_of(scope) }
      end
    end
  end

  def test_a_collection_while_all_kinds_of_waits_last
    in_scope do |scope|
      read, write = machine.pipe
      sleeper = scope.spin { kept_by { wait(0.001) } }
      waits = [sleeper, scope.spin { kept_by { read.read_partial } }, scope.spin { kept_by { sleeper.await } },
               scope.spin { kept_by { machine.timeout(60) { wait(0.002) } } },
               scope.spin { kept_by { Fiber.new { kept_by { wait(0.002) } }.resume } },
               scope.spin { kept_by { Enumerator.new { |yielder| yielder << kept_by { wait(0.001) } }.next } }]
      machine.yield
      GC.start
      write.write("bytes")
      assert_equal ["kept"] * waits.size, waits.map(&:await)
    end
  end

  def test_a_strand_keeps_its_block_as_long_as_it_runs
    in_scope do |scope|
      strand = spin_with(scope, Tracked.new)
      collect
      assert_equal 1, tracked
      strand.await
      collect
      assert_equal 0, tracked
    end
  end

  def test_a_handle_keeps_the_value_of_its_strand
    in_scope do |scope|
      strands = [spin_for_value(scope)]
      strands[0].await
      collect
      assert_equal 1, tracked
      strands.clear
      collect
      assert_equal 0, tracked
    end
  end

  def test_a_strand_goes_on_without_its_handle
    seen = []
    in_scope do |scope|
      spin_without_handle(scope, seen)
      collect
      wait(0.002)
    end
    assert_equal ["seen"], seen
  end

  private

  def values_of(scope)
    strands = Array.new(5) do |one|
      scope.spin do
        text = "#{one}"
        all = (0...3).map { wait(0) && text.dup }
        wait(0.001)
        all.join
      end
    end
    strands.map(&:await)
  end

  def kept_by
    text = ["ke", "pt"].join
    yield
    GC.start
    text
  end

  def spin_with(scope, object)
    scope.spin { wait(0.001) and object.nil? }
  end

  def spin_for_value(scope)
    scope.spin { wait(0) and Tracked.new }
  end

  def spin_without_handle(scope, seen)
    scope.spin { wait(0.001) and seen << ["se", "en"].join }
    nil
  end

  # Over what calls have left on the stack.
  def collect(depth = 20)
    return GC.start if depth == 0

    collect(depth - 1)
  end

  def tracked = ObjectSpace.each_object(Tracked) { nil }
end
