# frozen_string_literal: true

require "postgres_helper"
require "support/seeds"
require "random/rooms_together"

# Random programs that use database, jobs, web server and stock Ruby at once, on one machine, and are cut off anywhere: what was
# accepted happens once, what was refused does not, nobody gets what is another's, and nothing is left.
class RoomsTogetherTest < Minitest::Test
  include AnyBackend
  include Servers::Postgres
  include Servers::Redis

  PROGRAMS = 30

  # The storages take turns.
  SEEDS = Seeds.of_the_day(PROGRAMS).group_by { |seed| seed % 3 }.freeze

  def test_jobs_in_memory = check(0, { "storage" => :memory })

  def test_jobs_in_a_file
    Dir.mktmpdir("ringspun-rooms-") { |folder| check(1, { "storage" => "sqlite:#{folder}/jobs.sqlite3" }) }
  end

  def test_jobs_in_redis = check(2, { "redis" => { path: redis_path }, "namespace" => "rooms#{Process.pid}" })

  private

  def check(turn, settings)
    seeds = SEEDS.fetch(turn, [])
    Dir.mktmpdir("ringspun-rooms-") do |folder|
      RoomsTogether::Site.open(Servers.postgres_url, folder, settings) do |site|
        site.working { seeds.each { |seed| assert_well(site, seed) } }
      end
    end
  end

  def assert_well(site, seed)
    Supervised.tick
    program = RoomsTogether::Program.drawn(seed)
    trouble = site.trouble(program)
    assert_empty trouble, "seed #{seed}, to run it again: RINGSPUN_SEED=#{seed} bin/test postgres/test/rooms_together_test.rb\n" \
                          "#{trouble.join("\n")}\n#{program}"
  end
end
