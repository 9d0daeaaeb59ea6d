# frozen_string_literal: true

# pass: accepted

require "jobs_helper"
require "ringspun/jobs/sidekiq" # before Active Job
require "support/servers"
require "support/seeds"
require "support/shrink"
require "support/expected_failures"
require_relative "../support/scripted_proxy"
require_relative "accepted_or_told/calls"
require_relative "accepted_or_told/ledger"
require_relative "accepted_or_told/server"
require_relative "accepted_or_told/program"
require_relative "accepted_or_told/run"

# Random programs that enqueue in every way there is, while Redis is away, full, read-only, slow or cut off. Each job is accepted,
# and then it is in the store once or has run once; or its caller was told. One that was told a definite no has no job there.
class AcceptedOrToldTest < Minitest::Test
  include AnyBackend
  include Servers::Redis

  Program = AcceptedOrTold::Program

  PROGRAMS = 200
  TRIES = 200
  # So many in a test: each has a limit of time.
  SLICE = 250

  # First those without Active Job, which the others load.
  def self.run_order = :alpha

  def setup
    super
    @expected = ExpectedFailures.new(File.join(__dir__, "expected_failures.yml"), "jobs")
    @folder = Dir.mktmpdir("ringspun-accepted-")
    @events = Thread::Queue.new
    @server = AcceptedOrTold::Server.new(redis_path)
    @proxy = ScriptedProxy.new(File.join(@folder, "redis.sock"), held: -> { @events << :held }) { UNIXSocket.new(redis_path) }
    @counts = Hash.new(0)
  end

  def teardown
    Ringspun::Jobs.storage = nil
    Ringspun::Jobs.config.update({ redis: {}, strategy: :group_commit, namespace: "", milliseconds: false, pool_size: 5,
                                   pool_timeout: 5 })
    @proxy.close
    @server.clear("")
    @server.close
    FileUtils.rm_rf(@folder)
    puts @expected unless @expected.to_s.empty?
    puts @counts if ENV["RINGSPUN_COUNTS"]
    super
  end

  PLAIN, LOADED = Seeds.of_the_day(PROGRAMS).partition(&:even?)

  PLAIN.each_slice(SLICE).with_index(1) do |seeds, index|
    define_method(:"test_plain_programs_#{index}") do
      calls = AcceptedOrTold::Calls
      seeds.each { |seed| check(seed, ways(calls), calls.method(:call)) }
    end
  end

  LOADED.each_slice(SLICE).with_index(1) do |seeds, index|
    define_method(:"test_programs_with_active_job_#{index}") do
      require_relative "accepted_or_told/active_job_calls"
      calls, frameworks = AcceptedOrTold::Calls, AcceptedOrTold::ActiveJobCalls
      call = ->(way, *rest) { (ways(frameworks).key?(way) ? frameworks : calls).call(way, *rest) }
      seeds.each { |seed| check(seed, { **ways(calls), **ways(frameworks) }, call) }
    end
  end

  private

  # With whether it takes many.
  def ways(calls) = { **calls::ONE.transform_values { false }, **calls::MANY.transform_values { true } }

  def check(seed, ways, call)
    Supervised.tick
    program = Program.new(Random.new(seed), ways)
    failures = run_program(seed, program.settings, program.steps, call)
    return if failures.empty?

    steps = Shrink.smallest(program.steps, tries: TRIES) { |some| run_program(seed, program.settings, some, call).any? }
    flunk <<~TEXT
      #{listed(failures)}
      Again: RINGSPUN_SEED=#{seed} bin/test jobs/test/random/accepted_or_told_test.rb
      Smaller: #{listed(run_program(seed, program.settings, steps, call))}
        #{Program.describe(program.settings, steps)}
    TEXT
  end

  def listed(failures) = failures.tally.map { |failure, count| "#{count} x #{failure}" }.join("\n")

  # What is wrong, but for what is known.
  def run_program(seed, settings, steps, call)
    run = AcceptedOrTold::Run.new("seed #{seed}", settings, @server, @proxy, @events, call)
    failures = run.failures(steps)
    run.ledger.counts.each { |outcome, count| @counts[outcome] += count }
    failures.reject { |failure| @expected.known?(failure) }
  end
end
