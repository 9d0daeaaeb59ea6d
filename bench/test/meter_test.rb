# frozen_string_literal: true

require_relative "test_helper"

require "bench/meter"

class BenchTest::MeterTest < Minitest::Test
  def test_what_is_freed_within_counts_for_the_growth
    bytes = 32 << 20
    # A mapping of its own: a String may have its bytes from what was freed before, and that is resident already.
    grown = Bench::Meter.new.growth_at_most { mapped(bytes) { |buffer| buffer.clear(1) } }
    assert_operator grown, :>=, bytes * 0.9 # the kernel counts by the thread, and adds up late
  end

  def test_without_gc_the_reading_has_no_collection_and_counts_objects
    meter = Bench::Meter.new
    collections = meter.measure_without_gc do
      before = GC.count
      kept = Array.new(200_000) { Object.new }
      assert_equal 200_000, kept.size
      GC.count - before
    end
    assert_equal 0, collections
    assert_kind_of Float, meter.reading[:real]
    assert_includes 200_000..200_100, meter.notes[:allocated]
    refute GC.enable, "the collector is on again"
  end

  def test_the_collector_is_on_again_after_an_error
    assert_raises(RuntimeError) { Bench::Meter.new.measure_without_gc { raise "failed" } }
    refute GC.enable
  end

  def test_with_gc_the_time_is_a_note_and_no_reading
    meter = Bench::Meter.new
    collections = meter.time_with_gc do
      before = GC.count
      GC.start
      GC.count - before
    end
    assert_equal 1, collections
    assert_kind_of Float, meter.notes[:gc_real]
    assert_nil meter.reading
  end

  private

  def mapped(bytes)
    experimental = Warning[:experimental]
    Warning[:experimental] = false
    buffer = IO::Buffer.new(bytes, IO::Buffer::MAPPED)
    yield buffer
  ensure
    buffer&.free
    Warning[:experimental] = experimental
  end
end
