# frozen_string_literal: true

# Strands and threads that write while connections end under them, and what must have become of each row.
# For classes that include OnPool.
module Outages
  # What each who has written was told of it.
  class Ledger
    def initialize
      @lock = Thread::Mutex.new
      @told = { kept: [], in_doubt: [], refused: [] }
    end

    # @param rows [Array<Integer>] that the block inserts, all of them or none
    # @return [Boolean] they are there
    def enter(rows)
      yield
      note(:kept, rows)
    rescue Ringspun::Postgres::ConnectionLost => error
      note(error.in_doubt? ? :in_doubt : :refused, rows)
    rescue Ringspun::TimeoutError
      note(:in_doubt, rows)
    rescue Ringspun::Postgres::ConnectError, Ringspun::Postgres::OperatorIntervention
      note(:refused, rows)
    end

    # @param found [Array<Integer>] what is in the table
    # @return [Array<String>] what is not as it must be
    def faults(found)
      wrong = @told[:kept].flatten.difference(found).map { |row| "#{row} was kept, and is not there" }
      wrong += @told[:refused].flatten.intersection(found).map { |row| "#{row} was refused, and is there" }
      halves = @told[:in_doubt].reject { |rows| [[], rows].include?(rows.intersection(found)) }
      wrong + halves.map { |rows| "of #{rows.inspect} there is only a part" } +
        found.difference(@told.values.flatten).map { |row| "nobody has written #{row}" }
    end

    private

    def note(outcome, rows)
      @lock.synchronize { @told[outcome] << rows }
      outcome == :kept
    end
  end

  STRANDS = 15
  THREADS = 3

  private

  # Runs the block while many write. Afterwards each must write once more, of itself, and nothing may be wrong or left.
  def assert_survives(pool, machine)
    look do |other|
      with_table(other) do |table|
        @ledger, @over = Ledger.new, false
        strands = Array.new(STRANDS) { |number| machine.spin { write_on(pool, table, number) } }
        threads = Array.new(THREADS) { |number| Thread.new { write_on(pool, table, STRANDS + number) } }
        yield
        @over = true
        machine.await(strands)
        threads.each(&:value)
        assert_empty @ledger.faults(ids(other, table))
        assert_equal pool.metrics[:connections], pool.metrics[:idle]
      end
    end
    pool.close
    assert_nobody_left(machine)
  end

  # Each has numbers of its own, so that a row that is written twice violates its key.
  def write_on(pool, table, writer)
    (1..).each do |turn|
      last = @over
      row = (turn * (STRANDS + THREADS)) + writer
      way = WAYS[turn % WAYS.size]
      rows = %i[batch transaction].include?(way) ? [row, -row] : [row]
      insert = "insert into #{table} values ($1) returning id"
      written = @ledger.enter(rows) { assert_equal rows, __send__("by_#{way}", pool, insert, rows) }
      break if last && written

      sleep 0.001 # a server that is away would hear of nothing else
    end
  end

  WAYS = %i[query batch transaction session stream hurry].freeze

  def by_query(pool, insert, rows) = [pool.query_value(insert, *rows)]
  def by_batch(pool, insert, rows) = pool.batch { |batch| rows.each { |row| batch.query(insert, row) } }.map(&:value)
  def by_transaction(pool, insert, rows) = pool.transaction { |t| rows.map { |row| t.query_value(insert, row) } }
  def by_session(pool, insert, rows) = pool.session { |session| [session.query_value(insert, *rows)] }

  def by_stream(pool, insert, rows)
    pool.transaction do |transaction|
      assert_equal 1500, transaction.stream("select generate_series(1, 1500)").count
      [transaction.query_value(insert, *rows)]
    end
  end

  # The last try of each has all the time that it needs.
  def by_hurry(pool, insert, rows) = [pool.query_value(insert, *rows, timeout: @over ? nil : rows.first % 7 * 0.001)]
end
