# frozen_string_literal: true

require "support/both_sides"

# What Sidekiq's names enqueue.
class SidekiqEnqueueTest < BothSides
  MAIL = <<~RUBY
    class Mail
      include Sidekiq::Job
      sidekiq_options queue: :mail, retry: 5, backtrace: 3, dead: false, tags: ["a"], expires_in: 60, custom: { a: { b: 1 } }

      def perform(*) = nil
    end
  RUBY

  def test_a_job_and_its_options
    made = both(<<~RUBY)
      #{MAIL}
      Mail.perform_async("ada", { "a" => [1, nil, 2.5] }).match?(/\\A\\h{24}\\z/)
    RUBY
    assert made.answer
    assert_equal [["ada", { "a" => [1, nil, 2.5] }], 60, { "a" => { "b" => 1 } }],
                 made.stored["mail"].first.values_at("args", "expires_in", "custom")
  end

  def test_when_it_is_due
    made = both(<<~RUBY)
      #{MAIL}
      Mail.perform_in(3600, "in")
      Mail.perform_at(Time.now + 7200, "at")
      Mail.perform_at(Time.now.to_f + 9000, "number")
      Mail.perform_at(Time.now - 60, "past")
      Mail.perform_in(-5, "negative")
      Mail.set(wait: 1800).perform_async("wait")
      Mail.set(wait_until: Time.now + 600).perform_async("wait_until")
      Mail.set(queue: "other").perform_in(60, "set").size
    RUBY
    assert_equal({ "set" => 1, "wait_until" => 10, "wait" => 30, "in" => 60, "at" => 120, "number" => 150 },
                 made.stored["schedule"].to_h { |job| [job["args"].first, job["due"].minutes_from_now] })
    assert_equal %w[negative past], made.stored["mail"].map { |job| job["args"].first }
  end

  # ActiveSupport's durations and times are told by `to_f`.
  def test_a_duration_of_activesupport
    both(<<~RUBY)
      require "active_support"
      require "active_support/core_ext"
      #{MAIL}
      Mail.perform_in(1.hour, "in")
      Mail.perform_at(2.hours.from_now, "at")
      Mail.set(retry_for: 2.days).perform_async("for").size
    RUBY
  end

  # The real one knows no Date without a time.
  def test_a_date
    made = run_one(:ours, <<~RUBY)
      require "date"
      #{MAIL}
      Mail.perform_at(Date.today + 2, "date")
      Mail.perform_at(DateTime.now + 1, "datetime").size
    RUBY
    assert_equal %w[datetime date], made.stored["schedule"].map { |job| job["args"].first }.sort.reverse
  end

  def test_set
    both(<<~RUBY)
      #{MAIL}
      Mail.set(queue: "x", retry: false).set(retry: 2, "custom" => 7).perform_async(1)
      Mail.set(tags: %w[b c], retry_queue: "low", bid: "b-1").perform_async(2).size
    RUBY
  end

  def test_many
    made = both(<<~RUBY)
      #{MAIL}
      at = Time.now.to_f
      [Mail.perform_bulk([[1], [2, 3]]).size, Mail.perform_bulk([[4], [5], [6]], batch_size: 2).size,
       Mail.set(queue: "x").perform_bulk([[7]]).size, Mail.perform_bulk([[8], [9]], at: at + 3600).size,
       Mail.perform_bulk([[10], [11]], at: [at + 60, at + 120]).size, Mail.perform_bulk([]).size,
       Mail.perform_bulk((12..13).lazy.map { |i| [i] }).size,
       Sidekiq::Client.push_bulk("class" => "Other", "args" => [[1], [2]], "queue" => "y").size]
    RUBY
    assert_equal [2, 3, 1, 2, 2, 0, 2, 2], made.answer
  end

  # Sidekiq stores a past time as it is, so the job goes through the set as well.
  def test_many_at_a_past_time
    made = both(<<~RUBY)
      #{MAIL}
      past = Time.now.to_f - 600
      [Mail.perform_bulk([[1], [2]], at: past).size, Mail.perform_bulk([[3], [4]], at: [past, past + 1200]).size,
       Mail.set(queue: "x").perform_bulk([[5]], at: past).size,
       Sidekiq::Client.push_bulk("class" => Mail, "args" => [[6]], "at" => past).size,
       Sidekiq::Client.push("class" => Mail, "args" => [7], "at" => past).size]
    RUBY
    assert_equal [nil, [[-10, 6], [10, 1]]],
                 [made.stored["mail"], made.stored["schedule"].map { |job| job["due"].minutes_from_now }.tally.sort]
  end

  # The real one documents seconds from now as well, and takes them for a time in 1970.
  def test_many_at_a_time_from_now
    made = run_one(:ours, <<~RUBY)
      require "active_support"
      require "active_support/core_ext"
      #{MAIL}
      [Sidekiq::Client.push_bulk("class" => Mail, "args" => [[1]], "at" => 5.minutes).size,
       Sidekiq::Client.push_bulk("class" => Mail, "args" => [[2]], at: 10.minutes).size,
       Mail.perform_bulk([[3], [4]], at: [20.minutes, 30.minutes.to_i]).size, Mail.perform_bulk([[5]], at: -5.minutes).size,
       Mail.perform_bulk([[6]], spread_interval: 1.second).size]
    RUBY
    assert_equal [[1, 1, 2, 1, 1], [nil, [-5, 0, 5, 10, 20, 30]]],
                 [made.answer, [made.stored["mail"], made.stored["schedule"].map { |job| job["due"].minutes_from_now }]]
  end

  def test_many_at_what_is_a_number_to_activesupport
    code = <<~RUBY
      require "active_support"
      require "active_support/core_ext"
      #{MAIL}
      now = 20.years.to_i + 1_500_000_000
      [5.minutes, [5.minutes, 6.minutes], [], [nil, 1], Time.now, [Time.now, 1], "1"].map do |at|
        Sidekiq::Client.push_bulk("class" => Mail, "args" => [[1], [2]], "at" => at).size
      rescue => error
        error.class.name
      end
    RUBY
    theirs, ours = SIDES.keys.map { |side| run_one(side, code) }
    assert_equal [2, 2] + ["ArgumentError"] * 5, theirs.answer
    assert_equal theirs.answer, ours.answer
    assert_equal theirs.stored["schedule"].size, ours.stored["schedule"].size
  end

  def test_many_that_are_spread
    code = <<~RUBY
      #{MAIL}
      Mail.perform_bulk([[1], [2], [3]], spread_interval: 60).size
    RUBY
    BothSides::SIDES.each_key do |side|
      made = run_one(side, code)
      assert_equal 3, made.answer
      assert_equal [[1], [2], [3]], made.stored["schedule"].map { |job| job["args"] }.sort
      assert_includes 0..1, made.stored["schedule"].last["due"].minutes_from_now
    end
  end

  def test_options_are_inherited
    both(<<~RUBY)
      #{MAIL}
      class Sub < Mail
        sidekiq_options retry: 1
      end
      class SubSub < Sub; end
      class Plain
        include Sidekiq::Worker
        sidekiq_class_attribute :colour
        self.colour = "red"
        queue_as :as
      end
      class Other < Plain; end
      Sidekiq.default_job_options = { "retry" => 7, backtrace: true }
      class Later
        include Sidekiq::Job
      end
      [SubSub, Other, Later, Mail].each(&:perform_async)
      red = [Other.colour, Other.new.colour]
      Other.colour = "blue"
      [red, Other.colour, Plain.colour, [SubSub, Plain, Later].map(&:get_sidekiq_options)]
    RUBY
  end

  def test_the_client
    both(<<~RUBY)
      #{MAIL}
      Sidekiq::Client.push("class" => Mail, "args" => [1])
      Sidekiq::Client.push("class" => "Mail", "args" => [2], "queue" => "q", "jid" => "mine", "retry" => false, "x" => { "y" => 1 })
      Sidekiq::Client.push("class" => "Mail", "args" => [3], "at" => Time.now.to_f + 60, "created_at" => Time.now.to_f)
      Sidekiq::Client.new.push("class" => Mail, "args" => [4])
      Sidekiq::Client.enqueue(Mail, 5)
      Sidekiq::Client.enqueue_to(:low, Mail, 6)
      Sidekiq::Client.enqueue_to_in("low", 60, Mail, 7)
      Sidekiq::Client.enqueue_in(60, Mail, 8)
      Mail.client_push("class" => Mail, "args" => [9]).size
    RUBY
  end

  def test_what_is_refused
    made = both(<<~'RUBY')
      class Mail
        include Sidekiq::Job
      end
      class None; end
      [-> { Mail.perform_async(:symbol) }, -> { Mail.perform_async({ a: 1 }) }, -> { Mail.perform_async(Time.now) },
       -> { Sidekiq::Client.push("class" => "A") }, -> { Sidekiq::Client.push("class" => 5, "args" => []) },
       -> { Sidekiq::Client.push("class" => None, "args" => []) }, -> { Sidekiq::Client.push("class" => "A", "args" => 1) },
       -> { Sidekiq::Client.push("class" => "A", "args" => [], "at" => "1") },
       -> { Sidekiq::Client.push("class" => "A", "args" => [], "tags" => "x") },
       -> { Sidekiq::Client.push("class" => "A", "args" => [], "queue" => "") }, -> { Mail.perform_bulk([1]) },
       -> { Mail.perform_bulk([[1]], at: "x") }, -> { Mail.perform_bulk([[1]], at: [1, 2]) },
       -> { Mail.perform_bulk([[1]], spread_interval: -1) }, -> { Mail.perform_bulk([[1]], spread_interval: 1, at: 1) },
       -> { Mail.client_push(class: Mail, args: []) }, -> { Mail.delay }, -> { Mail.delay_for(1) },
       -> { Sidekiq::Client.via(nil) {} }, -> { Sidekiq.redis }, -> { Sidekiq.testing!(:other) }].map do |call|
        call.call.inspect
      rescue => error
        error.class.name
      end
    RUBY
    assert_equal ["ArgumentError"] * 20 + ["RuntimeError"], made.answer
  end

  def test_arguments_that_are_not_strict
    made = both(<<~RUBY)
      class Mail
        include Sidekiq::Job
      end
      Sidekiq.strict_args!(false)
      Mail.perform_async(:symbol, { a: :b })
      Mail.perform_bulk([[:many]])
      Sidekiq.strict_args!(:warn)
      Mail.perform_async(:warned).size
    RUBY
    assert_equal [["warned"], ["many"], ["symbol", { "a" => "b" }]], made.stored["default"].map { |job| job["args"] }
  end

  def test_inline
    made = both(<<~RUBY)
      class Server
        def call(_instance, job, queue)
          RAN << [:server, queue, job["custom"]]
          yield
        end
      end
      RAN = []
      class Mail
        include Sidekiq::Job

        def perform(what, hash) = RAN << [what, hash, jid.size]
      end
      Sidekiq.default_configuration.server_middleware { |chain| chain.add(Server) }
      [Mail.perform_inline("a", { "b" => 1 }), Mail.perform_sync("b", {}), Mail.set(sync: true, custom: 1).perform_async("c", nil),
       Mail.set(queue: "x").perform_inline("d", nil), RAN]
    RUBY
    assert_equal [true, true, true, true], made.answer.first(4)
    assert_equal ["a", { "b" => 1 }, 24], made.answer.last[1]
  end

  def test_shards
    made = both(<<~RUBY)
      #{MAIL}
      pool = Sidekiq::RedisConnection.create(url: ENV.fetch("REDIS_URL"), db: 1, size: 2)
      Sidekiq::Client.via(pool) { Mail.perform_async("there") }
      Mail.set("pool" => pool).perform_async("pool")
      Mail.perform_async("here")
      found = pool.with { |redis| redis.call("LRANGE", "queue:mail", 0, -1).map { |entry| JSON.parse(entry)["args"] } }
      pool.with { |redis| redis.flushdb }
      found
    RUBY
    assert_equal [[["pool"], ["there"]], [["here"]]], [made.answer, made.stored["mail"].map { |job| job["args"] }]
  end

  # As programs make pools themselves.
  POOLS = <<~'RUBY'
    require "redis-client"
    RedisClient.const_get(:Pooled) # brings ConnectionPool
    OF_THE_SAME_KIND = ConnectionPool.new(size: 1) do
      Sidekiq::RedisConnection.create(url: ENV.fetch("REDIS_URL"), db: 2, size: 1).with { |redis| redis }
    end
  RUBY

  def test_shards_by_a_connection_pool
    made = both(<<~RUBY)
      #{MAIL}
      #{POOLS}
      class Look
        def call(_class, _job, _queue, pool) = yield.tap { SEEN << POOL.equal?(pool) }
      end
      SEEN = []
      POOL = OF_THE_SAME_KIND
      Sidekiq.default_configuration.client_middleware { |chain| chain.add(Look) }
      Sidekiq::Client.via(POOL) do
        Mail.perform_async("via")
        Mail.perform_in(3600, "later")
        Mail.perform_bulk([["many"], ["more"]])
        SEEN << Sidekiq.redis { |redis| redis.call("LLEN", "queue:mail") }
      end
      Mail.set("pool" => POOL).perform_async("set")
      Sidekiq::Client.new(pool: POOL).push("class" => Mail, "args" => ["new"])
      class Sharded < Mail
        sidekiq_options pool: POOL
      end
      Sharded.perform_async("class")
      SEEN << Sidekiq::Client.new(pool: POOL).redis_pool.equal?(POOL)
      Mail.perform_async("here")
      found = POOL.with do |redis|
        [redis.call("LRANGE", "queue:mail", 0, -1).map { |entry| JSON.parse(entry)["args"].first }, redis.call("ZCARD", "schedule"),
         redis.call("FLUSHDB")]
      end
      [found, SEEN]
    RUBY
    assert_equal [%w[class new set more many via], 1, "OK"], made.answer[0]
    assert_equal [["here"]], made.stored["mail"].map { |job| job["args"] }
  end

  # The real one takes clients of its own alone. These are what a program has that knows redis-client.
  def test_shards_by_clients_of_redis_client
    made = run_one(:ours, <<~RUBY)
      #{MAIL}
      #{POOLS}
      there = RedisClient.config(url: ENV.fetch("REDIS_URL"), db: 2)
      pools = [ConnectionPool.new(size: 1) { there.new_client }, there.new_pool(size: 1)]
      pools.each { |pool| Sidekiq::Client.via(pool) { Mail.perform_async(pool.class.name) } }
      wrong = [ConnectionPool.new { Object.new }, Object.new, "redis://", 5].map do |pool|
        Sidekiq::Client.via(pool) { Mail.perform_async }
      rescue => error
        [error.class.name, error.message]
      end
      [there.new_client.call("LRANGE", "queue:mail", 0, -1).map { |entry| JSON.parse(entry)["args"].first }, wrong]
    RUBY
    assert_equal [%w[RedisClient::Pooled ConnectionPool], ["ArgumentError"] * 4], [made.answer[0], made.answer[1].map(&:first)]
    made.answer[1].each { |_, message| assert_match(/pool.*Sidekiq::RedisConnection.create/, message) }
  end

  def test_what_gems_include
    both(<<~RUBY)
      #{MAIL}
      class Gem::Like
        include Sidekiq::JobUtil
      end
      like = Gem::Like.new
      item = like.normalize_item("class" => Mail, "args" => [1], "queue" => :other, "retry_for" => 3.5)
      plain = item.except("jid", "created_at")
      errors = [{ "class" => Mail }, { "class" => Mail, "args" => 1 }, { "class" => Mail, "args" => [], "at" => "x" },
                { "class" => "Mail", "args" => [], "queue" => "" }].map do |wrong|
        like.normalize_item(wrong)
      rescue => error
        error.class.name
      end
      unsafe = begin
        like.verify_json("class" => "Mail", "args" => [:a])
      rescue => error
        error.class.name
      end
      [plain, item["jid"].size, (Time.now.to_f * 1000 - item["created_at"]).abs < 60_000, errors, unsafe, like.verify_json("args" => [1]),
       (Time.now.to_f * 1000 - like.now_in_millis).abs < 60_000, like.normalized_hash(Mail), like.normalized_hash("Mail"),
       like.validate("class" => "A", "args" => [])]
    RUBY
  end

  def test_a_shard_that_is_shut_down_leaves_no_connection
    made = run_one(:ours, <<~RUBY)
      #{MAIL}
      pool = Sidekiq::RedisConnection.create(url: ENV.fetch("REDIS_URL"))
      Sidekiq::Client.via(pool) { Mail.perform_async }
      sockets = -> { ObjectSpace.each_object(UNIXSocket).count { |socket| !socket.closed? } }
      before = sockets.call
      pool.shutdown
      [before, sockets.call]
    RUBY
    assert_equal [1, 0], made.answer
  end

  # Five jobs go in three calls: two, two and one.
  def test_what_is_stored_before_a_batch_is_refused
    made = run_one(:ours, <<~RUBY)
      #{MAIL}
      calls = 0
      Ringspun::Jobs.storage.define_singleton_method(:push) do |pushes, **options|
        raise Ringspun::Jobs::StorageError, "full" if (calls += 1) > 1

        super(pushes, **options)
      end
      begin
        Sidekiq::Client.push_bulk("class" => Mail, "args" => [[1], [2], [3], [4], [5]], batch_size: 2)
      rescue Ringspun::Jobs::BulkError => error
        error.results.map { |result| result.is_a?(String) ? "stored" : result.message }
      end
    RUBY
    assert_equal [%w[stored stored full full], [2, 1]], [made.answer, made.stored["mail"].flat_map { |job| job["args"] }]
  end

  def test_a_middleware_that_deletes_when_a_job_is_due
    made = both(<<~RUBY)
      #{MAIL}
      class Soon
        def call(_job_class, job, *)
          job.delete("at")
          yield
        end
      end
      Sidekiq.default_configuration.client_middleware { |chain| chain.add(Soon) }
      Mail.perform_in(3600).size
    RUBY
    assert_equal [1, 0], made.stored.values_at("mail", "schedule").map(&:size)
  end

  # Sidekiq knows none, and its workers look into the queue's list alone.
  def test_a_field_named_priority
    through = <<~RUBY
      class Through
        def call(*) = yield
      end
      Sidekiq.default_configuration.client_middleware { |chain| chain.add(Through) }
    RUBY
    ["", through].each do |middleware|
      made = both(<<~RUBY)
        #{middleware}
        class Prior
          include Sidekiq::Job
          sidekiq_options priority: 5
        end
        Prior.perform_async(1)
        Prior.set(priority: -5).perform_async(2).size
      RUBY
      assert_equal [-5, 5], made.stored["default"].map { |job| job["priority"] }
    end
  end

  def test_queues_that_no_program_may_have
    made = run_one(:ours, <<~RUBY)
      #{MAIL}
      ["", "ringspun-quarantine"].map do |queue|
        Mail.set(queue: queue).perform_async
      rescue ArgumentError => error
        error.message
      end
    RUBY
    assert_equal ["", "ringspun-quarantine"].map { |queue|
      "queue must be the name of a queue that programs may have, got #{queue.inspect}"
    }, made.answer
  end

  def test_a_priority_of_ours
    made = run_one(:ours, <<~RUBY)
      class Prior
        include Sidekiq::Job
        sidekiq_options ringspun_priority: 5, priority: "high"
      end
      3.times { |number| Prior.set("ringspun_priority" => -number).perform_async(number) }
      Ringspun::Jobs.enqueue(Prior, "ours")
      begin
        Prior.set("ringspun_priority" => 101).perform_async("refused")
      rescue ArgumentError => error
        message = error.message
      end
      [message, Ringspun::Jobs.storage.list("default", 0, 9).map { |job| JSON.parse(job.entry)["args"].first }]
    RUBY
    assert_equal ["ringspun_priority must be an Integer from -100 to 100, got 101", [2, 1, 0, "ours"]], made.answer
  end

  # What a strand or thread of the parent's had lent at the fork never comes back in the child.
  def test_a_forked_child_of_a_busy_pool
    made = run_one(:ours, <<~RUBY)
      #{MAIL}
      pool = Sidekiq::RedisConnection.create(url: ENV.fetch("REDIS_URL"), size: 1)
      Sidekiq::Client.via(pool) { Mail.perform_async("parent") }
      pool.with do |redis|
        Process.wait(fork do
          Thread.new { pool.with { |other| other.set("from", "child") } }.join
          Sidekiq::Client.via(pool) { Mail.perform_async("child") }
          exit!(true)
        end)
        [$?.success?, redis.get("from")]
      end
    RUBY
    assert_equal [[true, "child"], %w[child parent]], [made.answer, made.stored["mail"].flat_map { |job| job["args"] }]
  end

  # The first one lets the other come in while it makes the enqueuer.
  def test_threads_that_want_a_shard_for_the_first_time
    made = run_one(:ours, <<~RUBY)
      pool = Sidekiq::RedisConnection.create(url: ENV.fetch("REDIS_URL"))
      made = 0
      other = nil
      Ringspun::Jobs::Enqueuer.define_singleton_method(:new) do |*arguments, **options|
        if (made += 1) == 1
          other = Thread.new { pool.enqueuer }
          Thread.pass until other.stop?
        end
        super(*arguments, **options)
      end
      [pool.enqueuer.equal?(other.value), made]
    RUBY
    assert_equal [true, 1], made.answer
  end

  def test_redis
    made = both(<<~RUBY)
      Sidekiq.redis do |redis|
        redis.set("a", 1)
        redis.call("SET", "b", "2")
        redis.hset("h", "x", 1)
        answers = redis.pipelined { |pipe| [pipe.get("a"), pipe.incr("a")] }
        both = redis.multi { |pipe| pipe.incr("a") }
        again = Sidekiq.redis { |other| other.get("b") }
        [answers, both, again, redis.hgetall("h"), redis.exists("none"), redis.info.key?("redis_version"),
         Sidekiq.redis_pool.with { |other| other.get("b") }]
      end
    RUBY
    assert_equal [["1", 2], [3], "2", { "x" => "1" }, 0, true, "2"], made.answer
  end

  # As by Sidekiq Enterprise, which is not here to compare with.
  def test_unique_jobs
    made = run_one(:ours, <<~RUBY)
      class Mail
        include Sidekiq::Job
        sidekiq_options unique_for: 600, unique_until: :start
      end
      [Mail.perform_async(1), Mail.perform_async(1), Mail.perform_async(2)].map { |jid| jid&.size }
    RUBY
    assert_equal [24, nil, 24], made.answer
    assert_equal [600, "start"], made.stored["default"].last.values_at("unique_for", "unique_until")
  end
end
