# frozen_string_literal: true

require "postgres_helper"

# A statement that a connection knows by name has the types that its parameters had then. Where a table has changed since, the
# server would make of a text what the old type makes of it.
# servers: all
class PostgresSchemaTest < Minitest::Test
  include OnPool
  include NoNames

  def with_numbers(pool)
    name = "t_#{SecureRandom.hex(6)}"
    pool.execute("create table #{name} (a int)")
    yield name, "insert into #{name} values ($1)"
  ensure
    pool.execute("drop table if exists #{name}")
  end

  def texts(client, table) = client.query("select a from #{table}").rows.flatten

  def test_a_temporary_table_of_another_type
    return if ENV["RINGSPUN_POSTGRES"].to_s.start_with?("pgbouncer") # each statement may have another server's session

    on_pool do |pool|
      pool.session do |s|
        %w[int text bytea].each do |type|
          s.query("drop table if exists numbers")
          s.query("create temporary table numbers (a #{type})")
          3.times { s.execute("insert into numbers values ($1)", "007") }
          assert_equal [{ "int" => 7, "text" => "007", "bytea" => "007" }[type]] * 3, texts(s, "numbers")
        end
      end
    end
  end

  def test_a_table_that_another_connection_changes
    on_pool do |pool|
      with_numbers(pool) do |table, insert|
        pool.session do |s|
          3.times { s.execute(insert, "1") && s.query("select * from #{table}") }
          pool.execute("truncate #{table}")
          pool.execute("alter table #{table} alter a type text")
          s.execute(insert, "007")
          assert_equal ["007"], texts(s, table)
        end
      end
    end
  end

  def test_a_table_that_its_transaction_changes
    on_pool do |pool|
      with_numbers(pool) do |table, insert|
        pool.session do |s|
          3.times { s.execute(insert, "1") && texts(s, table) }
          s.execute("truncate #{table}")
          s.transaction do |t|
            t.script("alter table #{table} alter a type text; select 1")
            t.execute(insert, "007")
            assert_equal ["007"], texts(t, table) # and the plan that was cached does not matter
          end
          assert_equal ["007"], texts(s, table)
        end
      end
    end
  end

  def test_a_change_that_is_rolled_back
    on_pool do |pool|
      with_numbers(pool) do |table, insert|
        pool.session do |s|
          assert_raises(RuntimeError) do
            s.transaction do |t|
              t.transaction do |inner|
                inner.query("alter table #{table} alter a type text")
                change(inner, insert)
                raise "no"
              end
            rescue RuntimeError
              3.times { t.execute(insert, "1") }
              assert_equal [1, 1, 1], texts(t, table)
              t.query("alter table #{table} alter a type text")
              change(t, insert)
              raise
            end
          end
          3.times { s.execute(insert, "007") }
          assert_equal [7, 7, 7], texts(s, table)
        end
      end
    end
  end

  # By then it has a name.
  def change(client, insert) = 3.times { client.execute(insert, "x") }

  # What is no table of anybody's leaves all names as they are.
  def test_others_keep_their_names
    on_pool do |pool|
      pool.session do |s|
        next if pool_options[:statement_cache]&.zero? # there are no names

        named = "select count(*) from pg_prepared_statements where statement = 'select $1::int'"
        3.times { s.query("select $1::int", 1) }
        before = s.query_value(named)
        pool.session { |other| other.query("create temporary table nobodys (a int)") }
        s.query("select $1::int", 1)
        assert_equal [1, before], [before, s.query_value(named)]
        pool.execute("create table #{table = "t_#{SecureRandom.hex(6)}"} (a int)")
        pool.execute("drop table #{table}")
        3.times { s.query("select $1::int", 1) }
        assert_equal 1, s.query_value(named) # the old name is closed
      end
    end
  end
end
