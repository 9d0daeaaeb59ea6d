# frozen_string_literal: true

require_relative "test_helper"

class BenchTest::TargetTest < Minitest::Test
  def test_ratio_to_the_floor
    assert_verdict true, "2.00 x", "total <= 2.2 x floor", ringspun: 2.0, floor: 1.0
    assert_verdict false, "2.50 x", "total <= 2.2 x floor", ringspun: 2.5, floor: 1.0
  end

  def test_ratio_to_a_peer
    assert_verdict true, "0.40 x", "real <= 0.40 x async", ringspun: 0.4, async: 1.0
    assert_verdict false, "0.50 x", "real <= 0.40 x async", ringspun: 0.5, async: 1.0
  end

  def test_ratio_to_the_best_peer
    assert_verdict false, "2.00 x", "total <= 1.0 x best peer", ringspun: 2.0, async: 1.0, threads: 5.0
  end

  def test_ratio_to_the_best_floor
    table = BenchTest.table do
      floor("stream.c") { |**| [] }
      ring_floor("stream.c") { |**| [] }
      contender("ringspun") {}
      targets "total <= 2 x best floor", "total <= 2 x floor"
    end
    result = BenchTest.result(table, ringspun: 1.5, floor: 1.0, "ring floor": 0.5)
    assert_equal [[false, "3.00 x"], [true, "1.50 x"]], result.verdicts.map { |verdict| [verdict.met, verdict.measured] }
    result = BenchTest.result(table, ringspun: 1.5, floor: 1.0, "ring floor": { "unavailable" => "no ring" })
    assert_equal [true, "1.50 x"], result.verdicts.first.then { |verdict| [verdict.met, verdict.measured] }
  end

  def test_a_plain_number
    assert_verdict true, "1.50 s", "total <= 1_500.5", ringspun: 1.5
    assert_verdict false, "1.50 s", "total >= 2", ringspun: 1.5
  end

  def test_a_distance
    assert_verdict true, "+2.00 s", "total <= floor + 3", ringspun: 3.0, floor: 1.0
    assert_verdict false, "+2.00 s", "total <= floor + 1.5", ringspun: 3.0, floor: 1.0
  end

  def test_another_backend_of_ours_is_named_like_any_contender
    target = "total <= 1.1 x ringspun epoll"
    assert_equal [true, "1.05 x"], between_backends(target, ringspun: 1.05, "ringspun epoll": 1.0)
    assert_equal [false, "1.20 x"], between_backends("#{target} at N=2", ringspun: 1.2, "ringspun epoll": 1.0)
  end

  def test_a_target_may_speak_of_somebody_else
    assert_verdict true, "+1.00 s", "async: total <= floor + 1.5", ringspun: 9.0, async: 2.0, floor: 1.0
    assert_verdict false, "2.00 x", "async: total <= 1.5 x floor at N=1", ringspun: 1.0, async: 2.0, floor: 1.0
  end

  def test_medians_are_judged
    assert_verdict true, "2.00 x", "total <= 2.2 x floor", ringspun: [1.9, 9.0, 2.0], floor: [1.0, 1.0, 0.2]
  end

  def test_every_row_has_to_hold_unless_one_is_named
    table = BenchTest.usual_table("total <= 2 x floor", "total <= 2 x floor at N=1")
    result = BenchTest.result(table, ringspun: 1.5)
    3.times { result.rows.last.add(table.contender("ringspun"), BenchTest.sample(user: 9.0, system: 0.0)) }
    assert_equal([[false, "9.00 x"], [true, "1.50 x"]], result.verdicts.map { |verdict| [verdict.met, verdict.measured] })
  end

  def test_flatness_over_the_rows
    table = BenchTest.usual_table("total/floor flat within 25%")
    assert_equal [true, "0% (2.00 x to 2.00 x)"], flatness(table, 2.0)
    assert_equal [true, "20% (2.00 x to 2.40 x)"], flatness(table, 2.4)
    assert_equal [false, "50% (2.00 x to 3.00 x)"], flatness(table, 3.0)
  end

  def test_flatness_of_a_number_over_the_rows_or_over_two
    table = BenchTest.usual_table("total flat within 25%", "async: total flat within 0% at N=2 and N=1",
                                  "total flat within 25% at N=1 and N=7")
    result = BenchTest.result(table, ringspun: 2.0)
    2.times { result.rows.last.add(table.contender("ringspun"), BenchTest.sample(user: 3.0, system: 0.0)) }
    assert_equal([[false, "50% (2.00 s to 3.00 s)"], [true, "0% (1.00 s to 1.00 s)"], [nil, "a number is missing"]],
                 result.verdicts.map { |verdict| [verdict.met, verdict.measured] })
  end

  def test_one_row_against_another
    table = BenchTest.usual_table("total at N=2 <= 1.5 x at N=1", "async: total at N=1 >= 1.5 x at N=2",
                                  "total at N=2 <= 9 x at N=7")
    result = BenchTest.result(table, ringspun: 2.0)
    2.times { result.rows.last.add(table.contender("ringspun"), BenchTest.sample(user: 3.0, system: 0.0)) }
    assert_equal([[true, "1.50 x"], [false, "1.00 x"], [nil, "a number is missing"]],
                 result.verdicts.map { |verdict| [verdict.met, verdict.measured] })
  end

  def test_a_contender_with_a_hyphen_is_one
    table = BenchTest.table do
      contender("concurrently") {}
      contender("drop-in") {}
      contender("ringspun") {}
      targets "drop-in: total >= 5 x concurrently"
    end
    result = BenchTest.result(table, "drop-in": 10.0, concurrently: 2.0)
    assert_equal [true, "5.00 x"], result.verdicts.first.then { |verdict| [verdict.met, verdict.measured] }
  end

  def test_without_a_number_there_is_no_verdict
    gone = { "unavailable" => "no compiler" }
    assert_verdict nil, "a number is missing", "total <= 2.2 x floor", floor: gone
    assert_verdict nil, "a number is missing", "rate >= 5", {}
    assert_verdict nil, "a number is missing", "total <= 5 at N=77", {}
  end

  def test_nonsense_is_refused_when_the_table_is_loaded
    assert_raises(ArgumentError) { Bench::Target.parse("as fast as possible") }
    assert_raises(ArgumentError) { Bench::Target.parse("total at N=1 and N=2 <= 1.1 x at N=3") } # of which two is the ratio?
  end

  private

  def assert_verdict(met, measured, sentence, seconds)
    verdict = BenchTest.result(BenchTest.usual_table(sentence), **seconds).verdicts.first
    assert_equal [met, measured], [verdict.met, verdict.measured]
    assert_equal sentence, verdict.sentence
  end

  def between_backends(sentence, **seconds)
    table = BenchTest.usual_table(sentence, backends: %w[uring epoll])
    BenchTest.result(table, **seconds).verdicts.first.then { |verdict| [verdict.met, verdict.measured] }
  end

  def flatness(table, last)
    result = BenchTest.result(table, ringspun: 2.0)
    2.times { result.rows.last.add(table.contender("ringspun"), BenchTest.sample(user: last, system: 0.0)) }
    result.verdicts.first.then { |verdict| [verdict.met, verdict.measured] }
  end
end
