# frozen_string_literal: true

require "jobs_helper"

# Which arguments a job may have: those that JSON gives back as they were.
class ArgumentsTest < Minitest::Test
  include AnyBackend

  class Job
    include Ringspun::Jobs::Job
  end

  KEPT = [[],
          [1, -(2**80), 1.5, nil, true, false, "", "ü", "a".encode("ISO-8859-1"), "b".b, [[]], {},
           { "a" => { "ü" => [1] } }]].freeze

  Point = Struct.new(:x)

  REFUSED = {
    [:a] => 'args[0] is a Symbol; give the String "a"',
    [1, { "name" => :a }] => 'args[1]["name"] is a Symbol; give the String "a"',
    [1, { name: 5 }] => "args[1][:name] has a key that is a Symbol; keys must be Strings",
    [{ 1 => 2 }] => "args[0][1] has a key that is an Integer; keys must be Strings",
    [[["ok", Time.at(0)]]] => "args[0][0][1] is a Time; give its seconds, or its text in ISO 8601",
    [Float::NAN] => "args[0] is NaN, which JSON does not know",
    [{ "a" => -Float::INFINITY }] => 'args[0]["a"] is -Infinity, which JSON does not know',
    ["\xff"] => "args[0] is no valid UTF-8; encode bytes in Base64",
    [{ "\xff" => 1 }] => 'args[0]["\xFF"] is no valid UTF-8; encode bytes in Base64',
    ["ü".encode("ISO-8859-1")] => "args[0] is a String in ISO-8859-1; encode it as UTF-8, or bytes in Base64",
    ["\xff".b] => /args\[0\] is a String in (ASCII-8BIT|BINARY).*; encode it/,
    ["a".encode("UTF-16LE")] => "args[0] is a String in UTF-16LE; encode it as UTF-8, or bytes in Base64",
    [Object.new] => /args\[0\] is an Object; give what JSON knows/,
    [Class.new.new] => /args\[0\] is of an anonymous class/,
    [[{}.compare_by_identity.tap { |hash| 2.times { |number| hash[+"k"] = number } }]] =>
      'args[0][0]["k"] is there twice; a Hash that compares by identity may have no keys that are equal',
    [1r] => /args\[0\] is a Rational/,
    [Point.new(1)] => /args\[0\] is an ArgumentsTest::Point/,
    [Class.new(Hash).new] => /give a plain Hash/,
    [Class.new(Array).new] => /give a plain Array/,
    [Class.new(String).new("a")] => /give a plain String/
  }.freeze

  def setup
    @storage = Ringspun::Jobs.storage = Ringspun::Jobs::Storage::Memory.new
  end

  def teardown
    Ringspun::Jobs.storage = nil
  end

  def stored = @storage.list("default", 0, 100).map { |job| JSON.parse(job.entry)["args"] }

  def test_what_comes_back_as_it_was_is_taken
    KEPT.each { |arguments| Job.perform_async(*arguments) }
    assert_equal KEPT, stored
  end

  def test_a_hash_that_compares_by_identity_and_has_no_key_twice
    Job.perform_async({}.compare_by_identity.update("a" => 1, "b" => 2))
    assert_equal [[{ "a" => 1, "b" => 2 }]], stored
  end

  def test_what_does_not_is_refused_with_its_place
    REFUSED.each do |arguments, reason|
      error = assert_raises(Ringspun::Jobs::InvalidJobError, reason.to_s) { Job.perform_async(*arguments) }
      reason.is_a?(Regexp) ? assert_match(reason, error.message) : assert_equal(reason, error.message)
    end
    assert_empty stored
  end

  def test_a_bulk_is_checked_as_well
    error = assert_raises(Ringspun::Jobs::InvalidJobError) { Job.perform_bulk([[1], [:a]]) }
    assert_match(/args\[0\] is a Symbol/, error.message)
    assert_empty stored
  end

  def nested(depth) = depth.zero? ? 1 : [nested(depth - 1)]

  def test_as_deep_as_json_can_be_read
    Job.perform_async(nested(98))
    assert_equal [nested(98)], stored.first
    { nested(99) => "nested", [nested(97)] => nil, { "a" => nested(98) } => "nested" }.each do |argument, reason|
      if reason
        error = assert_raises(Ringspun::Jobs::InvalidJobError) { Job.perform_async(argument) }
        assert_match(/nested more deeply/, error.message)
      else
        Job.perform_async(argument)
      end
    end
  end

  def test_what_contains_itself_is_refused
    endless = [1]
    endless << { "a" => endless }
    error = assert_raises(Ringspun::Jobs::InvalidJobError) { Job.perform_async(endless) }
    assert_match(/contains itself/, error.message)
  end

  # Both are asked of each value: the fast one whether, the other one why.
  def test_the_answer_and_the_reason_agree
    values = KEPT.last + REFUSED.keys.flatten(1)
    random = Random.new(1)
    2000.times do
      value = random_value(random, values, 3)
      error = error_of { Job.perform_async(value) }
      assert_kind_of Ringspun::Jobs::InvalidJobError, error if error
      assert_equal [value], stored.first unless error
      setup
    end
  end

  def random_value(random, values, depth)
    case depth.zero? ? 0 : random.rand(3)
    when 0 then values.sample(random: random)
    when 1 then Array.new(random.rand(3)) { random_value(random, values, depth - 1) }
    else Array.new(random.rand(3)) { |number| ["k#{number}", random_value(random, values, depth - 1)] }.to_h
    end
  end

  include Strands
end
