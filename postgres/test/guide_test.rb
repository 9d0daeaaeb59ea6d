# frozen_string_literal: true

require "test_helper"
require "ringspun/postgres"

# What the two guides name is there, and what is there they name. Their programs are run by the tests of the house.
class PostgresGuideTest < Minitest::Test
  include AnyBackend

  Postgres = Ringspun::Postgres
  TEXT = Dir[File.expand_path("../../docs/{18-postgres,25-postgres-more}.md", __dir__)].sort.map { |path| File.read(path) }.join
  KEYWORDS = Postgres.const_get(:Options).const_get(:Keywords)
  POOL = Postgres::Pool.instance_method(:initialize).parameters.filter_map { |kind, name| name.to_s if kind == :key }

  # Those that only say what is so anyway.
  UNNAMED = %w[client_encoding sslcompression].freeze

  def test_errors_that_it_names
    names = TEXT[/^## Errors.*?(?=^## |\z)/m].scan(/\b(Ringspun|Postgres)::((?!Postgres\b)[A-Z]\w+)/).uniq
    assert_operator names.size, :>, 10
    names.each do |place, name|
      assert_operator Object.const_get("#{"Ringspun::" if place == "Postgres"}#{place}::#{name}"), :<=, Ringspun::Error
    end
  end

  def test_options_of_the_pool
    rows = TEXT[/^## The pool$.*?(?=^## |\z)/m].scan(/^\| (`[^|]+) \|/).flatten
    named = rows.flat_map { |names| names.scan(/`(\w+):`/) }.flatten
    assert_equal POOL.sort, named.sort
    POOL.each do |name|
      error = assert_raises(Ringspun::UsageError) { Postgres::Pool.new("postgres://localhost/shop?#{name}=1") }
      assert_match(/\b#{name} is .*Pool/, error.message)
    end
  end

  def test_options_of_libpq
    named = TEXT[/^## Connecting$.*?(?=^## |\z)/m].scan(/`(\w+)/).flatten
    assert_empty KEYWORDS::ALL.keys - named - UNNAMED
  end
end
