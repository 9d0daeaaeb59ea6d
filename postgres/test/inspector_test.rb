# frozen_string_literal: true

require "postgres_helper"

# What the runtime's list of strands says of those that wait for Postgres: the statement, cut, without its parameters.
# servers: all
class PostgresInspectorTest < Minitest::Test
  include OnPool
  include NoNames

  # @yield asks for what waits for a lock
  # @return [String] what its strand waits for
  def waits_for(machine, count = 1)
    said = nil
    holding(LOCK) do
      strands = Array.new(count) { |number| machine.spin { yield number } }
      await(machine) { (said = strands.map(&:waits_for)).all?(/20607|\.\.\./) }
      strands.each(&:terminate)
    end
    said
  end

  WAYS = {
    query: ->(client, sql) { client.query(sql, "parameter") },
    batch: ->(client, sql) { client.batch { |batch| batch.query(sql, "parameter") } },
    stream: ->(client, sql) { client.stream(sql, "parameter") {} },
    script: ->(client, sql) { client.script(sql.sub("$1::text", "'x'")) },
    session: ->(client, sql) { client.session { |session| session.query(sql, "parameter") } }
  }.freeze

  WAYS.each do |name, way|
    define_method("test_the_statement_of_a_#{name}") do
      on_pool do |pool, machine|
        sql = "select $1::text,\n  pg_advisory_xact_lock(20607)"
        said = waits_for(machine) { way.call(pool, sql) }
        shown = name == :script ? "'x'" : "$1::text"
        assert_equal ["an answer of Postgres to select #{shown}, pg_advisory_xact_lock(20607)"], said
      end
    end
  end

  # One of them reads for all. What waits for a lock, or is not known to be quick, would have a connection of its own.
  def test_each_of_several_on_one_connection
    on_pool(lanes: 1) do |pool, machine|
      texts = Array.new(3) { |number| "select #{number}, pg_sleep(20607)" }
      know_as_quick(pool, *texts)
      pool.query("select 1")
      said = waits_for(machine, 3) { |number| pool.query(texts[number]) }
      said.each_with_index { |text, number| assert_includes text, "select #{number}, pg" }
    ensure
      look { |other| end_others(other) }
    end
  end

  def test_long_texts_and_passwords_are_cut
    on_pool do |pool, machine|
      { "select '#{"é" * 200}', pg_advisory_xact_lock(20607)" => /\Aan answer of Postgres to select 'é+\.\.\.\z/,
        "select $$alter role x password 'secret'$$, pg_advisory_xact_lock(20607)" => /alter role x \.\.\.\z/ }
        .each do |sql, shown|
          said = waits_for(machine) { pool.query(sql) }.first
          assert_match shown, said
          assert_predicate said, :valid_encoding?
          assert_operator said.bytesize, :<, 128
        end
    end
  end

  def test_afterwards_a_strand_waits_for_what_it_waits_for
    on_pool do |pool, machine|
      gate = Ringspun::Channel.new(1)
      strand = machine.spin { pool.query("select 1") && gate.pop }
      await(machine) { strand.state == :parked && !strand.waits_for.to_s.match?(/Postgres|recv|connect|read/) }
      refute_match(/Postgres/, strand.waits_for)
      gate.push(true)
      strand.await
    end
  end
end
