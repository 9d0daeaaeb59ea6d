# frozen_string_literal: true

require "jobs_helper"
require "support/servers"
require "support/fork_server"
require "support/sidekiq"

# Sidekiq and us on one Redis.
class InteropCase < Minitest::Test
  include Servers::Redis
  include Strands

  PATIENCE_SECONDS = 30

  class FromRingspun
    include Ringspun::Jobs::Job

    def self.name = "FromRingspun"
  end

  class FromSidekiq
    include Sidekiq::Job

    def self.name = "FromSidekiq"
    def self.to_s = name
  end

  # What becomes of it is told by the process that runs it: RealSidekiq::JOBS.
  WORKER = <<~'RUBY' + RealSidekiq::JOBS + <<~'RUBY'
    require "ringspun/jobs"

    BY = "ringspun"
    MIXIN = Ringspun::Jobs::Job
  RUBY

    config = Ringspun::Jobs.config.update({ concurrency: 10, beat: 0.1, **JSON.parse(ARGV.fetch(0)) })
    worker = Ringspun::Jobs::Worker.new(config, storage: Ringspun::Jobs.storage)
    trap("TERM") { worker.stop }
    worker.run
  RUBY

  # Before the descriptors are counted.
  def before_setup
    ["sidekiq", "ringspun/jobs"].each { |library| ForkServer.for(library) }
    super
  end

  def setup
    super
    @programs = []
    # The kernel may close what an earlier test's process had open some time after its end.
    redis.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    redis.call("FLUSHALL")
    Ringspun::Jobs.configure { |config| config.redis = { url: } }
  end

  def teardown
    @programs.each(&:close)
    Ringspun::Jobs.close
    redis.close
    super
  end

  def url = "unix://#{redis_path}"
  def redis = @redis ||= RedisClient.new(url:, timeout: PATIENCE_SECONDS)

  # Sidekiq's client and API.
  def sidekiq(&) = RealSidekiq.on(url) { yield }

  def start_sidekiq(*options) = @programs.push(RealSidekiq.start(url, *options)).last

  # Our worker, with these settings.
  def start_worker(**settings)
    program = ForkedProgram.ruby("ringspun/jobs", WORKER, JSON.generate(settings), env: { "REDIS_URL" => url })
    @programs.push(program).last
  end

  # What the next job that was run has told: who ran it, its class, its jid, its arguments.
  def told
    answer = patience.until_true { redis.blocking_call(PATIENCE_SECONDS, "BRPOP", "told", 1) }
    answer ? JSON.parse(answer.last) : flunk("nothing was run:\n#{@programs.map(&:log).join("\n---\n")}")
  end

  def told_of(count) = Array.new(count) { told }

  # With this process and the programs, which may wait for a processor.
  def patience = Patience.new(PATIENCE_SECONDS, *@programs.map(&:pid))

  # The block's value, as soon as that is true.
  def soon(what)
    patience.until_true { yield || (sleep(0.01) && nil) } || flunk("#{what}: not so:
#{@programs.map(&:log).join("
---
")}")
  end

  # The only entry of that set, as soon as there is one: its text and its job.
  def entry_of(set) = soon("something is in #{set}") { redis.call("ZRANGE", set, 0, -1).first }
  def job_of(set) = JSON.parse(entry_of(set))

  # Whatever is in that set is due.
  def make_due(set)
    redis.call("ZRANGE", set, 0, -1).each { |entry| redis.call("ZADD", set, "XX", 1, entry) }
  end
end
