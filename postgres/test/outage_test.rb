# frozen_string_literal: true

require "postgres_helper"
require "support/cut_proxy"
require "support/outages"

# Connections that end under many who write: whoever waits is answered, what was reported as written is there, and once, what was
# refused is not, and the pool goes on of itself.
# servers: all
class PostgresOutageTest < Minitest::Test
  include OnPool
  include NoNames
  include Outages

  def test_connections_that_somebody_ends_by_chance
    random = Random.new(seed)
    on_pool(max: 4, application_name: "tried") do |pool, machine|
      assert_survives(pool, machine) { look { |other| 40.times { terminate_one(other, random) } } }
    end
  end

  def test_ways_to_the_server_that_are_cut
    Ringspun.run do |machine|
      proxy = CutProxy.new("#{Servers.postgres_endpoint.folder}/.s.PGSQL.5432", Random.new(seed))
      url = "postgres://ringspun@127.0.0.1:#{proxy.port}/postgres"
      pool = Postgres::Pool.new(url, max: 4, **pool_options)
      assert_survives(pool, machine) do
        await(machine) { proxy.cuts > 60 }
        proxy.stop_cutting
      end
    ensure
      pool&.close
      proxy&.close
    end
  end

  private

  def seed = Minitest.seed

  def terminate_one(other, random)
    pids = other.query("select pid from pg_stat_activity where application_name = 'tried'").rows.flatten
    other.query("select pg_terminate_backend($1)", pids.sample(random:)) if pids.any?
  end
end
