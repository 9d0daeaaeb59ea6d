# frozen_string_literal: true

require_relative "test_helper"
require "bench/meter"
require "bench/web_servers"

class BenchTest::WebServersTest < Minitest::Test
  def setup
    @kept = ENV.fetch("BENCH_SCRATCH", nil)
    ENV["BENCH_SCRATCH"] = @folder = Dir.mktmpdir
  end

  def teardown
    ENV["BENCH_SCRATCH"] = @kept
    FileUtils.rm_rf(@folder)
  end

  def test_each_answers_all_requests_with_what_it_has_computed
    assert_equal Bench::Computing::RESULT, Bench::Computing.once
    %i[prefork puma ringspun].each do |program|
      Bench::WebServers.during(Bench::Meter.new, program, 2) { |server| assert_equal 21, server.ask(4, 21), program }
    end
  end

  def test_one_that_does_not_start_says_why
    error = assert_raises(RuntimeError) { Bench::WebServers.during(Bench::Meter.new, :nothing, 2) { flunk } }
    assert_match(/the server does not answer: .*its last words: .*cannot load such file|No such file/, error.message)
  end

  def test_one_that_ends_is_no_reason_to_wait
    error = assert_raises(RuntimeError) do
      Bench::WebServers.during(Bench::Meter.new, :prefork, 2) do |server|
        server.stop
        server.ask(1, 1)
      end
    end
    assert_match(/the server does not answer: Connection refused/, error.message)
  end
end
