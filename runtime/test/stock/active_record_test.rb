# frozen_string_literal: true

require "test_helper"
require "support/servers"
require "support/stock"

# Its files are not written for -w.
begin
  verbose, $VERBOSE = $VERBOSE, nil
  require "active_record"
  ActiveRecord.eager_load!
  require "active_record/connection_adapters/postgresql_adapter"
ensure
  $VERBOSE = verbose
  Fiber[:i18n_config] = nil # not for every strand of the other tests
end

# Active Record on a real server, with the isolation level that is made for fibers.
class StockActiveRecordTest < Minitest::Test
  include Stock
  include Servers::Postgres

  ActiveSupport::IsolatedExecutionState.isolation_level = :fiber

  class Record < ActiveRecord::Base
    self.abstract_class = true
  end

  class Account < Record
    self.table_name = "ar_accounts"
    validates :name, presence: true
  end

  POOL = 5

  def setup
    super
    host, username, database = postgres_options.values_at(:host, :user, :dbname)
    Record.establish_connection(adapter: "postgresql", host:, username:, database:, pool: POOL, checkout_timeout: 30,
                                reaping_frequency: nil)
    Record.with_connection do |connection|
      connection.execute("CREATE TABLE ar_accounts (id serial PRIMARY KEY, name text NOT NULL, balance int NOT NULL DEFAULT 0)")
    end
    Account.reset_column_information
  end

  def teardown
    Record.with_connection { |connection| connection.execute("DROP TABLE ar_accounts") }
    Record.connection_pool.disconnect!
    Record.remove_connection
    Fiber[:i18n_config] = nil
    super
  end

  # What a strand does with a connection, which goes back to the pool then.
  def spin(&) = machine.spin { Record.with_connection(&) }

  def until_waiting(count)
    yield_until("#{count} wait for a lock") do
      Record.uncached { Record.with_connection { |connection| connection.select_value(<<~SQL) == count } }
        SELECT count(*) FROM pg_locks WHERE NOT granted
      SQL
    end
  end

  def test_records_made_and_found_by_many_strands
    Ringspun.run do
      made = Array.new(20) { |i| spin { Account.create!(name: "account #{i}", balance: i) } }
      assert_equal (1..20).to_a, machine.await(*made).map(&:id).sort
      found = Array.new(20) { |i| spin { Account.find_by!(name: "account #{i}").balance } }
      assert_equal (0...20).to_a, machine.await(*found)
      assert_equal [20, 190], spin { [Account.count, Account.sum(:balance)] }.await
    end
  end

  def test_errors_are_those_of_the_strand
    Ringspun.run do
      assert_ends_with ActiveRecord::RecordInvalid, spin { Account.create! }, /Name can't be blank/
      assert_ends_with ActiveRecord::RecordNotFound, spin { Account.find(7) }
      assert_ends_with ActiveRecord::StatementInvalid, spin { |connection| connection.execute("SELECT * FROM nowhere") }
    end
  end

  def test_a_row_that_is_locked_by_another_strand
    Ringspun.run do
      id = spin { Account.create!(name: "counter").id }.await
      add = -> { Account.transaction { Account.lock.find(id).then { |account| account.update!(balance: account.balance + 1) } } }
      others = nil
      spin do
        Account.transaction do
          add.call
          others = Array.new(POOL - 2) { spin { add.call } }
          until_waiting(others.size)
          assert_equal [:parked] * others.size, others.map(&:state)
        end
      end.join
      machine.await(*others)
      assert_equal POOL - 1, spin { Account.find(id).balance }.await
    end
  end

  def test_transactions_that_are_rolled_back
    Ringspun.run do
      strands = Array.new(6) do |i|
        spin { Account.transaction { Account.create!(name: i.to_s) && (raise ActiveRecord::Rollback if i.odd?) } }
      end
      machine.await(*strands)
      assert_equal %w[0 2 4], spin { Account.order(:name).pluck(:name) }.await
    end
  end

  def test_more_strands_than_connections
    Ringspun.run do
      strands = Array.new(30) do |i|
        spin { |connection| Account.transaction { connection.select_rows("SELECT pg_backend_pid(), #{i}").first } }
      end
      backends, numbers = machine.await(*strands).transpose
      assert_equal (0...30).to_a, numbers
      assert_operator backends.uniq.size, :<=, POOL
    end
  end

  # It takes back what is leased to fibers that have ended, when there is nothing else left.
  def test_strands_that_leave_their_connections_when_they_end
    Ringspun.run do
      waves = Array.new(4) do
        machine.await(*Array.new(POOL) { |i| machine.spin { Account.lease_connection.select_value("SELECT #{i}") } })
      end
      assert_equal [(0...POOL).to_a] * 4, waves
    end
  end

  class Current < ActiveSupport::CurrentAttributes
    attribute :user
  end

  def test_attributes_are_those_of_the_strand
    Ringspun.run do
      strands = Array.new(5) do |i|
        machine.spin do
          before, Current.user = Current.user, i
          machine.yield
          [before, Current.user]
        end
      end
      assert_equal(Array.new(5) { |i| [nil, i] }, machine.await(*strands))
      assert_nil machine.spin { Current.user }.await
    end
  end

  def test_a_strand_that_waits_for_a_connection
    Ringspun.run do
      lent, queue = Thread::Queue.new, Thread::Queue.new
      holding = Array.new(POOL) { spin { |connection| lent.push(connection.select_value("SELECT 1")) && queue.pop } }
      POOL.times { lent.pop }
      waiting = parked { Record.with_connection { |connection| connection.select_value("SELECT 7") } }
      queue << 1
      assert_equal 7, waiting.await
      (POOL - 1).times { queue << 1 }
      assert_equal [1] * POOL, machine.await(*holding)
    end
  end
end
