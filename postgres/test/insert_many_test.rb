# frozen_string_literal: true

require "postgres_helper"

# Many rows at once, by INSERT or COPY.
# servers: all
class InsertManyTest < Minitest::Test
  include OnPool
  include NoNames

  # A name that needs quotes.
  def on_table
    on_pool do |db, machine|
      @db = db
      @name = %(Odd "#{SecureRandom.hex(4)}")
      @quoted = "\"#{@name.gsub('"', '""')}\""
      db.execute("create table #{@quoted} (id int primary key, \"Na\"\"me\" text default 'none', data bytea, l int[])")
      yield db, machine
      assert_equal db.metrics[:connections], db.metrics[:idle]
    ensure
      db.execute("drop table if exists #{@quoted}")
    end
  end

  COLUMNS = [:id, 'Na"me'].freeze

  def rows(count, from = 0) = Array.new(count) { |id| [id + from, "n#{id}"] }
  def there = @db.query("select id, \"Na\"\"me\" from #{@quoted} order by id").rows
  def insert(rows, **options) = @db.insert_many(@name, rows, columns: COLUMNS, **options)

  # By one statement, and by COPY.
  def test_any_number_of_rows
    on_table do |db|
      [0, 1, 2, 100, 101, 1000, 5000].each do |count|
        assert_equal [count, count], [insert(rows(count)), there.size]
        assert_equal rows(count), there
        db.execute("truncate #{@quoted}")
      end
    end
  end

  # Where nothing names the columns.
  def test_no_rows
    on_table do |db|
      [[], [].each, Set[], {}.each].each { |none| assert_equal 0, db.insert_many(@name, none), none.class }
      %i[copy insert].each { |by| assert_equal 0, db.insert_many(@name, [], by:) }
      assert_equal [], db.insert_many(@name, [], returning: :id)
      assert_equal 0, db.transaction { |t| t.insert_many(@name, [], on_conflict: :nothing) }
    end
  end

  def test_each_way
    on_table do
      { copy: 0, insert: 5000, auto: 10_000 }.each { |by, from| assert_equal 3000, insert(rows(3000, from), by:) }
      assert_equal 9000, there.size
    end
  end

  # It is one or the other by how many there are, and the values are the same.
  def test_values_do_not_depend_on_the_way
    on_table do |db|
      made = ->(from) { [from, "a\tb\\ \"x\" é", "\x00\\\xff".b, [1, nil, 3]] }
      columns = [:id, 'Na"me', :data, "l"]
      %i[copy insert].each_with_index { |by, id| db.insert_many(@name, [made.call(id)], columns:, by:) }
      assert_equal([made.call(0), made.call(1)], db.query("select * from #{@quoted} order by id").rows)
    end
  end

  JSONS = [[1, { "a" => nil }], [], {}, { "a" => [Postgres::Json.new([1])] }, Set[1, "x"], '{"text": 1}', :"7", 5, 1.5,
           10**20, 1r / 4, BigDecimal("1.50"), nil, "[1]".b, Postgres::Json.new("x"), Postgres::Json.new(nil), Postgres::Json.new([2]),
           [Postgres::Json.new(3)]].freeze

  def with_json_table
    on_pool do |db|
      table = "json_#{SecureRandom.hex(6)}"
      db.script("create domain #{table}_own as jsonb; create table #{table} (id int, way text, one jsonb, other json, " \
                "own #{table}_own, many jsonb[], l int[])")
      yield db, table
    ensure
      db.script("drop table if exists #{table}; drop domain if exists #{table}_own")
    end
  end

  # A column of json has the same, whichever way a value takes.
  def test_json_does_not_depend_on_the_way
    with_json_table do |db, table|
      %i[insert copy].each do |by|
        rows = JSONS.each_with_index.map { |value, id| [id, by, value, value, value, [{ "a" => 1 }], [id]] }
        assert_equal rows.size, db.insert_many(table, rows, columns: %i[id way one other own many l], by:)
      end
      select = "select one, other::jsonb, own, many, l from #{table} where way = $1 order by id"
      inserted, copied = %w[insert copy].map { |by| db.query(select, by).rows }
      assert_equal inserted, copied
      first = [[1, { "a" => nil }], [], {}, { "a" => [[1]] }, [1, "x"], { "text" => 1 }, 7, 5, 1.5]
      assert_equal first, inserted.map(&:first).first(9)
      assert_equal [[1], "x", nil, [2], [3]], inserted.map(&:first).last(5)
    end
  end

  def test_json_does_not_depend_on_the_number_of_rows
    with_json_table do |db, table|
      [1, 200].each do |count|
        [{}, { returning: :one }].each { |options| db.insert_many(table, Array.new(count) { { one: [1, 2] } }, **options) }
      end
      assert_equal [[[1, 2]]], db.query("select distinct one from #{table}").rows
    end
  end

  def test_what_makes_no_json
    with_json_table do |db, table|
      deep = 200.times.inject(1) { |inner, _| { "a" => inner } }
      [deep, { "a" => Float::NAN }, Postgres::Json.new("\xff")].each do |value|
        error = assert_raises(Postgres::InvalidRow) { db.insert_many(table, [[value]], columns: :one, by: :copy) }
        assert_equal [1, "one"], [error.row, error.column]
        assert_match(/cannot be had as json/, error.message)
        assert_match(/cannot be had as json/, assert_raises(Ringspun::UsageError) { db.query("select $1", value) }.message)
      end
    end
  end

  def test_lists_of_columns_that_have_none
    on_table do
      [{ on_conflict: { by: [] } }, { on_conflict: { by: nil } }, { returning: [] }].each do |options|
        error = assert_raises(Ringspun::UsageError) { insert(rows(1), **options) }
        assert_match(/\A#{options.keys.first}: expected/, error.message)
      end
    end
  end

  def test_hashes
    on_table do |db|
      assert_equal 2, db.insert_many(@name.to_sym, [{ id: 1, 'Na"me' => "a" }, { "id" => 2, 'Na"me': "b" }])
      assert_equal 1, db.insert_many(@name, [{ id: 3 }])
      assert_equal 300, db.insert_many(@name, Array.new(300) { |id| { id: id + 10 } })
      assert_equal [[1, "a"], [2, "b"], [3, "none"]], there.first(3)
    end
  end

  WRONG_ROWS = {
    [1] => [/\Arow 2: has 1 values, and there are 2 columns/, nil], [1, 2, 3] => [/\Arow 2: has 3 values/, nil],
    { id: 1 } => [/\Arow 2, column Na"me: lacks Na"me\z/, 'Na"me'],
    { id: 1, 'Na"me': 2, x: 3 } => [/\Arow 2, column x: has x beside the columns\z/, "x"],
    { id: 1, "id" => 2 } => [/lacks Na"me/, 'Na"me'], "text" => [/\Arow 2: is of String/, nil],
    nil => [/\Arow 2: is of NilClass/, nil]
  }.freeze

  def test_rows_that_differ
    on_table do
      WRONG_ROWS.each do |wrong, (message, column)|
        %i[copy insert].each do |by|
          [[[5, "x"], wrong], [[5, "x"], wrong].each_entry, [[5, "x"], wrong].lazy].each do |given|
            error = assert_raises(Ringspun::Postgres::InvalidRow) { insert(given, by:) }
            assert_match message, error.message
            assert_equal [2, column], [error.row, error.column]
          end
        end
      end
      assert_empty there
    end
  end

  def test_enumerators
    on_table do
      assert_equal 5000, insert((0...5000).lazy.map { |id| [id, "x"] })
      assert_equal 0, insert([].lazy)
      %i[copy insert].each do |by|
        failing = Enumerator.new do |them|
          rows(5000, 10_000).each { |row| them << row }
          raise KeyError, "no more"
        end
        assert_raises(KeyError) { insert(failing, by:) }
        assert_raises(KeyError) { @db.transaction { |t| t.insert_many(@name, failing, columns: COLUMNS, by:) } }
      end
      assert_equal 5000, there.size
    end
  end

  # A transaction goes on without what was inserted in part.
  def test_a_part_is_taken_back_in_a_transaction
    on_table do |db|
      failing = Enumerator.new do |them|
        rows(5000).each { |row| them << row }
        raise KeyError, "no more"
      end
      db.transaction do |t|
        t.insert_many(@name, rows(1, 9000), columns: COLUMNS)
        assert_raises(KeyError) { t.insert_many(@name, failing, columns: COLUMNS, by: :insert) }
      end
      assert_equal [9000], there.map(&:first)
    end
  end

  def test_conflicts
    on_table do
      insert(rows(3))
      assert_raises(Ringspun::Postgres::UniqueViolation) { insert(rows(3)) }
      assert_equal 2, insert(rows(5), on_conflict: :nothing)
      assert_equal 5, insert(Array.new(5) { |id| [id, "new"] }, on_conflict: { by: :id })
      assert_equal 5, insert(Array.new(5) { |id| [id, "newer"] }, on_conflict: { by: ["id"], update: ['Na"me'] })
      assert_equal 2500, insert(rows(2505), on_conflict: :nothing)
      assert_equal ["newer"] * 5, there.first(5).map(&:last)
    end
  end

  def test_returning
    on_table do
      assert_equal [[7, "n0"]], insert(rows(1, 7), returning: COLUMNS).map(&:to_a)
      assert_equal (100...3100).to_a, insert(rows(3000, 100), returning: :id).map { |row| row[:id] }
      assert_equal [5, "x", nil, nil], insert([[5, "x"]], returning: :all).first.to_a
      assert_empty insert([], returning: :id)
    end
  end

  # As COPY has it in any case.
  def test_identity_columns
    on_table do |db|
      db.execute("alter table #{@quoted} add column n int generated always as identity")
      [1, 500].each { |count| db.insert_many(@name, Array.new(count) { |n| { id: (count * 10) + n, n: n } }) }
      assert_equal [0, 0], db.query("select n from #{@quoted} where id in (10, 5000)").rows.flatten
    end
  end

  def test_names_of_tables
    on_table do |db|
      [["public", @name], "public.#{@name}", [:public, @name.to_sym]].each_with_index do |name, id|
        assert_equal 1, db.insert_many(name, [{ id: }])
      end
      assert_raises(Ringspun::Postgres::UndefinedTable) { db.insert_many("x\"; drop table #{@quoted}; --", [{ id: 1 }]) }
      assert_raises(Ringspun::Postgres::UndefinedColumn) { db.insert_many(@name, [{ 'id") values (1); --': 1 }]) }
      assert_equal 3, there.size
    end
  end

  WRONG = {
    ->(db) { db.insert_many("", [{ id: 1 }]) } => /name of a table/,
    ->(db) { db.insert_many(nil, [{ id: 1 }]) } => /name of a table/,
    ->(db) { db.insert_many("a..b", [{ id: 1 }]) } => /name of a table or column/,
    ->(db) { db.insert_many("t", [{ "a\0" => 1 }]) } => /name of a table or column/,
    ->(db) { db.insert_many("t", 5) } => /expected rows/,
    ->(db) { db.insert_many("t", { id: 1 }) } => /not as a Hash/, ->(db) { db.insert_many("t", [[1]]) } => /give columns:/,
    ->(db) { db.insert_many("t", [[1]].lazy) } => /needs columns:/,
    ->(db) { db.insert_many("t", [{}]) } => /there are no columns/,
    ->(db) { db.insert_many("t", [{ a: 1, "a" => 2 }]) } => /named twice/,
    ->(db) { db.insert_many("t", [{ a: 1 }], by: :magic) } => /by: expected one of/,
    ->(db) { db.insert_many("t", [{ a: 1 }], by: :copy, returning: :a) } => /neither on_conflict: nor returning:/,
    ->(db) { db.insert_many("t", [{ a: 1 }], on_conflict: "x") } => /on_conflict: expected/,
    ->(db) { db.insert_many("t", [{ a: 1 }], on_conflict: { for: :a }) } => /on_conflict: expected/
  }.freeze

  # Nobody asks a server.
  def test_calls_that_make_no_sense
    db = Ringspun::Postgres.connect("postgres://nobody@localhost:1/none")
    WRONG.each { |call, message| assert_match message, assert_raises(Ringspun::UsageError) { call.call(db) }.message }
  ensure
    db.close
  end
end
