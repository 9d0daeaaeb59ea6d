# frozen_string_literal: true

require "postgres_helper"
require "support/preloaded"

# Each allocation of the extension fails once: the call raises, or does without, and the pool goes on.
class PostgresMemoryTest < Minitest::Test
  include OnPool
  include AnyBackend

  FAILING = File.expand_path("support/failing_allocation.c", __dir__)
  CALLS = {
    query: 'session.query("select $1::int", number).rows',
    batch: 'session.batch { |batch| 2.times { batch.query("select $1::int", number) } }.flat_map(&:rows).uniq',
    stream: 'session.stream("select $1::int from generate_series(1, 1200)", number, as: :array).to_a.uniq',
    stream_that_is_left: 'session.stream("select $1::int from generate_series(1, 5000)", number, as: :array).first(2).uniq'
  }.freeze

  CALLS.each do |name, call|
    define_method("test_a_#{name}") { assert_survives(call, "") }
    define_method("test_a_#{name}_whose_name_is_forgotten") { assert_survives(call, 'session.execute("deallocate all")') }
  end

  private

  def assert_survives(call, before)
    env = { "MALLOC_PERTURB_" => "85", **Preloaded.env(FAILING) }
    answer = ruby_child(<<~RUBY, File.expand_path("../lib", __dir__), url, env:)
      $LOAD_PATH.unshift(ARGV.shift)
      require "ringspun/postgres"
      Ringspun.run do
        pool = Ringspun::Postgres::Pool.new(ARGV.first, max: 1)
        (1..).find do |number|
          pool.session do |session|
            3.times { #{call} }
            #{before}
            ENV["FAIL_ALLOCATION"] = number.to_s
            result = #{call}
            puts "wrong: \#{result}" unless result == [[number]]
          rescue NoMemoryError, Ringspun::Postgres::ConnectionLost
            nil
          end
          over = ENV.delete("FAIL_ALLOCATION")
          puts "lost" unless pool.metrics[:idle] == pool.metrics[:connections]
          over
        end
      ensure
        pool&.close
      end
      puts "goes on"
    RUBY
    assert_equal ["goes on\n", "", true], [answer.out, answer.err, answer.status.success?]
  end
end
