# frozen_string_literal: true

require "postgres_helper"

# Behind PgBouncer in transaction mode: it says yes to LISTEN, and nothing ever comes; and what a session leaves is the pooler's.
# servers: pgbouncer, pgbouncer-100
class PostgresListenPooledTest < Minitest::Test
  include OnPool
  include AnyBackend
  include NoNames

  # Elsewhere there is none.
  def self.runnable_methods = ENV["RINGSPUN_POSTGRES"].to_s.start_with?("pgbouncer") ? super : []

  def test_a_pooler_that_keeps_notifications_back_is_told_of
    on_pool do |pool|
      2.times do
        error = assert_raises(Postgres::ListenUnsupported) { pool.listen("a") { flunk "nothing would come" } }
        assert_match(/LISTEN has no effect here.*PgBouncer does in transaction mode.*connects to the server/, error.message)
      end
      pool.notify("a", "goes through it all the same")
    end
  end

  # DISCARD ALL gives the server's session other settings than ours, for the pooler has begun it.
  def test_values_are_read_rightly_after_a_session
    on_pool(max: 1) do |pool|
      3.times do
        span = pool.session { |session| session.query_value("select interval '1 month 2 days'") }
        assert_equal Postgres::Interval.new(1, 2, 0), span
        assert_equal Postgres::Interval.new(1, 2, 0), pool.transaction { |t| t.query_value("select interval '1 month 2 days'") }
      end
    end
  end
end
