# frozen_string_literal: true

# Strands that wait, and where they may.
class SwitchTest < Minitest::Test
  include Strands

  def test_strands_take_turns
    seen = []
    in_scope { |scope| 3.times { |one| scope.spin { 3.times { |step| seen << [one, step] and machine.yield } } } }
    assert_equal [[0, 0], [1, 0], [2, 0], [0, 1], [1, 1], [2, 1], [0, 2], [1, 2], [2, 2]], seen
  end

  def test_shorter_waits_end_first
    seen = []
    in_scope { |scope| [0.03, 0.01, 0.02].each { |seconds| scope.spin { wait(seconds) and seen << seconds } } }
    assert_equal [0.01, 0.02, 0.03], seen
  end

  def test_a_generator_waits
    fiber = Fiber.new { 3.times { |step| wait(0.001) and Fiber.yield(step) } }
    other = []
    in_scope do |scope|
      scope.spin { 3.times { |step| other << step and machine.yield } }
      assert_equal [0, 1, 2], (0...3).map { fiber.resume }
    end
    assert_equal [0, 1, 2], other
  end

  def test_an_enumerator_waits
    all = Enumerator.new { |yielder| 3.times { |step| wait(0) and yielder << step } }
    assert_equal [0, 1, 2], [all.next, all.next, all.next]
    assert_raises(StopIteration) { all.next }
    assert_equal [0, 1], all.take(2)
  end

  def test_generators_of_two_strands_wait_at_the_same_time
    seen = []
    in_scope do |scope|
      2.times do |one|
        scope.spin do
          fiber = Fiber.new { 2.times { |step| machine.yield and Fiber.yield([one, step]) } }
          2.times { seen << fiber.resume }
        end
      end
    end
    assert_equal [[0, 0], [1, 0], [0, 1], [1, 1]], seen
  end

  def test_collections_with_six_thousand_waiting_strands
    [true, false].each do |generational|
      GC.generational_mode = generational
      ended = in_scope do |scope|
        strands = Array.new(6_000) { |one| scope.spin { collect_at(one) and one.to_s } }
        strands.map(&:await)
      end
      assert_equal Array.new(6_000, &:to_s), ended
    end
  ensure
    GC.generational_mode = true
  end

  def test_ten_thousand_strands
    ended = 0
    in_scope { |scope| 10_000.times { |number| scope.spin { wait(0.001 * (number % 7)) and ended += 1 } } }
    assert_equal 10_000, ended
  end

  def test_an_error_goes_through_a_wait
    seen = []
    error = assert_raises(ArgumentError) do
      in_scope do |scope|
        scope.spin do
          wait(0)
          raise ArgumentError, "mine"
        ensure
          wait(0.001)
          seen << :ensure
        end
      end
    end
    assert_equal ["mine", [:ensure]], [error.message, seen]
  end

  private

  def collect_at(one)
    GC.start if one % 1_500 == 0
    wait(0.001)
    GC.start if one % 1_500 == 1
    true
  end
end
