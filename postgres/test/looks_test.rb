# frozen_string_literal: true

require "postgres_helper"
require "support/on_scripted_pool"

# Who finds no connection looks for what nobody will give back. Each look is at all holders, and most find nothing.
class PostgresLooksTest < Minitest::Test
  include OnScriptedPool

  def test_of_many_who_come_at_once_one_looks
    on_pool(max: 1) do |pool, machine|
      asking = pool.session do
        machine.sleep(1)
        looked = []
        trace = TracePoint.new(:call) { |call| looked << call.self }
        trace.enable(target: Ringspun::Postgres.const_get(:Holder).instance_method(:ended?))
        strands = Array.new(20) { machine.spin { pool.session { 1 } } }
        machine.yield
        trace.disable
        assert_equal [20, 1], [pool.metrics[:waiting], looked.uniq.size]
        assert_operator looked.size, :<=, 2
        strands
      end
      assert_equal [1], asking.map(&:await).uniq
    end
  end
end
