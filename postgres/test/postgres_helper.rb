# frozen_string_literal: true

require "test_helper"
require "support/servers"
require "ringspun/postgres"

# Included beside OnPool by what begins transactions: behind a pooler that knows no statements of clients, a name that was given
# on another connection of its ends them.
module NoNames
  def pool_options = ENV["RINGSPUN_POSTGRES"] == "pgbouncer" ? { statement_cache: 0 } : {}
end

# Tests that have a pool to a real server.
module OnPool
  include Servers::Postgres

  Postgres = Ringspun::Postgres

  # @return [Object] of the block, which runs in a strand
  def on_pool(**options)
    Ringspun.run do |machine|
      pool = pool(**options)
      yield pool, machine
    ensure
      pool&.close
    end
  end

  # Outside of a run: for plain threads, and for runs that come and go.
  def with_pool(**)
    pool = pool(**)
    yield pool
  ensure
    pool&.close
  end

  def pool(**) = Postgres::Pool.new(url, **pool_options, **)

  def url = Servers.postgres_url

  def pool_options = {}

  # The texts count as quick from now on, however long this program or the server has stood still: what does not may have a
  # connection of its own.
  def know_as_quick(pool, *texts) = texts.product([0] * 40) { |sql, seconds| pool.config.sharing.histories.note(sql, seconds) }

  # Of a connection of its own, so that it sees what others do.
  def look
    Ringspun.run do
      other = Postgres.connect(url)
      yield other
    ensure
      other&.close
    end
  end

  # A statement that waits while somebody else is in `holding` with it.
  LOCK = "select pg_advisory_xact_lock(20607)"

  def holding(lock)
    look { |other| other.transaction { |transaction| transaction.query(lock).then { yield } } }
  end

  # A table of its own for the test, with a row for each number.
  def with_table(pool, *numbers)
    name = "t_#{SecureRandom.hex(6)}"
    pool.execute("create table #{name} (id int primary key, text text)")
    numbers.each { |number| pool.execute("insert into #{name} values ($1, $2)", number, number.to_s) }
    yield name
  ensure
    pool.execute("drop table if exists #{name}")
  end

  def ids(client, table) = client.query("select id from #{table} order by id").rows.flatten

  # What the server runs for others of our kind, but for what waits for a client.
  def running(client)
    client.query("select query from pg_stat_activity " \
                 "where state = 'active' and pid <> pg_backend_pid() and backend_type = 'client backend'").rows.flatten
  end

  # Ends what the server runs for others of our kind.
  def end_others(client)
    client.query("select pg_terminate_backend(pid) from pg_stat_activity " \
                 "where state = 'active' and pid <> pg_backend_pid() and backend_type = 'client backend'")
  end

  # Waits for another strand, or the server, without a guess how long that takes.
  def await(machine)
    machine.sleep(0.001) until (found = yield)
    found
  end

  # Until another thread or the server is so far, without a guess how long that takes.
  def wait_until = (sleep 0.001 until yield)

  # A thread whose error is told to the test alone.
  def quiet_thread(&) = Thread.new(&).tap { |thread| thread.report_on_exception = false }

  # Of a pooler's own connections a pool knows nothing.
  def assert_nobody_left(machine)
    return if ENV["RINGSPUN_POSTGRES"].to_s.start_with?("pgbouncer")

    left = "select count(*) from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()"
    look { |other| await(machine) { other.query_value(left).zero? } }
  end
end
