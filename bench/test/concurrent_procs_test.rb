# frozen_string_literal: true

require_relative "test_helper"

require "json"
require "open3"
require "rbconfig"

require "bench/meter"

# The tables whose rows are many: one process for all the rows of a contender.
class BenchTest::ConcurrentProcsTest < Minitest::Test
  # Where each library is, for a load path that speaks for the other one.
  GEM_FOLDER = Gem.loaded_specs.fetch("concurrently").full_require_paths.first
  OUR_FOLDER = File.join(Bench::ROOT, "runtime/lib")

  def test_the_gem_does_every_row_and_is_the_gem
    assert_every_row "the gem", "concurrently"
    assert_every_row "the gem", "concurrently", "-I", OUR_FOLDER
  end

  def test_the_drop_in_does_every_row_and_is_ours
    assert_every_row "ours", "drop-in"
    assert_every_row "ours", "drop-in", "-I", GEM_FOLDER
  end

  def test_ringspun_does_every_row_on_each_backend_without_either
    assert_every_row nil, "ringspun"
    assert_every_row nil, "ringspun epoll"
  end

  def test_a_plain_proc_does_every_row_but_those_of_many_evaluations
    tables = BenchTest.tables.select { |table| table.contender("plain proc") }
    assert_equal %w[call_methods calls_awaiting wait_methods call_methods_waiting], tables.map(&:name)
    tables.each do |table|
      contender = table.contender("plain proc")
      table.rows.each do |row|
        size = table.warm_up_size(table.size_of(row, contender))
        proof = contender.body.call(Bench::Meter.new, **size)
        assert_nil table.complaint(size, proof.transform_keys(&:to_s)), "#{table.name} #{row.label}"
      end
    end
  end

  def test_the_gem_is_refused_beside_ringspun
    out, status = run_ruby("-e", "require 'ringspun'; require '#{File.join(Bench::ROOT, "bench/peers/concurrently")}'")
    refute_predicate status, :success?
    assert_match(/do not go together/, out)
  end

  # A program that is tried out in this bundle means ours.
  def test_the_gem_in_the_bundle_does_not_hide_the_drop_in
    out, = run_ruby("-e", "require 'concurrently'; puts Concurrently::Proc.ancestors.include?(Ringspun::ConcurrentProc)")
    assert_equal "true\n", out
  end

  def test_the_rows_are_those_of_the_seeds
    calls = %w[call call_nonblock call_detached call_and_forget]
    rows = BenchTest.tables.to_h { |table| [table.name, table.rows.map(&:label)] }
    assert_equal [*calls, *calls.map { |call| "unbatched #{call}" }], rows.fetch("call_methods")
    assert_equal calls, rows.fetch("calls_awaiting")
    assert_equal [*calls, *calls.map { |call| "waiting #{call}" }], rows.fetch("call_methods_waiting")
    waits = ["await_readable", "await_writable"]
    assert_equal ["wait 0", *waits, *waits.map { |wait| "#{wait} through the backend" }], rows.fetch("wait_methods")
  end

  def test_every_row_that_a_target_names_exists
    BenchTest.tables.each do |table|
      table.targets.each do |target|
        # One row depends on a limit of the machine.
        assert_empty target.rows - table.rows.map(&:label) - ["past the limit"], "#{table.name}: #{target.sentence}"
      end
    end
  end

  private

  def assert_every_row(library, contender, *options)
    out, status = run_ruby(*options, File.join(BenchTest::FIXTURES, "every_row.rb"), contender)
    assert_predicate status, :success?, out
    answer = JSON.parse(out)
    return if answer["unavailable"] # which a host may make of a backend

    assert_equal [28, [], library], answer.values_at("rows", "complaints", "library"), contender
  end

  def run_ruby(*arguments) = Open3.capture2e(RbConfig.ruby, *arguments)
end
