# frozen_string_literal: true

require "test_helper"
require "ringspun/postgres"
require "support/on_scripted_pool"

# Parameters become texts once, before a connection is chosen, however long that takes; and what the server is asked for them.
class PostgresEncodingOnceTest < Minitest::Test
  include OnScriptedPool

  # Takes two seconds, in which a lane becomes one that has to be asked whether it is alive.
  class Slow
    attr_reader :made

    def initialize(machine)
      @machine = machine
      @made = 0
    end

    def to_json(*)
      @made += 1
      raise "it is made again and again" if @made > 20

      @machine.sleep(2) # of the simulation's clock
      "1"
    end
  end

  DOORS = {
    query: ->(pool, value) { pool.query_value("echo $1", value) },
    batch: ->(pool, value) { pool.batch { _1.query("echo $1", value) }.first.value },
    session: ->(pool, value) { pool.session { |session| session.query_value("echo $1", value) } },
    transaction: ->(pool, value) { pool.transaction { |transaction| transaction.query_value("echo $1", value) } },
    stream: ->(pool, value) { pool.stream("echo $1", value, as: :array).first.first }
  }.freeze

  [{}, { lanes: 1 }, { pipelining: false }].each do |options|
    DOORS.each do |door, ask|
      define_method("test_a_parameter_that_takes_long_by_#{door}_with_#{options}") do
        on_pool(**options) do |pool, machine|
          assert_equal "first", pool.query_value("echo $1", "first")
          slow = Slow.new(machine)
          assert_equal ["{\"a\":1}", 1], [ask.call(pool, { "a" => slow }), slow.made]
          assert_equal ["{\"{\\\"a\\\":1}\"}", 2], [ask.call(pool, [{ "a" => slow }]), slow.made]
        end
      end
    end
  end

  # The process stands still whenever the lane has shown that it is alive.
  def test_a_lane_that_is_quiet_each_time
    on_pool(lanes: 1) do |pool, machine|
      pool.query_value("echo $1", "first")
      lanes = pool.__send__(:place)
      lane = lanes.instance_variable_get(:@lanes).first
      lane.define_singleton_method(:ping) { |seconds| super(seconds).tap { machine.sleep(2) } }
      machine.sleep(2)
      error = assert_raises(Ringspun::TimeoutError) { pool.query_value("echo $1", "second") }
      assert_match(/it was not sent|was not sent: this process stood still/, error.message)
    end
  end

  # Its first use is described before it is executed; the second names it, and describes it by that.
  def test_a_string_in_binary_costs_one_description
    on_pool(lanes: 1) do |pool, _, server|
      count = ->(sql, value) { descriptions(pool, server, sql, value) { assert_equal value.dup.force_encoding("UTF-8"), _1 } }
      assert_equal [2, 1, 0], count.call("echo $1 /* bytes */", "é".b)
      assert_equal [1, 1, 0], count.call("echo $1 /* plain */", "e".b)
      assert_equal [1, 1, 0], count.call("echo $1 /* text */", "é")
    end
  end

  # It may be json, unless the text shows what it is.
  def test_an_array_costs_one_description_where_the_text_does_not_show_it
    on_pool(lanes: 1) do |pool, _, server|
      count = ->(text) { descriptions(pool, server, "echo $1 /* #{text} */", [1]) { assert_equal "{1}", _1 } }
      ["any($1)", "x <> ALL ( $1 )", "$1::pg_catalog.int4[]", "$1 :: \"int4\"[]", "unnest($1, $2)"].each do |text|
        assert_equal [1, 1, 0], count.call(text), text
      end
      ["$1::int4", "many($1)", "any($10)", "array_length($1, 1)", "(any $1", "$1::json, y[1]"].each do |text|
        assert_equal [2, 1, 0], count.call(text), text
      end
    end
  end

  private

  # @yieldparam value [Object] what comes back
  # @return [Array<Integer>] how many each of three uses costs
  def descriptions(pool, server, sql, value)
    watch_descriptions(pool, server) unless @watched
    Array.new(3) do
      @described = 0
      yield pool.query_value(sql, value)
      @described
    end
  end

  def watch_descriptions(pool, server)
    pool.query_value("echo $1", "first")
    note = -> { @described += 1 }
    server.backends.each { |backend| backend.define_singleton_method(:describe) { |name| note.call && super(name) } }
    @watched = true
  end
end
