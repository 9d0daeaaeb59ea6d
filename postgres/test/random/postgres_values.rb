# frozen_string_literal: true

require "random/postgres_types"

# Random values of every type, asked for in random ways as a role with random settings. A program is a list of steps: settings of
# the role, values, and uses, each of which asks for all the values.
#
# What a value is, the server itself says: as text, over the gem pg, under settings of ours, which {PostgresTypes} reads. And for
# what is sent as a parameter the server says whether it is equal.
class PostgresValues
  Setting = Data.define(:name, :value) do
    def to_s = "#{name}=#{value}"
  end

  # @!attribute texts
  #   @return [String, nil, Array] that which the server reads; an Array: an array of those, or of Arrays of the same size
  Value = Data.define(:type, :texts) do
    def type_name(name = type.name) = texts.is_a?(Array) ? "#{name}[]" : name

    def sql = "#{texts.is_a?(Array) ? array(texts) : literal(texts)}::#{type_name}"

    def to_s = "#{type_name}: #{PostgresValues.short(sql)}"

    # Whether the server calls the expression equal to it.
    def equals(expression)
      as = type_name(type.compared)
      "(#{expression})::#{as} is not distinct from (#{sql})::#{as}"
    end

    # @yieldparam text [String]
    # @return [Object] with what the block answers in place of each text
    def map(texts = self.texts, &) = texts.is_a?(Array) ? texts.map { |text| map(text, &) } : texts && yield(texts)

    private

    # Arrays that are empty, or begin with one that is, have no elements to tell their type by.
    def array(texts) = texts.empty? ? "'{}'" : "array[#{texts.map { |text| element(text) }.join(",")}]"

    def element(text) = text.is_a?(Array) ? array(text) : "#{literal(text)}::#{type.name}"

    # Whatever standard_conforming_strings is.
    def literal(text) = text ? "E'#{text.gsub(/[\\']/) { |character| character * 2 }}'" : "null"
  end

  # @!attribute form
  #   @return [:columns, :parameters, :binary] what is asked for: the values as they are, or sent and given back, or sent as
  #     Strings in BINARY
  # @!attribute door
  #   @return [String] of DOORS
  Use = Data.define(:form, :door) do
    def to_s = "#{form} by #{door}"
  end

  SETTINGS = {
    "bytea_output" => %w[hex escape], "extra_float_digits" => %w[-15 0 1 3],
    "DateStyle" => ["ISO, DMY", "SQL, DMY", "SQL, MDY", "Postgres, DMY", "Postgres, MDY", "German, YMD"],
    "IntervalStyle" => %w[postgres postgres_verbose sql_standard iso_8601],
    "TimeZone" => %w[Asia/Kolkata America/St_Johns Europe/Amsterdam Pacific/Apia Australia/Lord_Howe FOO-5:17],
    "client_encoding" => %w[LATIN1 SQL_ASCII UTF8], "standard_conforming_strings" => %w[off], "array_nulls" => %w[off],
    "default_transaction_isolation" => %w[serializable]
  }.freeze

  # Each asks three times, for the first use of a statement has all as text, and a later one what pays as binary.
  DOORS = {
    "query" => ->(pool, *asked) { Array.new(3) { pool.query(*asked).first } },
    "prepare" => lambda do |pool, sql, *params|
      prepared = pool.prepare(sql)
      Array.new(3) { prepared.query(*params).first }
    end,
    "batch" => ->(pool, *asked) { Array.new(3) { pool.batch { |batch| batch.query(*asked) }.first.first } },
    "stream" => ->(pool, *asked) { Array.new(3) { pool.stream(*asked).to_a.first } },
    "session" => ->(pool, *asked) { pool.session { |session| Array.new(3) { session.query(*asked).first } } },
    "transaction" => lambda do |pool, *asked|
      pool.transaction { |t| [t.query(*asked).first, *Array.new(2) { t.stream(*asked).to_a.first }] }
    end,
    "thread" => lambda do |pool, *asked|
      Thread.new { Array.new(3) { pool.query(*asked).first } }.tap { |thread| thread.report_on_exception = false }.value
    end
  }.freeze

  def self.short(text) = text.size > 2000 ? "#{text[0, 2000]}..." : text

  # @return [Array<Setting, Value, Use>]
  def self.steps(random, version)
    settings = SETTINGS.keys.sample(random.rand(0..4), random:).map { |name| Setting.new(name, SETTINGS[name].sample(random:)) }
    values = Array.new(random.rand(1..10)) { value(random, version) }
    uses = DOORS.keys.sample(2, random:).map { |door| Use.new(:columns, door) }
    uses << Use.new(:parameters, DOORS.keys.sample(random:))
    uses << Use.new(:binary, DOORS.keys.sample(random:)) if random.rand < 0.3
    [*settings, *values, *uses]
  end

  def self.value(random, version)
    type = case random.rand
           when 0...0.15 then PostgresTypes::OTHERS.sample(random:)
           when 0.15...0.17 then version >= 17 ? PostgresTypes::INFINITE_INTERVAL : PostgresTypes::NAMED.sample(random:)
           else PostgresTypes::NAMED.sample(random:)
           end
    one = ->(*) { random.rand < 0.05 ? nil : type.draw.call(random) }
    texts = case random.rand(10)
            when 0..6 then one.call
            when 7..8 then Array.new(random.rand(4), &one)
            else random.rand(1..3).then { |size| Array.new(random.rand(1..3)) { Array.new(size, &one) } }
            end
    Value.new(type:, texts:)
  end

  # Under which the server writes what {PostgresTypes} reads.
  CANONICAL = "set DateStyle = 'ISO, YMD'; set IntervalStyle = 'postgres'; set TimeZone = 'UTC'; set extra_float_digits = 1; " \
              "set bytea_output = 'hex'"

  # What its types need that no server has.
  SCHEMA = "create schema drawn; grant usage on schema drawn to public; create domain drawn.number as int; " \
           "create type drawn.mood as enum ('sad', 'so, so', 'glad\"')"

  # @param url [String] of the server
  # @param server [PG::Connection] the same
  def self.open(url, server)
    server.set_notice_processor { nil }
    server.exec(SCHEMA)
    server.exec(CANONICAL)
    yield new(url, server)
  ensure
    server.exec("drop schema if exists drawn cascade")
  end

  def initialize(url, server)
    @url = url
    @server = server
  end

  # @return [Integer] its major version
  def version = @server.server_version / 10_000

  # @return [Array<String>] what is wrong, each with the value, the use and the settings
  def failures(steps)
    values = steps.grep(Value)
    settings = steps.grep(Setting)
    expected = expected_of(values)
    found = []
    on_pool(settings) do |pool|
      steps.grep(Use).each { |use| __send__(use.form, pool, use, values.zip(expected)) { |failure| found << failure } }
    end
    found.map { |failure| "#{failure}\nsettings: #{settings.join(" ")}" }
  end

  # Whether they are the same, down to the class, the encoding, the sign of zero, and all that is no number.
  def self.same?(one, other)
    return false unless one.instance_of?(other.class)

    case one
    when Float then one.nan? ? other.nan? : one == other && (1 / one) == (1 / other)
    when BigDecimal then one.nan? ? other.nan? : one == other
    when String then one == other && one.encoding == other.encoding
    when Time then one == other && one.utc? && other.utc?
    when IPAddr then one == other && one.prefix == other.prefix
    when Array then one.size == other.size && one.zip(other).all? { |pair| same?(*pair) }
    when Hash then one.keys == other.keys && same?(one.values, other.values)
    else one == other
    end
  end

  private

  # A connection of a role of its own, with these settings.
  def on_pool(settings)
    @server.exec("create role drawn login; " +
                 settings.map { |setting| "alter role drawn set #{setting.name} = '#{setting.value}'" }.join("; "))
    Ringspun.run do
      pool = Ringspun::Postgres::Pool.new(@url, user: "drawn", lanes: 1)
      yield pool
    ensure
      pool&.close
    end
  ensure
    @server.exec("drop role if exists drawn")
  end

  # @return [Array<Object>] what each must be in Ruby
  def expected_of(values)
    texts = values.flat_map { |value| [value.texts].flatten.compact.map { |text| Value.new(value.type, text).sql } }
    written = texts.empty? ? [] : @server.exec("select #{texts.join(", ")}").values.first
    values.map { |value| value.map { value.type.read.call(written.shift) } }
  end

  def columns(pool, use, pairs, &wrong)
    ask(pool, use, pairs, ->(value, number) { "#{value.sql} as value#{number}" }, &wrong)
  end

  def parameters(pool, use, pairs, &wrong)
    given = pairs.map { |value, expected| [value, expected, sent(value, expected)] }
    ask(pool, use, given, method(:back), &wrong)
  end

  # What comes from a socket, or a file in binary, is such a String.
  def binary(pool, use, pairs, &wrong)
    given = pairs.reject { |value, _| value.texts.nil? || value.type.name == "bytea" }
                 .map { |value, expected| [value, expected, value.map(&:b)] }
    ask(pool, use, given, method(:back), &wrong)
  end

  # As the server gives it back, and whether it has understood it.
  def back(value, number)
    "$#{number}::#{value.type_name} as value#{number}, #{value.equals("$#{number}::#{value.type_name}")} as equal#{number}"
  end

  # Lists are Arrays of those that their elements are sent as.
  def sent(value, expected)
    nested = lambda do |one, texts|
      next one.zip(texts).map { |pair| nested.call(*pair) } if texts.is_a?(Array)

      texts && value.type.sent.call(one)
    end
    nested.call(expected, value.texts)
  end

  # Where the server, or the driver, refuses what is asked for, each value is asked for alone.
  #
  # @param given [Array<Array>] values, each with what is expected, and the parameter if there is one
  def ask(pool, use, given, column, &wrong)
    return if given.empty?

    sql = "select #{given.map.with_index(1) { |(value, *), number| column.call(value, number) }.join(", ")} /* #{use} */"
    rows = begin
      DOORS.fetch(use.door).call(pool, sql, *given.flat_map { |_, _, *parameter| parameter })
    rescue Ringspun::Error => error
      return given.each { |one| ask(pool, use, [one], column, &wrong) } if given.size > 1

      return wrong.call("#{given[0][0]} as #{use}: #{error.class}: #{error.message}")
    end
    given.each_with_index { |(value, expected), index| check(rows, use, value, expected, index + 1, &wrong) }
  end

  # The first of the rows in which it is wrong says enough.
  def check(rows, use, value, expected, number)
    rows.each_with_index do |row, index|
      found = value_of(row, "value#{number}")
      equal = row.columns.include?("equal#{number}") ? row["equal#{number}"] : true
      next if equal == true && self.class.same?(expected, found)

      return yield "#{value} as #{use}, use #{index + 1}: expected #{show(expected)}, got #{show(found)}" \
                   "#{", which the server does not call equal" unless equal}"
    end
  end

  # Each value is decoded when it is asked for.
  def value_of(row, name)
    row[name]
  rescue Ringspun::Error => error
    error
  end

  def show(value) = "#{self.class.short(value.inspect)} (#{value.class})"
end
