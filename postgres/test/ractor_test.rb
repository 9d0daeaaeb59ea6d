# frozen_string_literal: true

require "test_helper"

# What a program is told that would use a client in several ractors.
class PostgresRactorTest < Minitest::Test
  include AnyBackend
  include Children

  PRELUDE = <<~RUBY
    $LOAD_PATH.unshift(ARGV.fetch(0))
    require "ringspun/postgres"
    Warning[:experimental] = false
    def refused
      yield
    rescue Ringspun::UsageError => error
      puts error.message
    end
  RUBY

  def test_a_client_is_made_in_the_main_ractor_only
    assert_refused "a client of Postgres can only be made in the main ractor", <<~RUBY
      ractor = Ractor.new { Ringspun::Postgres.connect("postgres://db") rescue [$!.class, $!.message] }
      error, message = ractor.respond_to?(:value) ? ractor.value : ractor.take
      refused { raise error, message }
    RUBY
  end

  def test_and_not_copied_into_another
    assert_refused "a client of Postgres cannot be copied, and other ractors than the main one cannot use it", <<~RUBY
      refused { Ractor.new(Ringspun::Postgres.connect("postgres://db")) { |postgres| postgres.query("select 1") } }
    RUBY
  end

  private

  def assert_refused(message, code)
    answer = ruby_child(PRELUDE + code, File.expand_path("../lib", __dir__))
    assert_equal ["#{message}\n", "", true], [answer.out, answer.err, answer.status.success?]
  end
end
