# frozen_string_literal: true

require_relative "test_helper"

class BenchTest::StatisticsTest < Minitest::Test
  def test_median
    assert_equal 3, Bench::Statistics.median([3])
    assert_equal 2, Bench::Statistics.median([9, 1, 2])
    assert_equal 2.5, Bench::Statistics.median([4, 1, 3, 2])
  end

  def test_a_single_outlier_does_not_move_the_median
    assert_equal 1.0, Bench::Statistics.median([1.0, 1.0, 1.0, 1.0, 500.0])
  end

  def test_median_of_nothing_is_an_error
    assert_raises(ArgumentError) { Bench::Statistics.median([]) }
  end

  def test_spread
    assert_in_delta 0.5, Bench::Statistics.spread([8, 10, 13])
    assert_nil Bench::Statistics.spread([1])
    assert_nil Bench::Statistics.spread([0, 0])
  end
end
