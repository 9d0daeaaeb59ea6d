# frozen_string_literal: true

require "postgres_helper"

# `rescue => error; error.in_doubt?`, whatever comes out of a statement.
class PostgresInDoubtTest < Minitest::Test
  include OnPool
  include AnyBackend

  SHORT = 0.05 # must pass
  SLEEPS = "select pg_sleep(600)"

  # What is called, and whether it may have taken effect.
  CASES = {
    "a limit of the machine's" => [true, ->(pool, machine) { machine.timeout(SHORT) { pool.query(SLEEPS) } }],
    "the deadline of a scope" => [true, ->(pool, machine) { machine.scope(deadline: SHORT) { pool.query(SLEEPS) } }],
    "the deadline of a scope with strands" => [true, lambda do |pool, machine|
      machine.scope(deadline: SHORT) { |scope| scope.spin { pool.query(SLEEPS) } }
    end],
    "a strand that is terminated" => [true, lambda do |pool, machine|
      strand = machine.spin { pool.query(SLEEPS) }
      machine.sleep(SHORT)
      machine.terminate(strand)
      strand.await
    end],
    "its own timeout" => [true, ->(pool, _) { pool.query("select 1") && pool.query(SLEEPS, timeout: 1) }], # must pass
    "a timeout that is over before" => [false, ->(pool, _) { pool.query("select 1", timeout: 0) }],
    "an error of the server" => [false, ->(pool, _) { pool.query("select 1 / 0") }],
    "no SQL" => [false, ->(pool, _) { pool.query(1) }],
    "wrong options" => [false, ->(pool, _) { pool.query("select 1", timeout: "x") }],
    "a closed pool" => [false, ->(pool, _) { pool.close || pool.query("select 1") }]
  }.freeze

  CASES.each do |name, (in_doubt, call)|
    define_method("test_#{name.tr(" ", "_").delete("'")}") do
      Ringspun.run do |machine|
        with_pool do |pool|
          error = assert_raises(Ringspun::Error) { call.call(pool, machine) }
          assert_equal in_doubt, error.in_doubt?, error.inspect
        end
      end
    end
  end
end
