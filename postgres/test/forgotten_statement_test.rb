# frozen_string_literal: true

require "postgres_helper"

# A statement that the server knows no more. Where PgBouncer knows statements itself, it ends connections that name such a one.
# servers: 15, 17, pgbouncer
class PostgresForgottenStatementTest < Minitest::Test
  include OnPool
  include NoNames

  def test_a_statement_that_is_streamed
    on_pool do |pool|
      pool.session do |session|
        stream = -> { session.stream("select g from generate_series(1, $1) g", 2, as: :array).to_a }
        3.times { assert_equal [[1], [2]], stream.call }
        session.execute("deallocate all")
        2.times { assert_equal [[1], [2]], stream.call }
        session.transaction do
          assert_equal [[1], [2]], stream.call
        end
      end
    end
  end
end
