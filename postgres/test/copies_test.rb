# frozen_string_literal: true

require "postgres_helper"
require "pg"
require "random/postgres_copies"
require "support/seeds"

# Random rows, in and out by COPY: the server says what it has. The message of a failure names the seed.
# servers: 15, 17
class PostgresCopiesTest < Minitest::Test
  include OnPool

  def test_random_rows
    PG.connect(postgres_options) do |server|
      server.exec("set client_min_messages = warning")
      on_pool do |client|
        copies = PostgresCopies.new(client, server)
        Seeds.of_the_day(60).each do |seed|
          Supervised.tick
          told = copies.failure(Random.new(seed))
          flunk "seed #{seed}, to run it again: RINGSPUN_SEED=#{seed} bin/test postgres/test/copies_test.rb\n#{told}" if told
        end
      end
    end
  end
end
