# frozen_string_literal: true

require "jobs_helper"
require "support/command_case"

# The limit of a queue in worker processes that are killed, frozen, and cut off from Redis.
class LimitsCommandTest < CommandCase
  include Strands

  SETTINGS = "#{LEASE}limits: { default: 1 }\n"

  PROGRAM = <<~'RUBY'
    require "redis-client"

    # Notes that it begins and how it ends, and ends when somebody has let that run of it go: each is called by the job and its
    # process.
    class Hold
      include Ringspun::Jobs::Job

      def perform(name)
        @run = "#{name} #{Process.pid}"
        @redis = RedisClient.new(path: ENV.fetch("SEEN"), timeout: 60)
        tell("begun")
        sleep 0.02 until @redis.call("SISMEMBER", "go", @run) == 1
        tell("ended")
      rescue Ringspun::Cancelled
        Ringspun.shield { tell("cancelled") }
        raise
      ensure
        @redis&.close
      end

      def tell(what) = @redis.call("RPUSH", "told", "#{what} #{@run}")
    end
  RUBY

  def worker(*words, **) = start(*words, **).tap { |one| one.await(/the worker is ready/) }

  def push(*names)
    storage.push(names.map do |name|
      entry = Jobs::Wire.dump({ "class" => "Hold", "args" => [name], "queue" => "default", "jid" => name, "retry" => true })
      Storage::Push.new(queue: "default", entry:, jid: name)
    end)
  end

  def told = call("LRANGE", "told", 0, -1)

  # @return [String] what was told as the first, second, and so on
  def told_as(number)
    yield_until("so much is told") { sleep(0.01) && told.size >= number }
    told[number - 1]
  end

  def let_go(line) = call("SADD", "go", line.split(" ", 2).last)

  # A worker that is frozen or cut off while it waits for suspects may be given the job again, which then is taken from it twice.
  def all_is_done
    yield_until("all is done") { sleep(0.01) && storage.stats[:in_flight].zero? && storage.stats[:twice].positive? }
    assert_equal %w[a a b c], told.grep(/\Abegun /).map { |line| line.split[1] }
  end

  def test_what_was_killed_and_its_heir_are_never_two
    push("a", "b")
    first = worker
    told_as(1)
    second = worker
    first.signal(:KILL)
    first.wait
    lapse(first.pid)
    run = told_as(2)
    assert_match(/\Abegun a /, run)
    let_go(run)
    told_as(3)
    assert_match(/\Abegun b /, run = told_as(4))
    assert_match(/\Aended a /, told[2])
    let_go(run)
    told_as(5)
    yield_until("all is done") { sleep(0.01) && storage.stats[:in_flight].zero? }
    assert_equal [2, 0], storage.stats.values_at(:processed, :twice)
    assert_equal 0, second.finish.exitstatus, second.lines.join
  end

  # One beside the old run, until that is there again and hears that it has lost its job.
  def test_what_is_frozen_and_its_heir_are_two_and_never_three
    push("a", "b", "c")
    first = worker
    told_as(1)
    second = worker
    first.signal(:STOP)
    lapse(first.pid)
    heir = told_as(2)
    assert_match(/\Abegun a /, heir)
    let_go(heir)
    told_as(3)
    assert_match(/\Abegun b /, run = told_as(4))
    first.signal(:CONT)
    assert_match(/\Acancelled a /, told_as(5))
    first.await(/jid=a .*taken away while it runs: it ends here/)
    let_go(run)
    told_as(6)
    assert_match(/\Abegun c /, run = told_as(7))
    let_go(run)
    all_is_done
    assert_equal [[0] * 2, 3], [[first, second].map { |one| one.finish.exitstatus }, storage.stats[:processed]]
  end

  def test_what_is_cut_off_and_its_heir_are_two_and_never_three
    push("a", "b", "c")
    first = worker("--redis", proxy.url)
    told_as(1)
    second = worker
    proxy.refusing = true
    proxy.cut
    lapse(first.pid)
    heir = told_as(2)
    let_go(heir)
    told_as(3)
    assert_match(/\Abegun b /, run = told_as(4))
    proxy.refusing = false
    assert_match(/\Acancelled a /, told_as(5))
    let_go(run)
    told_as(6)
    assert_match(/\Abegun c /, run = told_as(7))
    let_go(run)
    all_is_done
    assert_equal [0, 0], [first, second].map { |one| one.finish.exitstatus }
  end
end
