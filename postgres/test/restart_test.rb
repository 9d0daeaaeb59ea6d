# frozen_string_literal: true

require "postgres_helper"
require "support/outages"

# A server that ends as a whole, and comes back, under many who write.
# servers: 15, 17
class PostgresRestartTest < Minitest::Test
  include OnPool
  include Outages

  # One that no other test uses.
  def self.server = Servers.postgres(:restarted)

  def before_setup
    self.class.server
    super
  end

  # A crash; at once and without a checkpoint; at once: https://www.postgresql.org/docs/17/server-shutdown.html
  %w[KILL QUIT INT].each do |signal|
    define_method("test_a_server_that_ends_by_#{signal}") do
      on_pool(max: 4) do |pool, machine|
        assert_survives(pool, machine) { restart_under(pool, machine, signal) }
      end
    end
  end

  private

  def url = "postgres:///postgres?user=ringspun&host=#{self.class.server.folder}"

  def restart_under(pool, machine, signal)
    sleeping = machine.spin { pool.session { |session| session.query("select pg_sleep(60)") } }
    await(machine) { look { |other| running(other) }.any?(/pg_sleep/) }
    self.class.server.restart(signal)
    assert_predicate assert_raises(Postgres::ConnectionLost) { sleeping.await }, :in_doubt?
  end
end
