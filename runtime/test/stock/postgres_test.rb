# frozen_string_literal: true

require "test_helper"
require "pg"
require "support/servers"
require "support/stock"
require "timeout"

# The pg gem's ordinary methods on a real server, which itself says who waits for whom.
class StockPostgresTest < Minitest::Test
  include Stock
  include Servers::Postgres

  CONNECTIONS = 60

  def connect = PG.connect(**postgres_options)

  def connected
    connection = connect
    yield connection
  ensure
    connection&.close
  end

  # Lets others run until so many connections wait for a lock.
  def until_waiting(watcher, count)
    yield_until("#{count} wait for a lock") do
      watcher.exec("SELECT count(*) FROM pg_locks WHERE NOT granted").getvalue(0, 0).to_i == count
    end
  end

  def test_exec_waits_while_others_go_on
    Ringspun.run do
      connected do |holder|
        holder.exec("SELECT pg_advisory_lock(1)")
        waiting = machine.spin { connected { |other| other.exec("SELECT pg_advisory_lock(1), 'mine' AS whose").to_a } }
        until_waiting(holder, 1)
        assert_equal :parked, waiting.state
        holder.exec("SELECT pg_advisory_unlock(1)")
        assert_equal "mine", waiting.await.first["whose"]
      end
    end
  end

  def test_exec_params_and_prepared
    Ringspun.run do
      connected do |connection|
        result = connection.exec_params("SELECT $1::int + 1 AS sum, $2::text AS text", [41, "é"])
        assert_equal [{ "sum" => "42", "text" => "é" }], result.to_a
        connection.prepare("twice", "SELECT $1::int * 2")
        assert_equal %w[2 4], [1, 2].map { |number| connection.exec_prepared("twice", [number]).getvalue(0, 0) }
        error = assert_raises(PG::UndefinedTable) { connection.exec("SELECT * FROM nowhere") }
        assert_match(/nowhere/, error.message)
      end
    end
  end

  def test_transactions_that_meet
    Ringspun.run do
      connected do |first|
        first.exec("CREATE TABLE accounts (id int PRIMARY KEY, balance int); INSERT INTO accounts VALUES (1, 100)")
        add = "UPDATE accounts SET balance = balance + 1 WHERE id = 1"
        others = nil
        first.transaction do |connection|
          connection.exec(add)
          others = Array.new(5) { machine.spin { connected { |other| other.transaction { |inside| inside.exec(add) } } } }
          until_waiting(connection, 5)
        end
        machine.await(*others)
        assert_raises(Failure) { first.transaction { |connection| connection.exec(add) && raise(Failure) } }
        assert_equal "106", first.exec("SELECT balance FROM accounts").getvalue(0, 0)
      ensure
        first.exec("DROP TABLE accounts")
      end
    end
  end

  def test_copy_in_fed_by_another_strand_and_out_again
    rows = Array.new(20_000) { |i| "#{i}\trow #{i}\n" }
    pieces = Thread::Queue.new
    Ringspun.run do
      connected do |connection|
        connection.exec("CREATE TEMPORARY TABLE copied (id int, name text)")
        copying = machine.spin do
          connection.copy_data("COPY copied FROM STDIN") do
            while (piece = pieces.pop)
              connection.put_copy_data(piece)
            end
          end
        end
        rows.each_slice(500) { |slice| pieces.push(slice.join) && until_parked(copying) }
        pieces.close
        assert_equal rows.size, copying.await.cmd_tuples
        read = []
        connection.copy_data("COPY (SELECT * FROM copied ORDER BY id) TO STDOUT") do
          while (row = connection.get_copy_data)
            read << row
          end
        end
        assert_same_bytes rows.join, read.join
      end
    end
  end

  def test_many_connections_at_once
    Ringspun.run do
      connected do |holder|
        holder.exec("SELECT pg_advisory_lock(2)")
        waiting = Array.new(CONNECTIONS) do |i|
          machine.spin do
            connected { |other| other.exec_params("SELECT pg_advisory_lock_shared(2), $1::int", [i]).getvalue(0, 1) }
          end
        end
        until_waiting(holder, CONNECTIONS)
        holder.exec("SELECT pg_advisory_unlock(2)")
        assert_equal Array.new(CONNECTIONS, &:to_s), machine.await(*waiting)
      end
    end
  end

  def test_a_large_result_and_one_row_at_a_time
    Ringspun.run do
      connected do |connection|
        sizes = connection.exec("SELECT repeat('x', 100) AS filler FROM generate_series(1, 20000)").column_values(0).map(&:size)
        assert_equal [100] * 20_000, sizes
        connection.send_query("SELECT generate_series(1, 1000)")
        connection.set_single_row_mode
        numbers = connection.get_result.stream_each_row.map { |row| row.first.to_i }
        assert_equal (1..1000).to_a, numbers
      end
    end
  end

  def test_notifications
    Ringspun.run do
      connected do |listener|
        listener.exec("LISTEN news")
        waiting = parked { listener.wait_for_notify { |channel, _, payload| @heard = [channel, payload] } }
        connected { |speaker| speaker.exec("NOTIFY news, 'to all'") }
        waiting.join
        assert_equal ["news", "to all"], @heard
        assert_nil parked { listener.wait_for_notify(0.1) }.await
      end
    end
  end

  def test_a_query_that_takes_too_long
    Ringspun.run do
      connected do |holder|
        holder.exec("SELECT pg_advisory_lock(3)")
        waiting = parked do
          connected do |other|
            error = error_of { Timeout.timeout(0.2) { other.exec("SELECT pg_advisory_lock(3)") } }
            other.cancel
            other.discard_results
            [error.class, other.exec("SELECT 'usable'").getvalue(0, 0)]
          end
        end
        holder.exec("SELECT 1") while waiting.alive?
        assert_equal [Timeout::Error, "usable"], waiting.await
      end
    end
  end

  def test_a_statement_that_the_server_ends
    Ringspun.run do
      connected do |holder|
        holder.exec("SELECT pg_advisory_lock(4)")
        waiting = parked do
          connected do |other|
            other.exec("SET lock_timeout = '100ms'")
            error_of { other.exec("SELECT pg_advisory_lock(4)") }
          end
        end
        holder.exec("SELECT 1") while waiting.alive?
        assert_kind_of PG::LockNotAvailable, waiting.await
      end
    end
  end

  def test_nobody_to_connect_to
    Ringspun.run do
      assert_raises(PG::ConnectionBad) { PG.connect(host: "/nowhere", dbname: "postgres") }
      assert_raises(PG::ConnectionBad) { PG.connect(**postgres_options, dbname: "nowhere") }
    end
  end
end
