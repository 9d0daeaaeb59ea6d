# frozen_string_literal: true

require "test_helper"
require "ringspun/postgres"

# The texts of parameters, as the extension makes them, without a server.
class PostgresParameterTextsTest < Minitest::Test
  include AnyBackend

  LANE = Ringspun::Postgres.const_get(:Lane)

  def test_floats_are_as_ruby_writes_them
    random = Random.new(20_607)
    numbers = [0.0, -0.0, 0.1, 1.0, 1e-4, 9.999e-5, 1e15, 1e16, 2.0**53, (2.0**53) - 1, 5e-324, 0.3, 1 / 3r.to_f, 4.35, 2.0**-13,
               0.5, Float::MAX, Float::MIN, Float::NAN, Float::INFINITY, -Float::INFINITY, 1.0.prev_float, 1.0.next_float]
    numbers += Array.new(20_000) { random.bytes(8).unpack1("d") } + Array.new(20_000) { random.rand * (10**random.rand(-6..17)) }
    numbers += Array.new(20_000) { random.rand(10**random.rand(1..17)).fdiv(10**random.rand(0..18)) * [1, -1].sample(random:) }
    numbers += (-20..60).flat_map { |power| [2.0**power, (2.0**power).next_float, (2.0**power).prev_float] }
    assert_equal numbers.map(&:to_s), LANE.text(numbers, 1)[1...-1].split(",")
    numbers.first(50).each { |number| assert_equal [number.to_s], LANE.encode([number]) }
  end

  def test_times_and_days
    { Time.utc(2024, 2, 29, 1, 2, 3.5r) => "2024-02-29 01:02:03.500000+00",
      Time.new(2024, 1, 1, 0, 30, 0, "+05:30") => "2023-12-31 19:00:00.000000+00",
      Time.utc(0, 3, 15) => "0001-03-15 00:00:00.000000+00 BC",
      Time.utc(-43, 1, 1, 0, 0, 59.999999r) => "0044-01-01 00:00:59.999999+00 BC",
      Time.utc(294_276, 12, 31) => "294276-12-31 00:00:00.000000+00",
      Time.utc(1969, 12, 31, 23, 59, 59.999999999r) => "1969-12-31 23:59:59.999999+00",
      DateTime.new(2024, 1, 1, 1, 0, 0, "+01:00") => "2024-01-01 00:00:00.000000+00", Date.new(2000, 1, 2) => "2000-01-02",
      Date.new(-43, 3, 15, Date::GREGORIAN) => "0044-03-15 BC", Date.new(1, 1, 1, Date::GREGORIAN) => "0001-01-01",
      Date.new(1500, 1, 1) => "1500-01-10", Date.new(5_874_897, 12, 31) => "5874897-12-31" }.each do |value, text|
      assert_equal [text, "{\"#{text}\"}"], [*LANE.encode([value]), LANE.text([value], 1)]
    end
  end

  def test_each_day_of_some_centuries
    days = (Date.new(-401, 1, 1, Date::GREGORIAN)..Date.new(405, 1, 1, Date::GREGORIAN)).step(7).to_a
    texts = days.map do |day|
      day.year.positive? ? day.strftime("%Y-%m-%d") : format("%04d-%02d-%02d BC", 1 - day.year, day.month, day.day)
    end
    assert_equal texts, days.map { |day| LANE.encode([day]).first }
  end

  def test_numbers_and_others
    { BigDecimal("5") => "5", BigDecimal("-5.50") => "-5.5", BigDecimal("1e20") => "1#{"0" * 20}", BigDecimal("NaN") => "NaN",
      BigDecimal("-0") => "-0", 2**70 => (2**70).to_s, :name => "name", { "a" => [1] } => "{\"a\":[1]}",
      IPAddr.new("10.0.0.0/8") => "10.0.0.0/8",
      Ringspun::Postgres::Interval.new(months: 1, days: 2, microseconds: 3) => "P1M2DT0.000003S" }.each do |value, text|
      assert_equal [text], LANE.encode([value])
    end
  end

  def test_arrays
    { [[], [nil]] => "{{},{NULL}}", [1, -(2**62) - 1, nil, true, false] => "{1,\"#{-(2**62) - 1}\",NULL,t,f}",
      ["", "NULL", "a\"b\\", "é"] => '{"","NULL","a\"b\\\\","é"}', [:a, { "a" => "\"" }] => '{"a","{\\"a\\":\\"\\\\\\"\\"}"}',
      ["é".encode("ISO-8859-1"), "abc".b] => '{"é","abc"}', ["\"" * 5000] => "{\"#{"\\\"" * 5000}\"}",
      [Ringspun::Postgres::Bytes.new("\xFF")] => nil }.each do |value, text|
      assert_equal text, LANE.text(value, 1) if text
    end
  end

  def test_arrays_that_are_none
    endless = []
    endless << endless
    { [endless] => /parameter 1 has more than six Arrays inside each other/,
      { a: Float::NAN } => /parameter 1 cannot be had as json/, Date.new(10**30) => /parameter 1 is a Date that is too far away/,
      [Object.new] => /parameter 1 is of Object/ }.each do |value, message|
      assert_match message, assert_raises(Ringspun::UsageError) { LANE.encode([value]) }.message
    end
  end

  # Nothing is done twice that has been done.
  def test_what_is_encoded_is_encoded_once
    made = 0
    value = { "a" => Class.new { define_method(:to_json) { |*| (made += 1).to_s } }.new }
    encoded = LANE.encode([value, "\xFF".b, ["\xFF".b, value]])
    assert_equal 2, made
    assert_same encoded, LANE.encode(encoded)
    assert_equal 2, made
  end

  def test_an_array_that_changes_while_it_is_encoded
    array = ["a"] * 3
    array[1] = { "a" => Class.new { define_method(:to_json) { |*| array.clear && "1" } }.new }
    assert_equal "{\"a\",\"{\\\"a\\\":1}\"}", LANE.text(array, 1)
  end
end
