# frozen_string_literal: true

require "test_helper"
require "sequel"
require "support/servers"
require "support/stock"

# Sequel on a real server. Its pool gives a connection to each fiber with the extension that is made for that.
class StockSequelTest < Minitest::Test
  include Stock
  include Servers::Postgres

  Sequel.extension(:fiber_concurrency)

  def setup
    super
    database { |db| db.run("CREATE TABLE things (id serial PRIMARY KEY, name text, count int DEFAULT 0)") }
  end

  def teardown
    database { |db| db.drop_table(:things) }
    super
  end

  def database(**options)
    host, user, name = postgres_options.values_at(:host, :user, :dbname)
    db = Sequel.connect(adapter: "postgres", host:, user:, database: name, keep_reference: false, **options)
    yield db
  ensure
    db.disconnect
  end

  def until_waiting(db, count)
    yield_until("#{count} wait for a lock") { db[:pg_locks].exclude(:granted).count == count }
  end

  def test_datasets_and_models
    Ringspun.run do
      database do |db|
        things = db[:things]
        strands = Array.new(10) { |i| machine.spin { things.insert(name: "thing #{i}") } }
        assert_equal (1..10).to_a, machine.await(*strands).sort
        model = Class.new(Sequel::Model(things))
        assert_equal "thing 3", model.first(name: "thing 3").name
        assert_equal Array.new(10) { |i| "thing #{i}" }, model.order(:name).map(&:name)
        assert_raises(Sequel::DatabaseError) { db[:nowhere].all }
      end
    end
  end

  def test_a_row_that_is_locked_by_another_strand
    Ringspun.run do
      database(max_connections: 10) do |db|
        db[:things].insert(name: "counter")
        add = -> { db[:things].where(name: "counter").update(count: Sequel[:count] + 1) }
        others = nil
        db.transaction do
          add.call
          others = Array.new(5) { machine.spin { db.transaction { add.call } } }
          until_waiting(db, 5)
          assert_equal(%i[parked] * 5, others.map(&:state))
        end
        machine.await(*others)
        assert_equal 6, db[:things].get(:count)
      end
    end
  end

  def test_a_transaction_that_is_rolled_back
    Ringspun.run do
      database do |db|
        strands = Array.new(6) do |i|
          machine.spin { db.transaction { db[:things].insert(name: i.to_s) && (raise Sequel::Rollback if i.odd?) } }
        end
        machine.await(*strands)
        assert_equal %w[0 2 4], db[:things].order(:name).select_map(:name)
      end
    end
  end

  def test_more_strands_than_connections
    Ringspun.run do
      database(max_connections: 2, pool_timeout: 30) do |db|
        strands = Array.new(20) do |i|
          machine.spin { db.transaction { [db.get(Sequel.lit("pg_backend_pid()")), db.get(Sequel.lit("?::int", i))] } }
        end
        backends, numbers = machine.await(*strands).transpose
        assert_equal [(0...20).to_a, 2], [numbers, backends.uniq.size]
      end
    end
  end

  def test_a_pool_that_has_nothing_left
    Ringspun.run do
      database(max_connections: 1, pool_timeout: 1) do |db|
        db.synchronize do
          waiting = parked { error_of { db.get(1) } }
          assert_kind_of Sequel::PoolTimeout, waiting.await
        end
      end
    end
  end
end
