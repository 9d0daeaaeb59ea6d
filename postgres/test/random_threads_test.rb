# frozen_string_literal: true

require "postgres_helper"
require "random/postgres_threads"
require "support/seeds"

# Random programs of plain threads: each answer belongs to its question, nothing is lost and nobody waits for ever. The message
# of a failure names the seed.
# servers: all
class PostgresRandomThreadsTest < Minitest::Test
  include OnPool
  include NoNames

  def test_random_programs
    Seeds.of_the_day(60).each do |seed|
      Supervised.tick
      program = PostgresThreads::Draw.new(Random.new(seed)).program
      failure = failure_of(program)
      flunk "seed #{seed}, to run it again: RINGSPUN_SEED=#{seed} bin/test #{__FILE__}\n#{failure}\n#{program}" if failure
    end
  end

  private

  def failure_of(program)
    with_pool(**program.options) do |pool|
      PostgresThreads::Run.new(pool, program).call || left
    end
  end

  # Until what was asked for those that have left is cancelled.
  def left
    sleep 0.001 until look { |other| running(other) }.none?(PostgresThreads::Run::SLEEP)
  end
end
