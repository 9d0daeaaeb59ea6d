# frozen_string_literal: true

require "support/both_sides"

# What a worker does with classes that were written for Sidekiq: the real one's with the real one, ours with what stands in.
class SidekiqWorkerTest < BothSides
  # What happens is told in a list, in order.
  PROGRAM = <<~'RUBY'
    def tell(*what)
      redis = RedisClient.new(url: ENV.fetch("REDIS_URL"), timeout: 60)
      redis.call("LPUSH", "told", JSON.generate(what))
    ensure
      redis&.close
    end

    class Tag
      include Sidekiq::ClientMiddleware

      def call(job_class, job, queue, pool)
        job["tagged"] = [job_class.to_s, queue, pool.respond_to?(:with), config.respond_to?(:redis)]
        yield
      end
    end

    class Veto
      def call(_job_class, job, _queue, _pool)
        answer = yield
        job["args"].first == "stopped" ? nil : answer
      end
    end

    class Around
      include Sidekiq::ServerMiddleware

      def initialize(name) = @name = name

      def call(instance, job, queue)
        redis { |connection| connection.get("nothing") }
        tell("before", @name, instance.class.name, queue, job["tagged"])
        yield
      ensure
        tell("after", @name)
      end
    end

    Sidekiq.configure_client { |_config| tell("client") }
    Sidekiq.configure_server do |config|
      config.client_middleware { |chain| chain.add(Tag) && chain.prepend(Veto) }
      config.server_middleware do |chain|
        chain.add(Around, "b")
      end
      config.on(:startup) { tell("startup") }
      config.on(:quiet) do
        tell("quiet")
        $quiet = true
        sleep(0.01) until $seen || !$looking
      end
      config.on(:shutdown) { tell("shutdown") }
      config.on(:exit) { tell("exit") }
      config.error_handlers << proc { |error, context, _config| tell("error", error.message, context[:job]["args"]) }
      config.death_handlers << ->(job, error) { tell("death", job["args"], error.message) }
    end

    class Work
      include Sidekiq::Job
      sidekiq_retry_in { |count, error, job| error.message == "kill" ? :kill : 1000 * (count + 1) }
      sidekiq_retries_exhausted { |job, error| tell("exhausted", job["args"], error.message) }

      def perform(what, *rest)
        tell("performs", what, jid.size, logger.respond_to?(:info), !!interrupted?)
        case what
        when "fail", "kill" then raise what
        when "look" # while the handlers of :quiet are called
          $looking = true
          Process.kill(:TSTP, Process.pid)
          sleep(0.01) until $quiet
          tell("interrupted", !!interrupted?)
          $seen = true
        when "enqueue" then tell("pushed", [Work.perform_async("stopped"), Work.perform_async("again").size])
        end
      end
    end
  RUBY

  # Each of these is run on both sides.
  def self.test_on_both_sides(name, &block)
    SIDES.each_key { |side| define_method("test_#{name}_#{side}") { instance_exec(side, &block) } }
  end

  def enqueue(*arguments, **fields)
    redis.call("SADD", "queues", "default")
    job = { "class" => "Work", "args" => arguments, "queue" => "default", "retry" => true, "jid" => "a" * 24, **fields }
    redis.call("LPUSH", "queue:default", JSON.generate(job))
  end

  def start(side)
    worker = start_side(side, PROGRAM, "-e", "production")
    assert_equal %w[startup], told
    worker
  end

  def around(*middle) = [["before", "b", "Work", "default", nil], *middle, ["after", "b"]]

  def performs(what) = ["performs", what, 24, true, false]

  test_on_both_sides("its_life") do |side|
    worker = start(side)
    enqueue("x")
    assert_equal around(performs("x")), told_of(3)
    worker.stop
    assert_equal [%w[quiet], %w[shutdown], %w[exit]], told_of(3)
  end

  test_on_both_sides("a_job_that_asks_while_the_handlers_of_quiet_are_called") do |side|
    worker = start(side)
    enqueue("look")
    assert_equal around(performs("look"), %w[quiet], ["interrupted", true]), told_of(5)
    worker.stop
  end

  test_on_both_sides("middleware_of_clients") do |side|
    start(side)
    enqueue("enqueue")
    told = told_of(7) # the job that it enqueues may run before it has ended
    assert_includes told, ["pushed", [nil, 24]]
    assert_includes told, performs("again")
    assert_includes told, ["before", "b", "Work", "default", ["Work", "default", true, true]]
    refute_includes told, performs("stopped")
  end

  test_on_both_sides("a_job_that_fails") do |side|
    start(side)
    enqueue("fail", "x")
    assert_equal [*around(performs("fail")), ["error", "fail", %w[fail x]]], told_of(4)
    failed = entry_of("retry")
    score = redis.call("ZSCORE", "retry", failed)
    assert_in_delta 1000, score - Time.now.to_f, 30
  end

  test_on_both_sides("a_job_that_is_killed") do |side|
    start(side)
    enqueue("kill")
    assert_equal [*around(performs("kill")), ["exhausted", %w[kill], "kill"], ["death", %w[kill], "kill"],
                  ["error", "kill", %w[kill]]], told_of(6)
    assert_equal %w[kill], job_of("dead")["args"]
  end

  test_on_both_sides("a_job_that_is_not_tried_again") do |side|
    start(side)
    enqueue("fail", "retry" => false)
    assert_equal [*around(performs("fail")), ["death", %w[fail], "fail"], ["error", "fail", %w[fail]]], told_of(5)
    enqueue("fail", "retry" => 0, "dead" => false)
    assert_equal [*around(performs("fail")), ["exhausted", %w[fail], "fail"], ["death", %w[fail], "fail"],
                  ["error", "fail", %w[fail]]], told_of(6)
    assert_equal [0, 0], [redis.call("ZCARD", "dead"), redis.call("ZCARD", "retry")]
  end
end
