# frozen_string_literal: true

require_relative "test_helper"
require "open3"

# The curves of a decision, on their smallest sizes.
class BenchTest::StreamIoTest < Minitest::Test
  def test_every_cell_has_a_time_for_each_way
    script = File.join(Bench::ROOT, "bench/perf/stream_io.rb")
    out, status = Open3.capture2e(RbConfig.ruby, "-I#{Bench::ROOT}/runtime/lib", script, "--quick")
    assert status.success? || out.include?("no io_uring"), out
    cells = out.scan(/^(\w+), (\d+) steps:  16: (\d+) \/ (\d+) \/ (\d+)$/)
    assert_equal 4, cells.size, out if status.success?
    assert(cells.all? { |*, inline, ring, auto| [inline, ring, auto].all? { |time| time.to_i.positive? } }, out)
  end
end
