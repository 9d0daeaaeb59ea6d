# frozen_string_literal: true

require "test_helper"
require "support/patience"

class PatienceTest < Minitest::Test
  include AnyBackend

  # With a clock, and a time of waiting for a processor, that the test sets.
  class Told < Patience
    attr_accessor :now, :waited

    def initialize(...)
      @now = @waited = 100.0
      super
    end
  end

  def setup = @patience = Told.new(30)

  def pass(seconds, waited: 0)
    @patience.now += seconds
    @patience.waited += waited
  end

  def test_what_is_left
    pass 10
    assert_equal [20, false], [@patience.left, @patience.over?]
    pass 20
    assert_equal [0, true], [@patience.left, @patience.over?]
  end

  def test_who_had_no_processor_is_not_late
    pass 100, waited: 90
    assert_equal [20, false], [@patience.left, @patience.over?]
    pass 20
    assert_predicate @patience, :over?
  end

  # For how long it had waited is known no more.
  def test_a_child_that_has_ended
    pass 29, waited: -50
    refute_predicate @patience, :over?
    pass 1
    assert_predicate @patience, :over?
  end

  def test_until_true
    answers = [nil, false, :answer]
    assert_equal :answer, @patience.until_true { answers.shift }
    asked = []
    assert_nil(@patience.until_true { |left| (asked << left) && pass(15) && nil })
    assert_equal [30, 15], asked
  end

  # It asks /proc.
  def test_a_real_one
    assert_equal 1, Patience.new(60, Process.ppid).until_true { 1 }
    answers = [nil, false, 2]
    assert_equal [2, nil], [Patience.poll(60, pause: 0) { answers.shift }, Patience.poll(0) { flunk }]
  end
end
