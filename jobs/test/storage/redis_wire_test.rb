# frozen_string_literal: true

require "jobs_helper"
require_relative "../support/redis_case"

# servers: valkey

# What stands in Redis, as Sidekiq and Exq read and write it.
class RedisWireTest < RedisCase
  include AnyBackend
  include Strands

  def push(...) = storage.push([push_of(...)])

  def fetch = storage.fetch(NODE, ["default"], 10).first

  def done(fetched, **) = Storage::Ack.new(queue: fetched.queue, token: fetched.token, jid: "a", **)

  def failed(fetched, to, **) = Storage::Failure.new(queue: fetched.queue, token: fetched.token, jid: "a", to: to, **)

  def test_a_queue_is_a_list_with_the_new_ones_on_the_left
    push("one")
    push("two")
    assert_equal [%w[default], %w[two one]], [call("SMEMBERS", "queues"), call("LRANGE", "queue:default", 0, -1)]
  end

  def test_what_is_for_later_is_scored_in_seconds
    push(at: 12.25)
    assert_equal [[JOB, 12.25]], call("ZRANGE", "schedule", 0, -1, "WITHSCORES")
  end

  def test_what_is_in_flight_is_in_a_list_of_the_node
    push
    push("{}")
    storage.fetch(NODE, ["default"], 10)
    assert_equal [["{}", JOB], %w[default], [NODE]],
                 [call("LRANGE", "queue:backup::host:1:aa::default", 0, -1), call("SMEMBERS", "ringspun:lists:#{NODE}"),
                  call("SMEMBERS", "ringspun:nodes")]
  end

  def test_a_wait_registers_the_list_first
    Ringspun.run do
      strand = machine.spin { storage.wait_any(NODE, ["x::y"], 60) }
      yield_until("the list is registered, and has no job") do
        [%w[x::y], [NODE]] == [call("SMEMBERS", "ringspun:lists:#{NODE}"), call("SMEMBERS", "ringspun:nodes")]
      end
      push(queue: "x::y")
      assert_equal [JOB], strand.await.map(&:entry)
    end
  end

  def test_a_lock_is_a_string_that_ends
    push(lock: "abc", lock_seconds: 60)
    assert_equal "a", call("GET", "unique:abc")
    assert_includes 1..60_000, call("PTTL", "unique:abc")
    storage.ack(NODE, [done(fetch, lock: "abc")])
    assert_nil call("GET", "unique:abc")
  end

  def test_a_result_is_a_string_that_ends
    push
    storage.ack(NODE, [done(fetch, result: "[1]", keep_seconds: 60)])
    assert_equal "[1]", call("GET", "ringspun:result:a")
    assert_includes 1..60_000, call("PTTL", "ringspun:result:a")
  end

  def test_a_history_is_a_list_that_ends
    push
    event = Storage::Event.new(kind: :retry, error_class: "E", error_message: "no")
    storage.fail(NODE, [failed(fetch, :retry, delay: 5, event: event)])
    text = call("LRANGE", "ringspun:history:a", 0, -1).then { |all, *more| all if more.empty? }
    assert_equal({ "node" => NODE, "kind" => "retry", "error_class" => "E", "error_message" => "no" },
                 JSON.parse(text).except("at"))
    %w[ringspun:history:a ringspun:histories].each { |key| assert_includes 86_300_000..86_400_000, call("PTTL", key) }
  end

  # As docs/17-jobs.md says.
  def test_the_longest_history_takes_nine_kilobytes
    push
    message = "m" * Jobs::Worker.const_get(:ErrorText)::SHORT_MAX
    text = { error_class: "ActiveRecord::ConnectionTimeoutError", error_message: message }
    30.times { storage.fail(NODE, [failed(fetch, :queue, event: Storage::Event.new(kind: :retry, **text))]) }
    assert_equal 25, call("LLEN", "ringspun:history:a")
    assert_includes 8000..9500, call("MEMORY", "USAGE", "ringspun:history:a", "SAMPLES", 0)
  end

  # Each of a thousand jobs that are done would be looked for otherwise.
  def test_a_job_that_is_done_is_looked_for_only_where_there_are_histories
    push
    storage.ack(NODE, [done(fetch)])
    assert_empty call("KEYS", "ringspun:histor*")
    push
    call("RPUSH", "ringspun:history:a", '{"at":1.5,"kind":"retry"}')
    storage.ack(NODE, [done(fetch)])
    assert_equal [:retry], storage.history("a").map(&:kind)
  end

  # What others write there harms nobody.
  def test_a_history_that_cannot_be_written_keeps_no_job
    call("SET", "ringspun:history:a", "text")
    push
    assert_equal [true], storage.fail(NODE, [failed(fetch, :retry, delay: 5, event: Storage::Event.new(kind: :retry))])
    assert_equal 1, call("ZCARD", "retry")
  end

  def prior(jid, priority) = JSON.generate("class" => "Work", "args" => [], "jid" => jid, "ringspun_priority" => priority)

  def push_prior(jid, priority) = push(prior(jid, priority), priority: priority)

  def levels = call("KEYS", "ringspun:*").grep(/:(priorit|levels)/).sort

  # Others than us see the first one in the queue's list, and those without a priority.
  def test_jobs_of_a_priority_wait_in_a_list_of_their_own
    push_prior("a", 5)
    assert_equal [prior("a", 5)], call("LRANGE", "queue:default", 0, -1)
    push_prior("b", 5)
    push_prior("c", -1)
    push
    assert_equal [[JOB, prior("a", 5)], [prior("b", 5)], [prior("c", -1)], [["-1", -1.0], ["5", 5.0]], %w[default]],
                 [call("LRANGE", "queue:default", 0, -1), call("LRANGE", "ringspun:priority:5:default", 0, -1),
                  call("LRANGE", "ringspun:priority:-1:default", 0, -1),
                  call("ZRANGE", "ringspun:levels:default", 0, -1, "WITHSCORES"), call("SMEMBERS", "ringspun:prioritized")]
    assert_equal [prior("c", -1), JOB, prior("a", 5), prior("b", 5)], storage.fetch(NODE, ["default"], 9).map(&:entry)
    assert_empty levels
  end

  def test_without_priorities_there_is_nothing_of_them
    push
    push_prior("a", 0)
    storage.fail(NODE, [failed(fetch, :queue)])
    storage.leave(NODE)
    assert_equal [[], 2], [levels, call("LLEN", "queue:default")]
  end

  # Nobody looks again by itself meanwhile.
  def without_looks
    waits = Storage::Redis.const_get(:Waits)
    seconds = waits.send(:remove_const, :WAIT_SECONDS)
    waits.const_set(:WAIT_SECONDS, 60)
    yield
  ensure
    waits.send(:remove_const, :WAIT_SECONDS)
    waits.const_set(:WAIT_SECONDS, seconds)
  end

  # Sixteen are dealt at once; each of those who get one of them has the next ones dealt.
  def test_more_may_wait_than_jobs_of_a_priority_are_dealt_at_once
    without_looks do
      Ringspun.run do
        strands = Array.new(40) { |number| machine.spin { storage.wait_any("host:#{number}:aa", ["default"], 60) } }
        yield_until("all wait") { call("CLIENT", "LIST").scan(" cmd=blmove ").size == strands.size }
        storage.push(strands.each_index.map { |number| push_of(prior(number.to_s, 3), priority: 3) })
        yield_until("all have ended") { strands.none?(&:alive?) }
        assert_equal [1] * 40, machine.await(*strands).map(&:size)
      end
    end
  end

  # A worker of others takes from the queue's list, whatever stands there.
  def test_a_job_of_a_priority_that_others_have_taken
    push_prior("a", 5)
    assert_equal prior("a", 5), call("RPOP", "queue:default")
    push
    assert_equal [[JOB], []], [storage.fetch(NODE, ["default"], 9).map(&:entry), levels]
  end

  def test_what_has_the_name_of_a_level_keeps_no_job
    push
    fetched = fetch
    call("SET", "ringspun:levels:default", "text")
    call("SET", "ringspun:prioritized", "text")
    assert_raises(Jobs::StorageError) { storage.fail(NODE, [failed(fetched, :queue, new_entry: prior("a", 5))]) }
    assert_equal [JOB], storage.in_flight(NODE).map(&:entry)
    assert_equal [Jobs::StorageError], push_prior("b", 3).map(&:class)
  end

  def test_a_lock_that_is_not_released_in_the_acknowledgement_stays
    push(lock: "abc", lock_seconds: 60)
    storage.fail(NODE, [failed(fetch, :retry, delay: 5)])
    assert_equal "a", call("GET", "unique:abc")
  end

  def test_leases_are_short
    storage.extend([NODE], 12)
    assert_includes 1..12_000, call("PTTL", "ringspun:alive:#{NODE}")
  end

  # By the day and by the second, of the server's time in UTC.
  def test_counts_what_has_run
    push
    push
    before = call("TIME").first.to_i
    storage.ack(NODE, [done(fetch)])
    push
    storage.fail(NODE, [failed(storage.in_flight(NODE).first, :dead)])
    after = call("TIME").first.to_i
    assert_equal %w[2 1], [call("GET", "stat:processed"), call("GET", "stat:failed")]
    days = [before, after].map { |time| Time.at(time).utc.strftime("%F") }.uniq
    assert_equal 2, days.sum { |day| call("GET", "stat:processed:#{day}").to_i }
    seconds = (before..after).map { |time| Time.at(time).utc.strftime("stat:processed_rt:%F %TZ") }
    assert_equal 2, seconds.sum { |key| call("GET", key).to_i }
    assert_empty call("KEYS", "stat:processed_rt:*") - seconds
    assert_includes 1..120, call("TTL", call("KEYS", "stat:failed_rt:*").first)
    assert_includes 1..(5 * 365 * 86_400), call("TTL", "stat:failed:#{days.last}")
  end

  # The script has a calendar of its own.
  def test_every_day_has_its_name
    text = File.read(File.expand_path("../../lib/ringspun/jobs/storage/redis/scripts/shared/count.lua", __dir__))
    days = ["1970-01-01", "1999-12-31", "2000-02-29", "2023-03-01", "2024-02-29", "2024-03-01", "2024-12-31", "2026-11-22",
            "2100-02-28", "2100-03-01", "2400-02-29"]
    days.product(["00:00:00", "23:59:59", "12:05:09"]).each do |day, time|
      seconds = Time.utc(*day.split("-"), *time.split(":")).to_i
      assert_equal [day, "#{day} #{time}Z"], call("EVAL", "#{text}\nreturn {written(tonumber(ARGV[1]))}", 0, seconds)
    end
  end

  def test_times_in_milliseconds
    storage = open_storage({ path: redis_path }, milliseconds: true)
    storage.push([Storage::Push.new(queue: "default", entry: JOB, at: 5)])
    before = storage.time
    storage.due(1)
    time = JSON.parse(call("LINDEX", "queue:default", 0))["enqueued_at"]
    assert_kind_of Integer, time
    assert_includes ((before * 1000).floor - 1)..((storage.time * 1000).ceil + 1), time
  end

  def test_dashboards_see_a_node
    info = { "hostname" => "host", "pid" => 7, "concurrency" => 25, "queues" => ["default"], "rss" => 5, "rtt_us" => 9 }
    storage.announce(NODE, info, [["tid", "default", JOB, 12.5]])
    assert_equal [NODE], call("SMEMBERS", "processes")
    hash = call("HGETALL", NODE)
    assert_equal({ "busy" => "1", "concurrency" => "25", "quiet" => "false", "rss" => "5", "rtt_us" => "9" },
                 hash.except("info", "beat"))
    assert_equal({ **info, "identity" => NODE }, JSON.parse(hash["info"]))
    assert_in_delta storage.time, hash["beat"].to_f, 60
    work = call("HGETALL", "#{NODE}:work")
    assert_equal ["tid"], work.keys
    shown = { "queue" => "default", "payload" => JOB, "run_at" => 12.5, "pid" => "tid", "host" => NODE }
    assert_equal shown, JSON.parse(work["tid"])
    assert_equal work, call("HGETALL", "#{NODE}:workers")
    [NODE, "#{NODE}:work", "#{NODE}:workers"].each { |key| assert_includes 1..60, call("TTL", key) }
    # Exq without a namespace.
    assert_equal [[NODE], hash], [call("SMEMBERS", ":processes"), call("HGETALL", ":#{NODE}")]
    storage.announce(NODE, info, [])
    assert_empty call("KEYS", "#{NODE}:work*")
    storage.retract(NODE)
    assert_empty call("KEYS", "*")
  end

  def test_a_message_of_a_dashboard
    call("LPUSH", "#{NODE}-signals", "TSTP")
    storage.signal(NODE, "TERM")
    assert_includes 1..60, call("TTL", "#{NODE}-signals")
    assert_equal %w[TSTP TERM], storage.signals(NODE)
    call("LPUSH", ":#{NODE}-signals", "TSTP") # as Exq does without a namespace
    assert_equal [%w[TSTP], []], Array.new(2) { storage.signals(NODE) }
    call("LPUSH", ":#{NODE}-signals", "TSTP")
    storage.leave(NODE)
    assert_equal 0, call("EXISTS", ":#{NODE}-signals")
  end

  def test_what_others_have_in_processes_is_no_matter
    call("SADD", "processes", "strange", "gone")
    call("HSET", "strange", "info", "{no json")
    assert_empty storage.nodes
  end

  def test_no_key_is_left_behind
    push(lock: "abc", lock_seconds: 60)
    storage.extend([NODE], 60)
    storage.ack(NODE, [done(fetch, lock: "abc")])
    storage.signal(NODE, "TERM")
    storage.leave(NODE)
    assert_equal %w[queues ringspun:pushed:a], call("KEYS", "*").reject { |key| key.start_with?("stat:") }.sort
    assert_includes 1..60, call("TTL", "ringspun:pushed:a")
  end

  # As Exq names them: its host, and a queue.
  def test_what_a_dead_node_of_exqs_has_left
    %w[a b].each { |jid| call("LPUSH", "queue:backup::host::x::y", JOB.sub('"a"', %("#{jid}"))) }
    call("LPUSH", "queue:backup::alive::default", JOB)
    call("HSET", ":alive", "beat", "1") # without a namespace
    call("LPUSH", "queue:x::y", JOB.sub('"a"', '"c"'))
    push
    fetch
    assert_equal [[], []], [storage.recover_exq(10, silent: 60), storage.recover_exq(0, silent: 0)]
    assert_equal [%w[b a], []], [jids_of(storage.recover_exq(10, silent: 0)), storage.recover_exq(10, silent: 0)]
    assert_equal %w[a b c], storage.list("x::y", 0, 9).map { |job| JSON.parse(job.entry)["jid"] }
    assert_equal [1, 1, 0], [call("LLEN", "queue:backup::alive::default"), storage.in_flight(NODE).size,
                             call("EXISTS", "ringspun:silent:host")]
    call("DEL", ":alive")
    assert_equal %w[a], jids_of(storage.recover_exq(1, silent: 0))
  end

  def jids_of(recovered) = recovered.map { |one| JSON.parse(one.entry)["jid"] }

  def test_a_server_that_deletes_what_it_has_no_memory_for
    call("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    assert_match(/deletes jobs when .* maxmemory-policy is allkeys-lru; set it to noeviction/, storage.risks.first)
    call("CONFIG", "SET", "maxmemory-policy", "volatile-ttl")
    assert_match(/deletes leases, .* and unique locks when .* maxmemory-policy is volatile-ttl; set it/, storage.risks.first)
    call("CONFIG", "SET", "maxmemory-policy", "noeviction")
    assert_empty storage.risks
  ensure
    call("CONFIG", "SET", "maxmemory-policy", "noeviction")
  end

  def test_no_key_of_a_dead_node_is_left_behind
    storage.extend(%w[quarantine], 60)
    push
    fetch
    storage.recover(10)
    entry = storage.fetch("quarantine", [Storage::QUARANTINE], 10).first
    assert_equal [1], storage.begin_quarantined("quarantine", [Storage::Begun.new(entry, 1)], isolated: true).map(&:isolated)
    assert_equal [["a", "1"], 1], [call("HGETALL", "ringspun:recovered").first, call("HLEN", "ringspun:alone")]
    storage.ack("quarantine", [done(entry)])
    storage.recover(10, forget: 0)
    storage.leave("quarantine")
    left = call("KEYS", "*").reject { |key| key.start_with?("stat:", "ringspun:histor") }
    assert_equal %w[queues ringspun:losses:host:1:aa], left.sort
    assert_operator call("TTL", "ringspun:losses:host:1:aa"), :>, 0 # it ends by itself: the node may only be frozen
  end

  # Whoever empties a queue may remove its name.
  def test_a_queue_that_gets_a_job_is_known
    push
    push("no job")
    fetched = fetch
    call("DEL", "queues")
    storage.fail(NODE, [failed(fetched, :queue, new_queue: "x::y")])
    assert_equal %w[x::y], call("SMEMBERS", "queues")
    storage.recover(10)
    assert_equal %w[default x::y], call("SMEMBERS", "queues").sort
  end

  def test_nothing_is_left_of_a_job_that_is_dead
    call("HSET", "ringspun:alone", "a", 3, "b", 1)
    call("HSET", "ringspun:recovered", "a", 4, "b", 1)
    push(queue: Storage::QUARANTINE)
    fetched = storage.fetch(NODE, [Storage::QUARANTINE], 1).first
    storage.fail(NODE, [failed(fetched, :dead)])
    assert_equal [%w[b], %w[b]], [call("HKEYS", "ringspun:alone"), call("HKEYS", "ringspun:recovered")]
  end

  # It looks like a job to the scripts, and to nobody else.
  def test_nothing_is_left_of_what_is_nearly_a_job
    push('{"class":"Work","args":{},"jid":"a","queue":"default"}')
    fetch
    storage.recover(10)
    fetched = storage.fetch(NODE, [Storage::QUARANTINE], 1).first
    assert_equal %w[a], call("HKEYS", "ringspun:recovered")
    storage.fail(NODE, [failed(fetched, :dead).tap { |failure| failure.jid = nil }])
    assert_empty call("KEYS", "ringspun:recovered")
  end

  def test_a_dead_node_stays_for_a_minute
    call("SADD", "ringspun:nodes", NODE)
    call("SADD", "processes", NODE)
    before = call("TIME").first.to_i
    storage.recover(10)
    since = call("HGET", "ringspun:gone", NODE)
    assert_includes (before * 1000)..((call("TIME").first.to_i + 1) * 1000), since.to_i
    storage.recover(10)
    assert_equal [since, [NODE]], [call("HGET", "ringspun:gone", NODE), call("SMEMBERS", "ringspun:nodes")]
    call("HSET", "ringspun:gone", NODE, since.to_i - 30_000)
    storage.recover(10)
    assert_equal [NODE], call("SMEMBERS", "ringspun:nodes")
    call("HSET", "ringspun:gone", NODE, since.to_i - 61_000)
    storage.recover(10)
    assert_empty call("KEYS", "*")
  end

  def test_a_lock_is_prolonged_by_who_holds_it
    storage.lock("abc", "a", 60)
    storage.lock("abc", "b", 5000)
    assert_includes 1..60_000, call("PTTL", "unique:abc")
    storage.lock("abc", "a", 5000)
    assert_includes 60_001..5_000_000, call("PTTL", "unique:abc")
  end

  def test_a_namespace_is_apart
    other = open_storage({ path: redis_path }, namespace: "exq")
    push
    other.push([Storage::Push.new(queue: "default", entry: JOB, jid: "a", lock: "abc", lock_seconds: 60)])
    assert_equal %w[exq:queue:default exq:queues exq:ringspun:pushed:a exq:unique:abc queue:default queues],
                 call("KEYS", "*").sort
    other.extend([NODE], 60)
    fetched = other.fetch(NODE, ["default"], 10).first
    assert_equal [1, 1, [false]], [storage.stats[:enqueued], other.stats[:in_flight], storage.ack(NODE, [done(fetched)])]
    other.announce(NODE, {}, [["tid", "default", JOB, 1]])
    other.signal(NODE, "TERM")
    other.pause("default")
    other.fail(NODE, [failed(fetched, :retry, delay: 0, new_entry: JOB)])
    other.due(1)
    other.recover(1)
    assert_equal %w[queue:default queues], call("KEYS", "*").reject { |key| key.start_with?("exq:") }.sort
  end

  # An hour late, as a process whose clock is wrong.
  def late
    prepend = ->(to, name, by) { to.prepend(Module.new { define_method(name) { |*all| super(*all) - by.call(*all) } }) }
    prepend.call(Time.singleton_class, :now, ->(*) { 3600 })
    prepend.call(Process.singleton_class, :clock_gettime, ->(clock, *) { clock == Process::CLOCK_REALTIME ? 3600 : 0 })
  end

  # Lua reads such a number, and cannot write it.
  def test_a_number_beyond_all_keeps_nobody_waiting
    entries = ['{"class":1e999,"args":[],"jid":"a"}', '{"class":"A","args":[],"jid":7,"error_class":"B","x":-1e999}']
    entries.each { |entry| push(entry, at: 1) }
    push(JOB, at: 2)
    moved, = storage.due(10)
    assert_equal [1, 2], [moved, call("ZCARD", "dead")]
  end

  # What Lua would write otherwise. The fields that say what was wrong stand at the end, and once.
  def test_what_is_buried_is_as_it_was
    others = '"x":[], "y":12345678901234567890,"z":{"failed_at":[{},"\\"}"]},"a,b":1.0'
    push(%({"error_message":"old",#{others}, "failed_at" : 7,"error_class":null,"jid":"a","class":"A"}), at: 1)
    push('{"error_class":"B","error_message":"old"}', at: 1)
    _, _, dead = storage.due(10)
    begins = [/\A\{"error_class":"Ringspun/, /\A\{#{Regexp.escape(others)},"jid":"a","class":"A","error_class":"Ringspun/]
    dead.map(&:first).sort.reverse.zip(begins.reverse) { |entry, begin_of| assert_match(begin_of, entry) && JSON.parse(entry) }
    assert_equal 2, dead.size
  end

  def test_times_are_the_servers
    storage # of the parent's server
    status = in_child do
      late
      push(delay: 1000)
      push("{}", at: call("TIME").first.to_i - 100)
      moved, left = storage.due(10)
      assert_equal 0, moved # and the one that is no job is dead
      assert_in_delta 1000, left, 30
      storage.extend([NODE], 60)
      assert_empty storage.recover(10)
      dead_at = call("ZRANGE", "dead", 0, 0, "WITHSCORES").last.last
      assert_in_delta call("TIME").first.to_i, dead_at, 30
      assert_in_delta call("TIME").first.to_i, storage.time, 30
      storage.announce(NODE, {}, [])
      assert_in_delta call("TIME").first.to_i, call("HGET", NODE, "beat").to_f, 30
      storage.trim_dead(10, 1800)
      assert_equal 1, call("ZCARD", "dead")
    end
    assert_predicate status, :success?
  end
end
