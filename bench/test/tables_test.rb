# frozen_string_literal: true

require_relative "test_helper"

class BenchTest::TablesTest < Minitest::Test
  def test_all_tables_are_there_in_the_order_of_the_report
    assert_equal %w[pipe socketpair mutex_cpu mutex_io queue switch timeout spawn beside_cpu parked],
                 BenchTest.tables.map(&:name)
  end

  def test_every_table_has_all_contenders_and_a_target
    BenchTest.tables.each do |table|
      assert_equal %w[threads async ringspun], (table.contenders - [table.floor]).map(&:name), table.name
      refute_empty table.targets, table.name
      refute_empty table.about, table.name
    end
  end

  def test_every_floor_but_that_of_a_free_timeout_exists
    without = BenchTest.tables.reject(&:floor).map(&:name)
    assert_equal %w[timeout beside_cpu], without
  end

  # Real children, with the sizes of the warm-up: whether the work is done, not how fast.
  def test_threads_async_and_floors_do_their_work
    BenchTest.tables.each do |table|
      row = table.rows.first
      (table.contenders - [table.contender("ringspun")]).each do |contender|
        size = table.warm_up_size(table.size_of(row, contender)).merge(small(table))
        sample = Bench::Sampler.new(time_limit: 60.0).sample(table, contender, size)
        refute sample["failed"], "#{table.name} #{contender.name}: #{sample["failed"]}"
        assert sample["real"] || sample["unavailable"]
      end
    end
  end

  def test_ringspun_does_its_work
    skip "ringspun is not built" unless Bench::Sampler.new.probe["ringspun"].to_s.match?(/\A\d/)

    BenchTest.tables.each do |table|
      row = table.rows.first
      contender = table.contender("ringspun")
      size = table.warm_up_size(table.size_of(row, contender)).merge(small(table))
      sample = Bench::Sampler.new(time_limit: 60.0).sample(table, contender, size)
      refute sample["failed"], "#{table.name}: #{sample["failed"]}"
    end
  end

  private

  # Spawning is warmed up at length; here it need not be.
  def small(table) = table.name == "spawn" ? { count: 100 } : {}
end
