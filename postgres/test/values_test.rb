# frozen_string_literal: true

require "postgres_helper"
require "pg"
require "random/postgres_values"
require "support/expected_failures"
require "support/seeds"
require "support/shrink"

# Random values of every type that the driver names, in every use, as roles with odd settings: the server says what each is. The
# message of a failure names the seed.
# servers: 15, 17
class PostgresValuesTest < Minitest::Test
  include Servers::Postgres

  EXPECTED = File.join(__dir__, "random/expected_failures.yml")
  TYPES_C = File.expand_path("../ext/ringspun_postgres/client/types.c", __dir__)

  def test_random_values
    expected = ExpectedFailures.new(EXPECTED, "values")
    on_values do |values|
      Seeds.of_the_day(200).each do |seed|
        Supervised.tick
        steps = PostgresValues.steps(Random.new(seed), values.version)
        failures = values.failures(steps).reject { |failure| expected.known?(failure) }
        flunk shrunk(seed, steps, values, expected) if failures.any?
      end
    end
    puts expected if ENV["RINGSPUN_SEEDS"]
  end

  def test_no_type_that_the_driver_names_is_left_out
    oids = File.read(TYPES_C).scan(/^    VALUES_OF\((\d+), (\d+), /).map { |numbers| numbers.map(&:to_i) }
    refute_empty oids
    PG.connect(postgres_options) do |server|
      names = PostgresTypes::NAMED.map { |type| "'#{type.name}'::regtype" }
      drawn = server.exec("select unnest(array[#{names.join(",")}])::oid").column_values(0).map(&:to_i)
      assert_empty oids.filter_map { |oid, element| oid if element.zero? } - drawn
      assert_empty oids.map(&:last) - drawn - [0]
    end
  end

  private

  def on_values(&)
    PG.connect(postgres_options) { |server| PostgresValues.open(Servers.postgres_url, server, &) }
  end

  def shrunk(seed, steps, values, expected)
    wrong = ->(some) { values.failures(some).reject { |failure| expected.known?(failure) } }
    fewer = Shrink.smallest(steps, tries: 200) { |some| wrong.call(some).any? }
    "seed #{seed}, to run it again:\n" \
      "RINGSPUN_POSTGRES=#{values.version} RINGSPUN_SEED=#{seed} bin/test postgres/test/values_test.rb\n" \
      "#{wrong.call(fewer).first || "it did not fail once more"}"
  end
end
