# frozen_string_literal: true

require "jobs_helper"

# How the jobs of each class go, minute by minute.
class MeasuresTest < Minitest::Test
  include AnyBackend

  Jobs = Ringspun::Jobs
  Measures = Jobs::Worker.const_get(:Measures)
  Outcome = Jobs::Worker.const_get(:Outcome)
  Run = Struct.new(:job, :began_at)

  # Keeps what it is sent, or raises what it is told.
  class Shown
    attr_reader :sent
    attr_accessor :error

    def initialize = @sent = []
    def measure(measures, **) = error ? raise(error) : @sent.concat(measures)
  end

  def setup
    @measures = Measures.new
    @shown = Shown.new
  end

  def add(kind, at: 600.0, seconds: 0.01, job: { "class" => "A" })
    @measures.add(Run.new(job, at - seconds), Outcome.new(nil, kind, nil, nil, seconds))
  end

  def sent
    @measures.turn(0)
    @measures.send_ended(@shown)
    @shown.sent.map(&:to_a)
  end

  def test_kinds_of_ends
    %i[done snoozed retry dead dropped returned cancelled died malformed].each { |kind| add(kind) }
    add(:done, seconds: 0.5)
    add(:done, seconds: 1000)
    assert_equal [[10, "A", 7, 3, 1_000_520, { 0 => 2, 9 => 1, 25 => 1 }]], sent
  end

  def test_limits_belong_to_the_next
    [0.019, 0.02, 0.029, 0.03, 334.999, 335.0].each { |seconds| add(:done, seconds:) }
    assert_equal({ 0 => 1, 1 => 2, 2 => 1, 24 => 1, 25 => 1 }, sent.first.last)
  end

  def test_the_class_that_is_wrapped
    add(:done, job: { "class" => "Wrapper", "wrapped" => "B" })
    assert_equal "B", sent.first[1]
  end

  def test_minutes
    add(:done, at: 659.9)
    add(:done, at: 660.0)
    add(:retry, at: 661.0, job: { "class" => "B" })
    @measures.send_ended(@shown)
    assert_equal [10], @shown.sent.map(&:minute)
    assert_equal [[10, "A"], [11, "A"], [11, "B"]], sent.map { |row| row.first(2) }
  end

  def test_what_could_not_be_sent_is_sent_later
    add(:done)
    @measures.turn(0)
    @shown.error = Jobs::UnavailableError
    assert_raises(Jobs::UnavailableError) { @measures.send_ended(@shown) }
    @shown.error = nil
    assert_equal 1, sent.size
  end

  def test_what_may_have_been_sent_and_what_is_refused_is_forgotten
    [Jobs::UnknownOutcomeError, Jobs::StorageError].each do |error|
      add(:done)
      @measures.turn(0)
      @shown.error = error
      @measures.send_ended(@shown)
    end
    @shown.error = nil
    assert_empty sent
  end

  def test_the_oldest_minutes_go_when_the_storage_stays_away
    70.times { |minute| add(:done, at: (minute + 10) * 60.0) }
    assert_equal (20..79).to_a, sent.map(&:first)
  end
end
