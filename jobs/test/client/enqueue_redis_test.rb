# frozen_string_literal: true

require "jobs_helper"
require "support/servers"
require_relative "../support/proxy"

# The whole way of a job into Redis, by each strategy, from strands and from threads.
class EnqueueRedisTest < Minitest::Test
  include AnyBackend
  include Servers::Redis
  include Strands
  include Children

  Jobs = Ringspun::Jobs

  class HardWorker
    include Jobs::Job
  end

  class Once
    include Jobs::Job
    job_options unique_for: 60
  end

  def setup
    Jobs.configure do |config|
      config.redis = { path: redis_path }
      config.namespace = "enqueue-#{Process.pid}-#{object_id}"
    end
  end

  def teardown
    Jobs.configure do |config|
      config.redis = {}
      config.namespace = ""
      config.strategy = :group_commit
    end
  end

  def stored(queue = "default") = Jobs.storage.list(queue, 0, 100_000).map { |job| JSON.parse(job.entry) }

  def use(strategy) = Jobs.configure { |config| config.strategy = strategy }

  # @return [Array] each caller's arguments, in the order in which it has enqueued them
  def arguments(callers, jobs) = Array.new(callers) { |caller| Array.new(jobs) { |number| [caller, number] } }

  def assert_stored(expected, jids)
    all = stored
    assert_equal jids.sort, all.map { |job| job["jid"] }.sort
    assert_equal(expected, all.map { |job| job["args"] }.group_by(&:first).sort.map(&:last))
  end

  %i[group_commit single named_pool pool].each do |strategy|
    define_method(:"test_strands_by_#{strategy}") do
      use(strategy)
      expected = arguments(7, 50)
      jids = Ringspun.run do
        machine.await(*expected.map { |all| machine.spin { all.map { |each| HardWorker.perform_async(*each) } } })
      end
      assert_stored(expected, jids.flatten)
    end

    define_method(:"test_threads_by_#{strategy}") do
      use(strategy)
      expected = arguments(4, 25)
      jids = expected.map { |all| Thread.new { all.map { |each| HardWorker.perform_async(*each) } } }.map(&:value)
      assert_stored(expected, jids.flatten)
    end
  end

  def test_bulk_and_single_jobs_beside_each_other
    Ringspun.run do
      bulk = machine.spin { HardWorker.perform_bulk(Array.new(2500) { |number| [0, number] }) }
      single = machine.spin { Array.new(20) { |number| HardWorker.perform_async(1, number) } }
      assert_stored([Array.new(2500) { |number| [0, number] }, Array.new(20) { |number| [1, number] }],
                    machine.await(bulk, single).flatten)
    end
  end

  def test_only_one_of_many_gets_the_lock
    jids = Ringspun.run { machine.await(*Array.new(10) { machine.spin { Once.perform_async(1) } }) }
    assert_equal 1, jids.compact.size
    assert_equal jids.compact, stored.map { |job| job["jid"] }
  end

  # As in a transaction of a database: the job is there when the caller commits.
  def test_a_connection_of_the_callers
    connection = Jobs.storage.connect
    connection.call("MULTI")
    jid = HardWorker.set(connection: connection).perform_async("mine")
    bulk = HardWorker.set(connection: connection).perform_bulk([["more"], ["and more"]])
    theirs = HardWorker.perform_async("theirs")
    assert_equal([theirs], stored.map { |job| job["jid"] })
    connection.call("EXEC")
    assert_equal([theirs, jid, *bulk], stored.map { |job| job["jid"] })
  ensure
    connection.close
  end

  def test_a_connection_that_is_none_of_the_storage
    [Object.new, true].each do |connection|
      error = assert_raises(Ringspun::UsageError) { HardWorker.set(connection: connection).perform_async }
      assert_match(/must be what connect of the storage has made, got #{connection.class}; .*after_commit: true/, error.message)
    end
    assert_empty stored
  end

  def test_what_waits_for_its_time
    HardWorker.perform_in(60, "later")
    HardWorker.set(unique_for: 5).perform_at(Time.now + 120, "at")
    jobs = Jobs.storage.scan(:schedule, 0, 10)
    assert_equal([["later"], ["at"]], jobs.map { |job| JSON.parse(job.entry)["args"] })
    assert_in_delta jobs[0].at + 60, jobs[1].at, 30
  end

  def test_a_server_that_is_not_there
    Jobs.configure { |config| config.redis = { path: "/nowhere/redis.sock" } }
    error = assert_raises(Jobs::UnavailableError) { HardWorker.perform_async }
    assert_match(/cannot be reached/, error.message)
  end

  # @yieldparam proxy [Proxy] between us and the server
  def through_a_proxy
    proxy = Proxy.new { UNIXSocket.new(redis_path) }
    Jobs.configure { |config| config.redis = { url: proxy.url } }
    HardWorker.perform_async("first") # connects
    yield proxy
  ensure
    Jobs.configure { |config| config.redis = { path: redis_path } }
    proxy.close
  end

  def test_when_the_answer_is_lost_only_locked_jobs_are_sent_again
    through_a_proxy do |proxy|
      Ringspun.run do
        # From now on the server knows the script.
        HardWorker.set(unique_for: 60).perform_async("second")
        proxy.swallow
        plain = Array.new(3) { |number| machine.spin { HardWorker.perform_async(number) } }
        locked = machine.spin { HardWorker.set(unique_for: 60).perform_async("locked") }
        plain.each { |strand| assert_ends_with Jobs::UnknownOutcomeError, strand }
        assert_equal 24, locked.await.size
      end
    end
    assert_equal [["first"], ["second"], [0], [1], [2], ["locked"]].sort_by(&:to_s),
                 stored.map { |job| job["args"] }.sort_by(&:to_s)
  end

  def test_a_server_that_goes_and_comes_back
    through_a_proxy do |proxy|
      proxy.refusing = true
      proxy.cut
      assert_raises(Jobs::UnknownOutcomeError) { HardWorker.perform_async("cut") }
      assert_raises(Jobs::UnavailableError) { HardWorker.perform_async("refused") }
      proxy.refusing = false
      assert HardWorker.perform_async("again")
    end
    assert_equal([["first"], ["again"]], stored.map { |job| job["args"] })
  end

  def test_a_refusal_of_the_server
    Jobs.enqueue_all([["Other", 1]])
    RedisClient.config(path: redis_path, timeout: 60).new_client.then do |client|
      client.call("SET", "#{Jobs.config.namespace}:queue:wrong", "text")
      client.close
    end
    results = assert_raises(Jobs::BulkError) do
      Jobs.enqueue_all([[HardWorker, 1], [HardWorker.set(queue: "wrong"), 2], [HardWorker, 3]])
    end.results
    assert_equal [String, Jobs::StorageError, String], results.map(&:class)
    assert_raises(Jobs::StorageError) { HardWorker.set(queue: "wrong").perform_async }
    assert_equal 3, stored.size
  end

  def test_a_forked_child_enqueues_as_well
    parent = HardWorker.perform_async("parent")
    ended = in_child do
      HardWorker.perform_async("child")
      Ringspun.run { HardWorker.perform_async("strand of the child") }
    end
    assert_predicate ended, :success?
    assert HardWorker.perform_async("parent again")
    assert_equal([["parent"], ["child"], ["strand of the child"], ["parent again"]], stored.map { |job| job["args"] })
    assert_equal 4, stored.map { |job| job["jid"] }.uniq.size
    assert_equal parent, stored.first["jid"]
  end

  # Its threads still wait for their answers, and would be killed before these come.
  def test_the_end_of_a_program_waits_for_what_is_under_way
    code = <<~RUBY
      $LOAD_PATH.unshift(#{File.expand_path("../../lib", __dir__).inspect}, *#{Gem.loaded_specs.values.flat_map(&:full_require_paths).inspect})
      require "ringspun/jobs"
      Ringspun::Jobs.configure { |config| config.redis = { path: #{redis_path.inspect} }; config.namespace = #{Jobs.config.namespace.inspect} }
      first = Thread.new { Ringspun::Jobs.enqueue("Last", 1) }
      Thread.pass until first.status == "sleep" || !first.alive?
    RUBY
    answer = child(code)
    assert_equal ["", "", true], [answer.out, answer.err, answer.status.success?]
    assert_equal([[1]], stored.map { |job| job["args"] })
  end
end
