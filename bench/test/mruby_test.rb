# frozen_string_literal: true

require_relative "test_helper"

require "rbconfig"

require "bench/mruby"

# The tables of mruby, without mruby: the program that does their rows is one for mruby and CRuby.
class BenchTest::MrubyTest < Minitest::Test
  def test_they_have_the_gem_both_backends_and_cruby_and_a_floor
    tables.each do |table|
      assert_equal ["concurrently", "ringspun", "ringspun epoll", "ringspun on CRuby", "C floor", "bare"],
                   table.contenders.map(&:name)
      assert_equal %w[concurrently], table.peers.map(&:name)
      refute_empty table.about, table.name
    end
  end

  def test_the_rows_are_those_of_the_seed_and_the_machines_own
    calls = %w[call call_nonblock call_detached call_and_forget]
    assert_equal [*calls, "wait 0", "await_readable", "await_writable", "awaited call_detached",
                  *calls.map { |call| "waiting #{call}" }, "switch, 3 strands", "switch, 1,000 strands", "spawn"],
                 tables.first.rows.map(&:label)
    assert_equal ["a strand", "an evaluation"], tables.last.rows.map(&:label)
  end

  def test_ours_does_every_row_on_cruby
    each_row { |*row| assert_work("ours", ruby("-rringspun/core_ext"), *row) }
  end

  def test_the_floor_does_every_row
    each_row { |*row| assert_work("the floor", ruby, *row, kind: "floor") }
  end

  # Which is not built here.
  def test_the_floor_in_c_has_every_row
    named = File.read(Bench::Mruby::FLOOR_SOURCE).scan(/\{"([^"]+)", [A-Z_]+\}/).flatten
    assert_equal tables.first.rows.map(&:label).sort, named.sort
  end

  def test_a_program_that_fails_says_why
    error = assert_raises(RuntimeError) { Bench::Mruby.work(ruby, "no such row", 100) }
    assert_match(/no such row/, error.message)
  end

  # Instead of a build, which would take minutes.
  def test_without_the_source_of_mruby_every_row_says_what_to_do
    error = assert_raises(Bench::Unavailable) { Bench::Mruby.build("MRUBY_SRC" => File.join(BenchTest::FIXTURES, "none")) }
    assert_match(/no source of mruby in .*: run bin\/setup --matrix, or set MRUBY_SRC/, error.message)
  end

  private

  def tables = BenchTest.tables.select { |table| table.name.start_with?("mruby") }
  def ruby(*options) = [Bench::Sampler::LIBRARIES, RbConfig.ruby, *options]

  # On the size of the warm-up, and without that of what ours does more often.
  def each_row
    tables.each do |table|
      table.rows.each do |row|
        size = table.warm_up_size(table.size_of(row, table.peers.first))
        yield table, row.label, size
      end
    end
  end

  def assert_work(who, command, table, label, size, **)
    answer = Bench::Mruby.work(command, label, size.fetch(:count), **)
    assert_nil table.complaint(size, answer.transform_keys(&:to_s)), "#{who}: #{table.name} #{label}"
  end
end
