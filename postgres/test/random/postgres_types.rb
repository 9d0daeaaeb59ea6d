# frozen_string_literal: true

require "bigdecimal"
require "date"
require "ipaddr"
require "json"
require "ringspun/postgres"

# The types whose values are drawn: how the server reads one, and what it is in Ruby. It is read here by other code than the
# driver's, from the text that a server with settings of our own writes.
module PostgresTypes
  Interval = Ringspun::Postgres::Interval

  # @!attribute draw
  #   @return [Proc] a random number generator to a text that the server reads, whatever its settings
  # @!attribute read
  #   @return [Proc] the server's own text to the value in Ruby
  # @!attribute compared
  #   @return [String] the type as which the server compares two of them
  # @!attribute sent
  #   @return [Proc] the value in Ruby to the parameter that the guide says is one
  Type = Data.define(:name, :draw, :read, :compared, :sent) do
    def initialize(name:, draw:, read: :itself.to_proc, compared: name, sent: :itself.to_proc) = super
  end

  # One of the rare ones, or one of the others.
  def self.either(rare, usual, chance: 0.25)
    ->(random) { random.rand < chance ? rare.sample(random:) : usual.call(random) }
  end

  def self.integer(bits)
    edges = [0, -1, 1, 10, (1 << (bits - 1)) - 1, -(1 << (bits - 1))].map(&:to_s)
    either(edges, ->(random) { (random.rand(1 << bits) >> random.rand(bits)).then { |n| n - (n >> (bits - 1) << bits) }.to_s })
  end

  # Any bits are a number.
  def self.float(packed, number, edges)
    either([*edges, "NaN", "Infinity", "-Infinity", "0", "-0", "0.1", "1e15", "123456.789"],
           ->(random) { random.bytes([0].pack(packed).size).unpack1(number).to_s })
  end

  DIGITS = ->(random, most) { Array.new(random.rand(0..most)) { random.rand(10) }.join }
  DECIMAL = lambda do |random|
    "#{"-" if random.rand < 0.5}#{DIGITS.call(random, 40)}0#{".#{DIGITS.call(random, 40)}0" if random.rand < 0.7}"
  end

  CHARACTERS = ["a", "B", "7", " ", "\"", "'", "\\", ",", "{", "}", "(", "\n", "\t", "\u0001", "\u00e9", "\u20ac", "\u{1f980}",
                "NULL", "x", "\u200b", "\u00df", "$1", "%", ";"].freeze
  TEXT = either(["", "NULL", "null", "\\", "\"", "{}", "\\x00", "t", " ", "a" * 5000],
                ->(random) { Array.new(random.rand(1..12)) { CHARACTERS.sample(random:) }.join })

  BYTES = ->(random) { "\\x#{random.bytes(random.rand < 0.05 ? 5000 : random.rand(20)).unpack1("H*")}" }

  YEAR = lambda do |random, last|
    case random.rand(12)
    when 0 then -random.rand(1..4713)
    when 1 then random.rand(1..999)
    when 2 then random.rand(10_000..last)
    when 3 then random.rand(1000..9999)
    else random.rand(1850..2100)
    end
  end
  DAY = lambda do |random, last|
    year = YEAR.call(random, last)
    [format("%04d-%02d-%02d", year.abs, random.rand(1..12), random.rand(1..28)), (" BC" if year.negative?)]
  end
  CLOCK = lambda do |random|
    format("%02d:%02d:%02d", random.rand(24), random.rand(60), random.rand(60)) +
      ["", ".5", ".000001", ".999999", format(".%06d", random.rand(1_000_000))].sample(random:)
  end
  ZONES = %w[+00 +05:30 -12:34 +15:59:59 -00:00:01].freeze
  ENDS_OF_TIME = ["infinity", "-infinity", "4714-11-24 00:00:00+00 BC", "0001-12-31 23:59:59.999999+00 BC",
                  "0001-01-01 00:00:00+00", "1969-12-31 23:59:59.999999+00", "2000-01-01 00:00:00+00",
                  "9999-12-31 23:59:59.5+00", "10000-01-01 00:00:00+00", "294247-01-10 04:00:54.775807+00",
                  "294276-12-31 23:59:59.999999+00"].freeze
  TIMESTAMP = ->(random) { DAY.call(random, 294_275).insert(1, " ", CLOCK.call(random)).join }
  TIMESTAMPTZ = ->(random) { DAY.call(random, 294_275).insert(1, " ", CLOCK.call(random), ZONES.sample(random:)).join }
  ENDS_OF_DAYS = ["infinity", "-infinity", "4714-11-24 BC", "5874897-12-31", "0001-01-01", "0001-12-31 BC", "2000-02-29"].freeze

  # Months and days beside each other, each with a sign of its own.
  INTERVAL = lambda do |random|
    months, days = [random.rand(2) * 40, random.rand(2) * 2_000_000_000].map { |most| random.rand(-most..most) }
    us = random.rand(-(1 << 62)..(1 << 62)) >> random.rand(62)
    "#{months} mons #{days} days #{"-" if us.negative?}#{us.abs / 1_000_000}.#{format("%06d", us.abs % 1_000_000)} seconds"
  end

  JSON_NUMBERS = [0, -1, 2**80, 0.5, -1.25e10, 1e-7].freeze
  JSON_OBJECT = lambda do |random, depth = 0|
    case random.rand(depth > 3 ? 4 : 6)
    when 0 then [nil, true, false].sample(random:)
    when 1 then JSON_NUMBERS.sample(random:)
    when 2, 3 then TEXT.call(random)[0, 40]
    when 4 then Array.new(random.rand(4)) { JSON_OBJECT.call(random, depth + 1) }
    else Array.new(random.rand(4)) { [TEXT.call(random)[0, 40], JSON_OBJECT.call(random, depth + 1)] }.to_h
    end
  end
  JSON_TEXT = ->(random) { JSON.generate(JSON_OBJECT.call(random)) }

  # A network, or one address: only of those has an IPAddr all.
  NETWORK = lambda do |random|
    bits = [32, 128].sample(random:)
    prefix = [bits, 0, random.rand(bits + 1)].sample(random:)
    number = random.rand(1 << bits) >> (bits - prefix) << (bits - prefix)
    number = (0xffff << 32) | random.rand(1 << 32) if bits == prefix && bits == 128 && random.rand < 0.3
    "#{IPAddr.new(number, bits == 32 ? Socket::AF_INET : Socket::AF_INET6)}/#{prefix}"
  end

  UUID = ->(random) { random.bytes(16).unpack("H8H4H4H4H12").join("-") }

  STAMP = /\A(\d+)-(\d\d)-(\d\d)(?: (\d\d):(\d\d):(\d\d(?:\.\d+)?)(?:\+00)?)?( BC)?\z/
  private_constant :STAMP

  def self.fields_of(text)
    year, month, day, hour, minute, second, before_christ = STAMP.match(text).captures
    [before_christ ? 1 - Integer(year, 10) : Integer(year, 10), Integer(month, 10), Integer(day, 10),
     hour.to_i, minute.to_i, second.to_r]
  end

  INFINITE = { "infinity" => Float::INFINITY, "-infinity" => -Float::INFINITY }.freeze
  TIME_OF = ->(text) { INFINITE[text] || Time.utc(*fields_of(text)) }
  DATE_OF = ->(text) { INFINITE[text] || Date.new(*fields_of(text).first(3), Date::GREGORIAN) }
  FLOAT_OF = ->(text) { { "NaN" => Float::NAN, "Infinity" => Float::INFINITY, "-Infinity" => -Float::INFINITY }[text] || Float(text) }
  BYTES_OF = ->(text) { [text.delete_prefix("\\x")].pack("H*") }

  # In the style `postgres`, which is another one than that in which the driver asks for it.
  INTERVAL_OF = lambda do |text|
    next INFINITE[text] if INFINITE.key?(text)

    years, months, days = %w[year mon day].map { |unit| text[/([+-]?\d+) #{unit}/, 1].to_i }
    sign, hours, minutes, seconds = text.match(/([+-])?(\d+):(\d\d):(\d\d(?:\.\d+)?)\z/)&.captures
    us = ((((hours.to_i * 60) + minutes.to_i) * 60) + seconds.to_r) * 1_000_000
    Interval.new(months: (years * 12) + months, days:, microseconds: (sign == "-" ? -us : us).to_i)
  end

  # The text is sent where a value is no Hash.
  JSON_SENT = ->(value) { value.is_a?(Hash) ? value : JSON.generate(value) }

  INTEGER = ->(text) { Integer(text, 10) }

  INTERVAL_EDGES = ["0", "-178000000 years", "-1 mons 1 days -00:00:00.000001", "2147483647 mons 2147483647 days",
                    "-2147483648 days", "9223372036854.775807 seconds"].freeze

  # What the driver names.
  NAMED = [
    Type.new(name: "bool", draw: ->(random) { %w[t f].sample(random:) }, read: { "t" => true, "f" => false }.method(:fetch)),
    Type.new(name: "int2", draw: integer(16), read: INTEGER),
    Type.new(name: "int4", draw: integer(32), read: INTEGER),
    Type.new(name: "int8", draw: integer(64), read: INTEGER),
    Type.new(name: "oid", draw: either(%w[0 4294967295], ->(random) { random.rand(1 << 32).to_s }), read: INTEGER),
    Type.new(name: "float4", draw: float("L", "f", %w[3.4028235e38 1e-45 16777217]), read: FLOAT_OF),
    Type.new(name: "float8", draw: float("Q", "d", %w[1.7976931348623157e308 5e-324 0.30000000000000004]), read: FLOAT_OF),
    Type.new(name: "numeric", draw: either(%w[NaN Infinity -Infinity 0 5 1e130000 1e-16000 0.000], DECIMAL),
             read: ->(text) { BigDecimal(text) }),
    Type.new(name: "text", draw: TEXT), Type.new(name: "varchar", draw: TEXT), Type.new(name: "bpchar", draw: TEXT),
    Type.new(name: "bytea", draw: BYTES, read: BYTES_OF),
    Type.new(name: "uuid", draw: UUID),
    Type.new(name: "timestamp", draw: either(ENDS_OF_TIME, TIMESTAMP), read: TIME_OF),
    Type.new(name: "timestamptz", draw: either(ENDS_OF_TIME, TIMESTAMPTZ), read: TIME_OF),
    Type.new(name: "date", draw: either(ENDS_OF_DAYS, ->(random) { DAY.call(random, 5_874_896).join }), read: DATE_OF),
    Type.new(name: "interval", draw: either(INTERVAL_EDGES, INTERVAL), read: INTERVAL_OF),
    Type.new(name: "json", draw: JSON_TEXT, read: JSON.method(:parse), compared: "jsonb", sent: JSON_SENT),
    Type.new(name: "jsonb", draw: JSON_TEXT, read: JSON.method(:parse), sent: JSON_SENT),
    Type.new(name: "inet", draw: NETWORK, read: IPAddr.method(:new)),
    Type.new(name: "cidr", draw: NETWORK, read: IPAddr.method(:new))
  ].freeze

  # Some of the others. The server has a text of each.
  OTHERS = [
    Type.new(name: "drawn.mood", draw: ->(random) { ["sad", "so, so", "glad\""].sample(random:) }),
    Type.new(name: "drawn.number", draw: integer(32), read: INTEGER),
    Type.new(name: "name", draw: ->(random) { TEXT.call(random)[0, 12] }),
    Type.new(name: "time", draw: CLOCK),
    Type.new(name: "point", draw: ->(random) { "(#{random.rand(10)},-0.5)" }, compared: "text"),
    Type.new(name: "int4range", draw: ->(random) { random.rand(100).then { |from| "[#{from},#{from + random.rand(3)})" } }),
    Type.new(name: "macaddr", draw: ->(random) { random.bytes(6).unpack("H2" * 6).join(":") }),
    Type.new(name: "money", draw: ->(random) { "#{random.rand(100_000)}.05" }),
    Type.new(name: "regclass", draw: ->(random) { %w[pg_class pg_type].sample(random:) })
  ].freeze

  # With infinite intervals, which servers have since 17.
  INFINITE_INTERVAL = Type.new(name: "interval", draw: ->(random) { INFINITE.keys.sample(random:) }, read: INTERVAL_OF)
end
