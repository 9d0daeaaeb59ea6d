# frozen_string_literal: true

require "postgres_helper"
require_relative "connect/secured_postgres"
require "stringio"

# COPY in and out, in each format.
# servers: all
module CopyTests
  include OnPool
  include NoNames

  TYPED = "id int primary key, name text, at timestamptz, price float8, data jsonb, day date, flag bool"
  COLUMNS = "id, name, at, price, data, day, flag"
  ROWS = [
    [1, "a\tb\nc\\.\r\"quoted\" 'x', ünï", Time.at(1_700_000_000, 123_456, :usec).utc, 1.5, { "a" => [1, nil] },
     Date.new(2024, 2, 29, Date::GREGORIAN), true],
    [2, "", Time.at(-62_135_596_800).utc, -Float::INFINITY, [1, "x"], Date.new(1, 1, 1, Date::GREGORIAN), false],
    [-3, nil, nil, nil, nil, nil, nil],
    [4, "\\N", Time.at(0).utc, 1e-300, "a \"text\"", nil, true],
    [5, "\\.", nil, 0.1, 5, nil, nil]
  ].each(&:freeze).freeze

  def with_copied(**options)
    on_pool(**options) do |db, machine|
      @db = db
      @table = "copied_#{SecureRandom.hex(6)}"
      db.execute("create table #{@table} (#{TYPED})")
      yield db, machine
      assert_equal [0, 1], [db.metrics[:waiting], db.metrics[:connections] - db.metrics[:idle] + 1]
    ensure
      db.execute("drop table if exists #{@table}")
    end
  end

  # A row of it is a line without anything.
  def test_a_table_without_columns
    with_copied do |db|
      db.execute("create table #{@table}_none ()")
      assert_equal 2, db.copy_in("copy #{@table}_none from stdin (#{format})", [[], []])
      seen = []
      assert_equal 2, db.copy_out("copy #{@table}_none to stdout (#{format})") { |row| seen << row }
      assert_equal [[], []], seen
    ensure
      db.execute("drop table if exists #{@table}_none")
    end
  end

  def into(more = nil) = "copy #{@table} (#{COLUMNS}) from stdin (#{[format, *more].join(", ")})"
  def out(more = nil) = "copy (select #{COLUMNS} from #{@table} order by id) to stdout (#{[format, *more].join(", ")})"
  def format = "format #{self.class::FORMAT}"

  def in_table = @db.query("select #{COLUMNS} from #{@table} order by id").rows

  # As the server has it: a jsonb that is text is JSON already.
  def sorted(rows = rows_in) = rows.sort_by(&:first)

  def rows_in
    ROWS.map { |row| row[4].is_a?(String) ? row.dup.tap { |other| other[4] = JSON.generate(row[4]) } : row }
  end

  def count = @db.query_value("select count(*) from #{@table}")

  def assert_nothing_left(expected = 0)
    assert_equal expected, count
    assert_equal @db.metrics[:connections], @db.metrics[:idle]
    assert_equal 5, @db.copy_in(into, rows_in.map { |row| [row[0] + 1_000_000, *row[1..]] })
  end

  def test_rows_of_values_come_back_as_they_went_in
    with_copied do |db|
      assert_equal ROWS.size, db.copy_in(into, rows_in)
      assert_equal sorted(ROWS), in_table
      rows = []
      assert_equal ROWS.size, db.copy_out(out) { |row| rows << row }
      assert_equal sorted(ROWS), rows
    end
  end

  def test_a_block_gives_rows
    with_copied do |db|
      copied = db.copy_in(into) do |copy|
        rows_in.each { |row| assert_same copy, copy << row }
        assert_equal ROWS.size, copy.rows
      end
      assert_equal [ROWS.size, sorted(ROWS)], [copied, in_table]
    end
  end

  def test_no_rows_at_all
    with_copied do |db|
      assert_equal 0, db.copy_in(into, [])
      assert_equal 0, db.copy_in(into) { nil }
      assert_empty db.copy_out(out).to_a
    end
  end

  # What goes out as bytes goes in again, cut anywhere.
  def test_bytes
    with_copied do |db|
      db.copy_in(into, rows_in)
      pieces = []
      assert_equal ROWS.size, db.copy_out(out, as: :bytes) { |bytes| pieces << bytes }
      bytes = pieces.join
      [[bytes], bytes.bytes.map(&:chr), [bytes.byteslice(0, 9), "", bytes.byteslice(9..)]].each do |cut|
        db.execute("truncate #{@table}")
        assert_equal ROWS.size, db.copy_in(into, cut)
        assert_equal sorted(ROWS), in_table
      end
    end
  end

  def test_ios_and_streams
    with_copied do |db|
      db.copy_in(into, rows_in)
      bytes = StringIO.new("".b)
      db.copy_out(out, bytes)
      ways = { io: -> { IO.pipe }, stream: -> { streams } }
      ways.each_value do |pair|
        reader, writer = pair.call
        db.execute("truncate #{@table}")
        writer.write(bytes.string)
        writer.close
        assert_equal ROWS.size, db.copy_in(into, reader)
        assert_equal sorted(ROWS), in_table
      ensure
        reader&.close
      end
    end
  end

  def streams = UNIXSocket.pair.map { |socket| Ringspun::Stream.new(socket) }

  def test_out_to_a_stream
    with_copied do |db, machine|
      db.copy_in(into, rows_in)
      expected = db.copy_out(out, as: :bytes).to_a.join
      reader, writer = streams
      reading = machine.spin { reader.read }
      assert_equal ROWS.size, db.copy_out(out, writer)
      writer.close
      assert_equal expected, reading.await
      reader.close
    end
  end

  # More than is sent at once.
  def test_many_rows
    with_copied do |db|
      many = many_rows(20_000)
      seen = []
      assert_equal 20_000, db.copy_in(into, many, progress: ->(bytes, rows) { seen << [bytes, rows] })
      assert_equal seen.sort, seen
      assert_equal 20_000, seen.last.last
      assert_operator seen.size, :>, 5
      assert_operator seen.each_cons(2).map { |(before, _), (after, _)| after - before }.max, :<, 100_000
      seen.clear
      assert_equal many, db.copy_out(out, progress: ->(bytes, rows) { seen << [bytes, rows] }).to_a
      assert_operator seen.last.last, :>=, 20_000 # with a header
      assert_operator seen.size, :>, 5
    end
  end

  def many_rows(count) = Array.new(count) { |id| [id, "name of #{id}", Time.at(id).utc, id / 2.0, nil, nil, id.even?] }

  def test_rows_about_the_size_of_a_message
    with_copied do |db|
      [65_535, 65_536, 65_537, 131_071, 1_000_000, 5_000_000].each_with_index do |size, id|
        db.copy_in(into, [[id, "é\n" * (size / 3), nil, nil, nil, nil, nil], [id + 100, "x", nil, nil, nil, nil, nil]])
        assert_equal "é\n" * (size / 3), db.query_value("select name from #{@table} where id = $1", id)
        db.copy_out(out) { |row| assert_equal "é\n" * (size / 3), row[1] if row[0] == id }
      end
    end
  end

  # --- ways to end ---

  LEAVING = {
    raise: ->(_, _) { raise "left" }, break: nil, throw: ->(_, _) { throw :left },
    timeout: ->(machine, _) { machine.sleep(60) }, stop: ->(_, _) { raise StopIteration }
  }.freeze

  def test_a_block_that_is_left_takes_its_rows_along
    with_copied do |db, machine|
      [0, 1, 3000].each do |rows|
        leave_by_all(machine) do |leave|
          db.copy_in(into) do |copy|
            many_rows(rows).each { |row| copy << row }
            leave ? leave.call : break
          end
        end
      end
      assert_nothing_left
    end
  end

  def test_a_block_that_is_left_stops_the_rows_that_come_out
    with_copied do |db, machine|
      [1, 100_000_000].each do |rows|
        leave_by_all(machine) do |leave|
          db.copy_out("copy (select generate_series(1, #{rows}), 'text') to stdout (#{format})") { leave ? leave.call : break }
        end
      end
      await(machine) { running(db).none? { |sql| sql.start_with?("copy") } }
      assert_nothing_left
    end
  end

  # @yieldparam leave [#call, nil] nil: by break
  def leave_by_all(machine, &)
    assert_raises(RuntimeError) { yield -> { raise "left" } }
    catch(:left) { yield -> { throw :left } }
    yield nil
    assert_raises(Ringspun::TimeoutError) { machine.timeout(0.02) { yield -> { machine.sleep(60) } } } # must pass
    strand = machine.spin { yield -> { machine.sleep(60) } }
    machine.yield
    strand.terminate
    assert_raises(Ringspun::TerminatedError) { strand.await }
  end

  def test_an_enumerator_that_raises
    with_copied do |db|
      [0, 5000].each do |rows|
        lazy = Enumerator.new do |them|
          many_rows(rows).each { |row| them << row }
          raise KeyError, "no more"
        end
        assert_raises(KeyError) { db.copy_in(into, lazy) }
      end
      assert_nothing_left
    end
  end

  def test_in_a_transaction_and_in_a_session
    with_copied do |db|
      db.transaction do |t|
        assert_equal 5, t.copy_in(into, rows_in)
        assert_equal sorted(ROWS), t.copy_out(out).to_a
        assert_raises(RuntimeError) { t.transaction { |inner| inner.copy_in(into) { raise "left" } } }
        assert_equal 5, t.query_value("select count(*) from #{@table}")
        raise Ringspun::UsageError, "back"
      end
    rescue Ringspun::UsageError => error
      assert_equal ["back", 0], [error.message, count]
      db.session do |s|
        s.copy_in(into, rows_in)
        assert_equal sorted(ROWS), s.copy_out(out).to_a
        s.copy_out(out) { break }
        assert_raises(RuntimeError) { s.copy_in(into) { raise "left" } }
        assert_equal 5, s.query_value("select count(*) from #{@table}")
      end
    end
  end

  # It is the transaction's connection that copies, and not another one.
  def test_what_is_asked_meanwhile
    with_copied do |db|
      db.transaction do |t|
        asked = [-> { t.query("select 1") }, -> { t.copy_in(into, []) }, -> { t.copy_out(out) { flunk } },
                 -> { t.stream("select 1") { flunk } }]
        t.copy_in(into) do |copy|
          asked.each { |ask| assert_match(/in the midst of a COPY/, assert_raises(Ringspun::UsageError, &ask).message) }
          rows_in.each { |row| copy << row }
          assert_equal 1, db.query_value("select 1")
        end
        t.copy_out(out) { asked.each { |ask| assert_raises(Ringspun::UsageError, &ask) } }
      end
      assert_equal sorted(ROWS), in_table
    end
  end

  def test_what_is_kept_of_it
    with_copied do |db|
      kept = nil
      db.copy_in(into) { |copy| kept = copy }
      assert_match(/this COPY has ended/, assert_raises(Ringspun::UsageError) { kept << rows_in.first }.message)
    end
  end

  def test_a_thread_that_is_killed
    with_pool(max: 1) do |db| # or a slow statement may bring another connection
      @table = "copied_#{SecureRandom.hex(6)}"
      db.execute("create table #{@table} (#{TYPED})")
      there = Thread::Queue.new
      [-> { db.copy_in(into) { |copy| (copy << rows_in.first) && there.push(1) && sleep } },
       -> { db.copy_out("copy (select generate_series(1, 100000000)) to stdout") { there.push(1) && sleep } }].each do |copy|
        thread = Thread.new(&copy)
        there.pop
        thread.kill.join
        assert_equal [0, 1, 1], [db.query_value("select count(*) from #{@table}"), *db.metrics.values_at(:connections, :idle)]
      end
    ensure
      db.execute("drop table if exists #{@table}")
    end
  end

  def test_a_plain_thread
    with_pool do |db|
      @table = "copied_#{SecureRandom.hex(6)}"
      db.execute("create table #{@table} (#{TYPED})")
      Thread.new do
        assert_equal 5000, db.copy_in(into, many_rows(5000))
        assert_equal many_rows(5000), db.copy_out(out).to_a
        assert_raises(Ringspun::Postgres::UniqueViolation) { db.copy_in(into, many_rows(1)) }
        assert_raises(RuntimeError) { db.copy_in(into) { raise "left" } }
        db.copy_out(out) { break }
        assert_equal [5000, 1, 1], [db.query_value("select count(*) from #{@table}"), *db.metrics.values_at(:connections, :idle)]
      end.join
    ensure
      db.execute("drop table if exists #{@table}")
    end
  end

  # --- wrong rows ---

  WRONG = { [Object.new, "name"] => ["id", /\Arow 3, column id: /], [7, "a\0b"] => ["name", /\Arow 3, column name: has a NUL/],
            [7, "\xff"] => ["name", /no valid UTF-8/], [7, "\xff".b] => ["name", /no text in UTF-8/],
            [7, "a", nil, nil] => [nil, /\Arow 3: has 9 values, and there are 7 columns/] }.freeze

  def test_a_value_that_is_none_is_named
    with_copied do |db|
      WRONG.each do |wrong, (column, message)|
        error = assert_raises(Ringspun::Postgres::InvalidRow) { db.copy_in(into, [*many_rows(2), wrong + ([nil] * 5)]) }
        assert_kind_of Ringspun::Postgres::CopyRowError, error
        assert_equal [3, column], [error.row, error.column]
        assert_match message, error.message
      end
      assert_nothing_left
    end
  end

  def test_a_row_that_the_server_refuses_is_named
    with_copied do |db|
      error = assert_raises(Ringspun::Postgres::UniqueViolation) { db.copy_in(into, [*many_rows(3000), many_rows(8)[7]]) }
      assert_kind_of Ringspun::Postgres::CopyRowError, error
      assert_equal [3001, nil], [error.row, error.column]
      assert_match(/\Arow 3001: duplicate key/, error.message)
      assert_nothing_left
    end
  end

  # After which no more are taken.
  def test_a_row_that_the_server_refuses_long_before_the_last
    with_copied do |db|
      given = 0
      endless = Enumerator.new do |them|
        loop { them << [(given += 1) == 5 ? 1 : given, "x" * 100, nil, nil, nil, nil, nil] }
      end
      assert_raises(Ringspun::Postgres::UniqueViolation) { db.copy_in(into, endless) }
      assert_operator given, :<, 1_000_000
      assert_nothing_left
    end
  end

  def test_a_server_that_says_something_of_each_row
    with_copied do |db|
      db.execute("create function f_#{@table}() returns trigger language plpgsql as " \
                 "$$ begin raise warning '%', repeat('x', 1000); return new; end $$")
      db.execute("create trigger t before insert on #{@table} for each row execute function f_#{@table}()")
      assert_equal 5000, db.copy_in(into, many_rows(5000))
      assert_equal 5000, count
    ensure
      db.execute("drop table #{@table}")
      db.execute("drop function f_#{@table}")
      db.execute("create table #{@table} ()")
    end
  end

  # The server reads nothing, and no more is kept for it than a few messages.
  def test_no_more_is_given_than_the_server_reads
    with_copied do |db, machine|
      db.execute("create function f_#{@table}() returns trigger language plpgsql as " \
                 "$$ begin #{LOCK.sub("select", "perform")}; return new; end $$")
      db.execute("create trigger t before insert on #{@table} for each row execute function f_#{@table}()")
      given = 0
      holding(LOCK) do
        endless = Enumerator.new { |them| loop { them << [given += 1, "x" * 1000, nil, nil, nil, nil, nil] } }
        error = assert_raises(Ringspun::TimeoutError) { db.copy_in(into, endless, timeout: 1) } # must pass
        assert_match(/nothing of the COPY takes effect/, error.message)
        await(machine) { running(db).none? { |sql| sql.start_with?("copy") } }
      end
      assert_operator given, :<, 5000
      assert_equal 0, count
    ensure
      db.execute("drop table #{@table}")
      db.execute("drop function f_#{@table}")
      db.execute("create table #{@table} ()")
    end
  end

  # Neither does it begin.
  def test_a_table_that_is_locked
    with_copied do |db, machine|
      look do |other|
        other.transaction do |t|
          t.query("lock table #{@table}")
          assert_raises(Ringspun::TimeoutError) { db.copy_in(into, rows_in, timeout: 0.3) } # must pass
          assert_raises(Ringspun::TimeoutError) { db.copy_out(out, timeout: 0.3) { flunk } } # must pass
          await(machine) { running(db).none? { |sql| sql.start_with?("copy") } }
        end
      end
      assert_nothing_left
    end
  end

  def test_the_connection_is_ended_meanwhile
    with_copied do |db, machine|
      error = assert_raises(Ringspun::Postgres::ConnectionLost) do
        db.copy_in(into) do |copy|
          copy << many_rows(1).first
          look { |other| end_copies(other) }
          loop do
            copy << many_rows(1).first
            machine.yield
          end
        end
      end
      refute_predicate error, :in_doubt?
      assert_raises(Ringspun::Postgres::ConnectionLost) do
        db.copy_out("copy (select repeat('x', 1000) from generate_series(1, 1000000)) to stdout") do
          look { |other| end_copies(other) } if running(db).any?
        end
      end
      assert_equal 0, count
      assert_equal 5, db.copy_in(into, rows_in)
    end
  end

  def end_copies(client)
    client.query("select pg_terminate_backend(pid) from pg_stat_activity where query ilike 'copy %' and pid <> pg_backend_pid()")
  end
end

class CopyOverTLSTest < Minitest::Test
  include SecuredPostgres

  def root = "#{SecuredPostgres.server.folder}/root.crt"

  def test_both_ways
    rows = Array.new(30_000) { |id| [id, "text of #{id}"] }
    Ringspun.run do
      db = Ringspun::Postgres.connect(**secured_tcp, user: "trusted", sslmode: "require", sslrootcert: root)
      db.execute("create table over_tls (id int, text text)")
      assert_equal [30_000, rows], [db.copy_in("copy over_tls from stdin", rows), db.copy_out("copy over_tls to stdout").to_a]
      db.copy_out("copy (select generate_series(1, 100000000)) to stdout") { break }
      assert_raises(RuntimeError) { db.copy_in("copy over_tls from stdin") { |copy| copy << [1, "x"] && raise("left") } }
      assert_equal [30_000, 1], [db.query_value("select count(*) from over_tls"), db.metrics[:idle]]
    ensure
      db&.execute("drop table if exists over_tls")
      db&.close
    end
  end
end

class CopyOfTextTest < Minitest::Test
  include CopyTests

  FORMAT = "text"
end

class CopyOfCsvTest < Minitest::Test
  include CopyTests

  FORMAT = "csv"
end

class CopyOfBinaryTest < Minitest::Test
  include CopyTests

  FORMAT = "binary"
end
