# frozen_string_literal: true

# Random rows, copied in and out in random formats and ways. What the server has then is compared with what it has of the same
# rows that the gem pg has inserted, each value as a text that is written here, plainly.
class PostgresCopies
  # Of a column: how to make a value, and how to write it.
  Type = Data.define(:name, :make, :write)

  PIECES = ["", "a", "\t", "\n", "\r", "\r\n", "\\", "\\N", "\\.", "\\t", "\"", "\"\"", "'", ",", ";", "|", "é", "日本", "😀", " ",
            "NULL", "null", "\b", "\f", "\v", "{", "}", "x" * 100, "\\x41", "0", "t"].freeze

  TEXT = ->(random) { Array.new(random.rand(5)) { PIECES.sample(random:) }.join }
  BYTES = ->(random) { random.rand(3).zero? ? TEXT.call(random).b : random.bytes(random.rand(20)) }
  TIME = ->(random) { Time.at(random.rand(-60_000_000_000..200_000_000_000), random.rand(1_000_000), :usec).utc }
  DATE = ->(random) { Date.new(2000, 1, 1, Date::GREGORIAN) + random.rand(-700_000..2_000_000) }
  FLOATS = [0.0, -0.0, 1.5, 1e308, -5e-324, Float::INFINITY, -Float::INFINITY, 0.1].freeze
  quoted = ->(text) { "\"#{text.gsub(/["\\]/) { |byte| "\\#{byte}" }}\"" }
  array = ->(write) { ->(values) { "{#{values.map { |value| value.nil? ? "NULL" : write.call(value) }.join(",")}}" } }
  list = ->(make) { ->(random) { Array.new(random.rand(4)) { random.rand(4).zero? ? nil : make.call(random) } } }
  int = lambda do |bits|
    all = -(1 << (bits - 1))...(1 << (bits - 1))
    ->(random) { random.rand(random.rand(2).zero? ? -9..9 : all) }
  end
  json = ->(random) { { TEXT.call(random).delete("\0") => [random.rand(9), nil, TEXT.call(random), true, 0.5] } }
  hex = ->(bytes) { "\\x#{bytes.unpack1("H*")}" }

  # Of those in BINARY a copy in the binary format can have values.
  BINARY = [
    Type.new("int2", int.call(16), :to_s.to_proc), Type.new("int4", int.call(32), :to_s.to_proc),
    Type.new("int8", int.call(64), :to_s.to_proc), Type.new("text", TEXT, :itself.to_proc),
    Type.new("varchar", TEXT, :itself.to_proc), Type.new("bytea", BYTES, hex),
    Type.new("bool", ->(random) { random.rand(2).zero? }, :to_s.to_proc),
    Type.new("float8", ->(random) { random.rand(2).zero? ? FLOATS.sample(random:) : random.rand * 1e10 }, :to_s.to_proc),
    Type.new("timestamptz", TIME, ->(time) { time.strftime("%Y-%m-%d %H:%M:%S.%6N+00") }),
    Type.new("timestamp", TIME, ->(time) { time.strftime("%Y-%m-%d %H:%M:%S.%6N") }),
    Type.new("date", DATE, :iso8601.to_proc), Type.new("jsonb", json, JSON.method(:generate)),
    Type.new("uuid", ->(random) { random.bytes(16).unpack("H8H4H4H4H12").join("-") }, :itself.to_proc)
  ].freeze
  ALL = [
    *BINARY,
    Type.new("numeric", ->(random) { BigDecimal("#{random.rand(-99..99)}.#{random.rand(1000)}") }, ->(value) { value.to_s("F") }),
    Type.new("text[]", list.call(TEXT), array.call(quoted)),
    Type.new("int4[]", list.call(int.call(32)), array.call(:to_s.to_proc)),
    Type.new("bytea[]", list.call(BYTES), array.call(->(bytes) { quoted.call(hex.call(bytes)) }))
  ].freeze

  # How rows are written: the options of the statement.
  def self.formats(random)
    delimiter = ["E'\\t'", "','", "'|'", "'-'", "' '", "':'"].sample(random:)
    text = "delimiter #{delimiter}, null #{["'\\N'", "'NULL'", "'x'", "'0'"].sample(random:)}"
    quote, escape = [["'\"'", "'\"'"], ["''''", "'\"'"], ["'\"'", "'\\'"], ["'|'", "'|'"]].sample(random:)
    null = ["''", "'NULL'", "'0'"].sample(random:)
    csv = "delimiter #{["','", "';'", "E'\\t'"].sample(random:)}, null #{null}, quote #{quote}, escape #{escape}"
    ["format text", "format text, #{text}", "format csv", "format csv, #{csv}", "format binary"].sample(random:)
  end

  def initialize(client, server)
    @client = client
    @server = server
  end

  # @return [String, nil] what is wrong
  def failure(random)
    format = self.class.formats(random)
    types = Array.new(1 + random.rand(6)) { (format == "format binary" ? BINARY : ALL).sample(random:) }
    rows = Array.new(random.rand(30)) { types.map { |type| random.rand(6).zero? ? nil : type.make.call(random) } }
    rows.push(*Array.new(2) { |more| [big(random, more), *rows.first.drop(1)] }) if rows.any? && types.first.name == "text"
    told = with_tables(types) { |ours, theirs| wrong(random, ours, theirs, types, rows, format) }
    told && "#{format}, #{types.map(&:name)}: #{told}"
  end

  private

  # About the size of a message.
  def big(random, more) = "ü\t" * ((65_536 / 3) - 2 + random.rand(4) + more)

  def with_tables(types)
    names = %w[ours theirs].map { |name| "#{name}_#{SecureRandom.hex(4)}" }
    columns = types.each_with_index.map { |type, place| "c#{place} #{type.name}" }.join(", ")
    names.each { |name| @server.exec("create unlogged table #{name} (n serial, #{columns})") }
    yield(*names)
  ensure
    names.each { |name| @server.exec("drop table if exists #{name}") }
  end

  def wrong(random, ours, theirs, types, rows, format)
    list = Array.new(types.size) { |place| "c#{place}" }.join(", ")
    insert(theirs, types, rows, list)
    copied = copy_in(random, "copy #{ours} (#{list}) from stdin (#{format})", rows)
    return "#{copied} rows instead of #{rows.size}" unless copied == rows.size

    different = difference(ours, theirs, types) and return "the server has #{different}"

    # In text, a server writes a value that reads as NULL as it is.
    format = format.sub(/null '\w+'/, "null '\\N'") if format.start_with?("format text")
    out_differs(random, "copy (select #{list} from #{ours} order by n) to stdout (#{format})", ours, list) ||
      again_differs(ours, theirs, types, list, format)
  end

  def insert(table, types, rows, list)
    places = Array.new(types.size) { |place| "$#{place + 1}" }.join(", ")
    rows.each do |row|
      @server.exec_params("insert into #{table} (#{list}) values (#{places})",
                          row.zip(types).map { |value, type| value.nil? ? nil : type.write.call(value) })
    end
  end

  def copy_in(random, sql, rows)
    case random.rand(3)
    when 0 then @client.copy_in(sql, rows)
    when 1 then @client.copy_in(sql, rows.lazy)
    else @client.copy_in(sql) { |copy| rows.each { |row| copy << row } }
    end
  end

  # As texts, for not all types can be compared.
  def difference(ours, theirs, types)
    texts = types.each_index.map { |place| "c#{place}::text" }.join(", ")
    a, b = [ours, theirs].map { |table| @server.exec("select #{texts} from #{table} order by n").values }
    at = a.zip(b).find_index { |one, other| one != other }
    at && "#{a[at].inspect[0, 300]} instead of #{b[at].inspect[0, 300]}"
  end

  # What comes out is what a query returns.
  def out_differs(random, sql, table, list)
    rows = random.rand(2).zero? ? @client.copy_out(sql).to_a : [].tap { |all| @client.copy_out(sql) { |row| all << row } }
    expected = @client.query("select #{list} from #{table} order by n").rows
    at = rows.zip(expected).find_index { |one, other| one != other } || (rows.size if rows.size != expected.size)
    at && "out comes #{rows[at].inspect[0, 300]} instead of #{expected[at].inspect[0, 300]}"
  end

  # Bytes that come out go in again.
  def again_differs(ours, theirs, types, list, format)
    pieces = @client.copy_out("copy (select #{list} from #{ours} order by n) to stdout (#{format})", as: :bytes).to_a
    @server.exec("truncate #{ours}")
    @client.copy_in("copy #{ours} (#{list}) from stdin (#{format})", pieces.join.b.scan(/.{1,1000}/mn))
    difference(ours, theirs, types)&.then { |told| "out and in again: #{told}" }
  end
end
