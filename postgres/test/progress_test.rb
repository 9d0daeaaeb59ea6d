# frozen_string_literal: true

require "postgres_helper"
require "pg"
require "random/postgres_progress_run"
require "support/expected_failures"
require "support/seeds"
require "support/shrink"

# Random programs of callers that share a pool and a few rows: each comes to its end, as it would with a connection for each
# caller, and what was added is there once. The message of a failure names the seed.
# servers: all
class PostgresProgressTest < Minitest::Test
  include OnPool
  include NoNames

  EXPECTED = File.join(__dir__, "random/expected_failures.yml")

  def test_random_programs
    expected = ExpectedFailures.new(EXPECTED, "progress")
    on_programs do |runner|
      Seeds.of_the_day(200).each do |seed|
        Supervised.tick
        program = draw(seed)
        failure = runner.failure(program)
        flunk shrunk(seed, program, failure, runner) if failure && !expected.known?("#{failure}\n#{program}")
      end
    end
    puts expected if ENV["RINGSPUN_SEEDS"]
  end

  private

  def pooled? = ENV["RINGSPUN_POSTGRES"].to_s.start_with?("pgbouncer")

  def draw(seed) = PostgresProgress::Draw.new(Random.new(seed), sessions: !pooled?).program

  # A deadlock is found soon, where the server can be told so. A pooler does not take the limit for locks of shared connections
  # either, so that callers without a free connection may hear of a timeout: there are enough.
  def make_pool(options) = pool(**options, **(pooled? ? { max: 12 } : { options: "-c deadlock_timeout=20" }))

  def on_programs(&)
    PG.connect(host: Servers.postgres.folder, user: "ringspun", dbname: "postgres") do |server|
      PostgresProgress::Runner.open(server, method(:make_pool), &)
    end
  end

  # Programs that do not end take long.
  def shrunk(seed, program, failure, runner)
    tries = failure.start_with?("does not end") ? 3 : 60
    steps = Shrink.smallest(program.steps, tries:) { |fewer| runner.failure(program.with(steps: fewer)) }
    reference = runner.failure(program.with(options: PostgresProgress::Runner::REFERENCE))
    "seed #{seed}, to run it again: RINGSPUN_SEED=#{seed} bin/test postgres/test/progress_test.rb\n" \
      "#{failure}\nwith a connection for each caller: #{reference || "as it should"}\n#{program.with(steps:)}"
  end
end
