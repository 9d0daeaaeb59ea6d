# frozen_string_literal: true

# The ways by which a statement with parameters comes to the server. Each asks three times, and answers the values. Included
# beside OnPool.
module Doors
  DOORS = {
    query: ->(pool, sql, *params) { Array.new(3) { pool.query_value(sql, *params) } },
    prepare: ->(pool, sql, *params) { pool.prepare(sql).then { |one| Array.new(3) { one.query_value(*params) } } },
    batch: lambda do |pool, sql, *params|
      [2, 1].flat_map { |times| pool.batch { |batch| times.times { batch.query(sql, *params) } }.map(&:value) }
    end,
    stream: ->(pool, sql, *params) { Array.new(3) { pool.stream(sql, *params, as: :array).first[0] } },
    session: ->(pool, sql, *params) { pool.session { |session| Array.new(3) { session.query_value(sql, *params) } } },
    transaction: lambda do |pool, sql, *params|
      pool.transaction { |t| [t.stream(sql, *params, as: :array).first[0], *Array.new(2) { t.query_value(sql, *params) }] }
    end,
    thread: lambda do |pool, sql, *params|
      Thread.new { Array.new(3) { pool.query_value(sql, *params) } }.tap { |thread| thread.report_on_exception = false }.value
    end,
    async: ->(pool, sql, *params) { Array.new(3) { pool.async.query_value(sql, *params).await_result } }
  }.freeze

  OPTIONS = { names: {}, no_names: { statement_cache: 0 }, one_at_a_time: { pipelining: false }, one_lane: { lanes: 1 } }.freeze

  # A test for each way and each of the options.
  #
  # @param values [Hash{String => Array}] by statement its parameters, and last what it answers
  def self.define_tests(test_class, values)
    DOORS.to_a.product(OPTIONS.to_a) do |(door, ask), (name, options)|
      test_class.define_method("test_by_#{door}_with_#{name}") do
        on_pool(**pool_options, **options) do |pool|
          values.each { |sql, (*params, value)| assert_equal [value] * 3, ask.call(pool, sql, *params), sql }
        end
      end
    end
  end

  # A domain of its own for the test.
  def with_domain(type)
    name = "domain_#{SecureRandom.hex(6)}"
    look { |client| client.execute("create domain #{name} as #{type}") }
    yield name
  ensure
    look { |client| client.execute("drop domain if exists #{name}") }
  end
end
