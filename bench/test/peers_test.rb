# frozen_string_literal: true

require_relative "test_helper"
require_relative "support/work"

# inputs: bench, Gemfile.lock

class BenchTest::PeersTest < Minitest::Test
  include BenchTest::Work

  def test_peers_and_floors_do_their_work
    work { |table| now?(table) ? table.contenders.reject(&:backend) : [] }
  end

  def test_each_table_has_its_day
    days = Array.new(PARTS) { |day| BenchTest.tables.select { |table| turn?(table, day) } }
    assert_equal BenchTest.tables, days.flatten.sort_by { |table| BenchTest.tables.index(table) }
    refute_includes days, []
  end
end
