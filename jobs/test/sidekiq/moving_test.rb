# frozen_string_literal: true

require "support/both_sides"

# The steps of the guide: one program, whose clients and workers change sides while jobs wait, are scheduled and have failed.
class SidekiqMovingTest < BothSides
  PROGRAM = <<~'RUBY'
    Sidekiq.configure_server { |config| config[:poll_interval_average] = 0.1 } # the real one else waits for up to 15 s

    class Work
      include Sidekiq::Job
      sidekiq_options retry: 3, custom: "kept"
      sidekiq_retry_in { 1000 }

      def perform(what)
        redis = RedisClient.new(url: ENV.fetch("REDIS_URL"), timeout: 60)
        redis.call("LPUSH", "told", JSON.generate([what, jid]))
        raise ArgumentError, "as told" if what == "fail"
      ensure
        redis&.close
      end
    end
  RUBY

  # What the code of one side enqueues stays in Redis.
  def enqueue(side, code)
    program = ForkedProgram.ruby(SIDES[side], "require \"json\"\n#{PROGRAM}\n#{code}", env: { "REDIS_URL" => url })
    @programs << program
    assert_predicate program.wait, :success?, program.log
  end

  # There and back again.
  [%i[theirs ours], %i[ours theirs]].each do |before, after|
    define_method(:"test_clients_go_from_#{before}_first") do
      start_side(before, PROGRAM)
      enqueue(after, "Work.perform_async('new'); Work.perform_bulk([['a'], ['b']]); Work.perform_in(3600, 'later')")
      assert_equal %w[a b new], told_of(3).map(&:first).sort
      assert_equal %w[later], job_of("schedule")["args"]
    end

    define_method(:"test_workers_go_from_#{before}") do
      old = start_side(before, PROGRAM)
      enqueue(before, "Work.perform_async('fail'); Work.perform_in(3600, 'later')")
      jid = told.last
      entry_of("retry")
      old.stop
      enqueue(before, "Work.perform_async('waits')")
      make_due("retry")
      make_due("schedule")
      start_side(after, PROGRAM)
      told = told_of(3)
      assert_equal %w[fail later waits], told.map(&:first).sort
      assert_includes told, ["fail", jid]
      job = soon("it has failed again") { redis.call("ZRANGE", "retry", 0, -1).map { |entry| JSON.parse(entry) }.first }
      assert_equal [1, "kept", 3, jid], job.values_at("retry_count", "custom", "retry", "jid")
    end
  end
end
