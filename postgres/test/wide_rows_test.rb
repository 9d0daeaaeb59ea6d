# frozen_string_literal: true

require "postgres_helper"

# What streams of wide rows cost in memory: a row that nobody has kept is gone when the next ones come.
class PostgresWideRowsTest < Minitest::Test
  include OnPool
  include AnyBackend

  PROGRAM = <<~RUBY
    $LOAD_PATH.unshift(ARGV.shift)
    require "ringspun/postgres"
    url, as = ARGV
    most = -> { Integer(File.read("/proc/self/status")[/VmHWM:\\s+(\\d+) kB/, 1]) }
    Ringspun.run do
      pool = Ringspun::Postgres::Pool.new(url)
      bytes = lambda do |rows, size|
        sum = 0
        pool.stream("select repeat('x', $1::int) as body from generate_series(1, $2::int)", size, rows, as: as.to_sym) do |row|
          sum += row[as == "hash" ? "body" : 0].bytesize
        end
        sum
      end
      bytes.call(20, 10)
      before = most.call
      bytes.call(10, 1_000_000)
      after_ten = most.call
      puts bytes.call(300, 1_000_000), after_ten - before, most.call - after_ten
    ensure
      pool&.close
    end
  RUBY

  %w[row array hash].each do |as|
    # A process that was forked would have the memory of others.
    define_method("test_300_rows_of_a_megabyte_take_no_more_than_ten_by_#{as}") do
      answer = ruby_child(PROGRAM, File.expand_path("../lib", __dir__), url, as, fresh: true)
      assert_empty answer.err
      bytes, of_ten, of_others = answer.out.lines.map(&:to_i)
      assert_equal 300_000_000, bytes
      assert_operator of_others, :<=, 1024, "kilobytes: a row is kept"
      assert_operator of_ten, :<=, 6144, "kilobytes: the buffers, and the rows that are there at once"
    end
  end

  def test_rows_that_are_kept_stay_as_they_are
    on_pool do |pool|
      kept = []
      sql = "select i, repeat(chr(97 + i % 26), 200000) as body from generate_series(1, 60) i"
      pool.stream(sql) { |row| kept << row if (row[0] % 3).zero? }
      pool.stream(sql) { nil }
      assert_equal (1..20).map { |i| (97 + (i * 3 % 26)).chr * 200_000 }, kept.map { |row| row[:body] }
      rows = pool.stream(sql).to_a
      assert_equal (1..60).to_a, rows.map { |row| row["i"] }
      assert_equal (1..60).map { |i| (97 + (i % 26)).chr * 200_000 }, rows.map { |row| row.to_h["body"] }
    end
  end

  # It would collect however a user has decided.
  def test_a_collector_that_is_off_stays_off
    on_pool do |pool|
      GC.disable
      before = GC.count
      pool.stream("select repeat('x', 1000000) from generate_series(1, 5)") { nil }
      assert_equal before, GC.count
      assert GC.disable
    ensure
      GC.enable
    end
  end
end
