# frozen_string_literal: true

require_relative "test_helper"
require_relative "support/work"

# By day on the first backend: tests of the runtime show that they do the same.
class BenchTest::WorkTest < Minitest::Test
  include BenchTest::Work

  def test_ringspun_does_its_work
    skip "ringspun is not built" unless Bench::Sampler.new.probe["ringspun"].to_s.match?(/\A\d/)

    work do |table|
      next [] unless now?(table)

      ours = table.contenders.select(&:backend)
      ENV["RINGSPUN_NIGHTLY"] == "1" ? ours : ours.select { |contender| contender.backend == "uring" }
    end
  end
end
