# frozen_string_literal: true

require "jobs_helper"
require "support/seeds"
require "support/shrink"
require_relative "../support/redis_case"
require_relative "limits/program"

# Random programs of processes that run jobs of a queue with a limit, and are killed, frozen and cut off from their storage,
# beside a model that knows which runs there are. Never do more run than the limit but for old runs, whose processes have not
# noticed yet; and with these never more than twice the limit.
module LimitsPrograms
  def test_random_programs
    Seeds.of_the_day(programs).each do |seed|
      Supervised.tick
      random = Random.new(seed)
      limit = 1 + random.rand(3)
      steps = RandomLimits::Program.steps(random)
      faults = faults_of(limit, steps)
      next if faults.empty?

      smaller = Shrink.smallest(steps, tries: 200) { |some| faults_of(limit, some).any? }
      flunk <<~TEXT
        #{faults.join("\n")}
        Again: RINGSPUN_SEED=#{seed} bin/test jobs/test/random/limits_test.rb
        Smaller, with a limit of #{limit}: #{faults_of(limit, smaller)}
          #{smaller.inspect}
      TEXT
    end
  end

  def faults_of(limit, steps)
    with_empty_storage { |storage| RandomLimits::Program.new(storage, limit) { |node| lapse(storage, node) }.run(steps) }
  end
end

class MemoryLimitsTest < Minitest::Test
  include AnyBackend
  include LimitsPrograms

  def programs = 400

  def with_empty_storage
    @now = 1e9
    yield Ringspun::Jobs::Storage::Memory.new(clock: -> { @now })
  end

  def lapse(storage, node)
    storage.extend([node], 0.001)
    @now += 0.002
  end
end

class RedisLimitsTest < RedisCase
  include AnyBackend
  include LimitsPrograms

  def programs = 40

  def with_empty_storage
    call("FLUSHALL")
    yield storage
  end

  # The server's clock has gone on when it has let go of a key that was to end later.
  def lapse(storage, node)
    storage.extend([node], 0.001)
    call("SET", "later", "1", "PX", 3)
    nil while call("EXISTS", "later") == 1
  end
end
