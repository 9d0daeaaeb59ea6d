# frozen_string_literal: true

require_relative "test_helper"
require_relative "support/work"
require_relative "../../bin/support/changes"
require_relative "../../runtime/test/support/seeds"

# inputs: bench, Gemfile.lock

# By day on the tables whose file has changed and on a third of the others, which is another one each day.
class BenchTest::PeersTest < Minitest::Test
  include BenchTest::Work

  PARTS = 3

  def test_peers_and_floors_do_their_work
    work { |table| now?(table) ? table.contenders.reject(&:backend) : [] }
  end

  def test_each_table_has_its_day
    days = Array.new(PARTS) { |day| BenchTest.tables.select { |table| turn?(table, day) } }
    assert_equal BenchTest.tables, days.flatten.sort_by { |table| BenchTest.tables.index(table) }
    refute_includes days, []
  end

  private

  def now?(table)
    ENV["RINGSPUN_NIGHTLY"] == "1" || turn?(table, Time.now.to_i / Seeds::SECONDS_A_DAY) || changes.among([path(table)])&.any?
  end

  def turn?(table, day) = BenchTest.tables.index(table) % PARTS == day % PARTS
  def changes = @changes ||= Changes.new(Bench::ROOT)
  def path(table) = table.file.delete_prefix("#{Bench::ROOT}/")
end
