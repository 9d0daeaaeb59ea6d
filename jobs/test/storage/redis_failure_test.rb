# frozen_string_literal: true

require "jobs_helper"
require_relative "../support/redis_case"

# servers: valkey

# Connections that are cut, servers that are away, full or refuse.
class RedisFailureTest < RedisCase
  include Strands

  Unknown = Jobs::UnknownOutcomeError

  def queued = call("LRANGE", "queue:default", 0, -1)

  # The proxy has a connection, so that the next answer can be lost. One that was cut before may be there yet.
  def reach
    far.time
    assert_operator proxy.swallow, :>=, 1
  end

  def test_a_push_without_an_answer_has_an_unknown_outcome
    reach
    error = assert_raises(Unknown) { far.push([push_of]) }
    assert_match(/may be done or not/, error.message)
    assert_equal [JOB], queued
    assert_nil far.push([push_of("{}")])
    assert_equal ["{}", JOB], queued
  end

  def test_a_push_that_was_not_sent_has_not_happened
    proxy.refusing = true
    error = assert_raises(Jobs::UnavailableError) { far.push([push_of]) }
    assert_match(/cannot be reached, and nothing was sent/, error.message)
    proxy.refusing = false
    assert_equal [nil, [JOB]], [far.push([push_of]), queued]
  end

  def refused(**options)
    assert_raises(Jobs::AccessError) { open_storage({ path: redis_path, **options }).push([push_of]) }.message
  end

  def test_who_may_not_come_in
    assert_match(/does not let this program in: WRONGPASS .*; look at its user, password and ACL/,
                 refused(username: "nobody", password: "x"))
    call("ACL", "SETUSER", "narrow", "on", ">secret", "~*", "+@connection", "-hello", "-auth", "-select")
    assert_match(/NOPERM/, refused(username: "narrow", password: "secret", db: 1))
    call("CONFIG", "SET", "requirepass", "secret")
    assert_match(/NOAUTH/, refused)
    assert_empty queued
  ensure
    call("CONFIG", "SET", "requirepass", "")
    call("ACL", "DELUSER", "narrow")
  end

  def test_without_a_server
    nowhere = open_storage({ path: "#{redis_path}.none" })
    assert_raises(Jobs::UnavailableError) { nowhere.push([push_of]) }
    assert_raises(Jobs::UnavailableError) { nowhere.extend([NODE], 60) }
  end

  # A connection that the server has closed while nobody used it is noticed before something is sent.
  def test_a_connection_that_was_closed_meanwhile
    connection = opened(far.connect)
    far.push([push_of], connection: connection)
    proxy.cut
    idle = Storage::Redis.const_get(:Connection)::IDLE_SECONDS + 1
    connection.define_singleton_method(:now) { super() + idle }
    assert_nil far.push([push_of("{}")], connection: connection)
    assert_equal ["{}", JOB], queued
  end

  def test_what_may_be_done_twice_is_tried_again
    storage.push([push_of(at: 1), push_of(queue: "other")])
    storage.extend([NODE], 60)
    storage.fetch(NODE, ["other"], 1)
    storage.due(0) # the server has that script, so that it is not only the lack of it that is answered
    verbs = {
      extend: [[[NODE], 60], [true]], due: [[10], [0, nil, []]], risks: [[], []],
      in_flight: [[NODE], [Storage::Fetched.new("other", JOB, JOB)]],
      announce: [[NODE, { "pid" => 1 }, []], nil], pause: [["x"], nil], paused: [[], ["x"]], resume: [["x"], nil],
      list: [["default", 0, 9], 1], scan: [[:dead, 0, 9], []], trim_dead: [[5, 5], nil], lock: [["t", "a", 60], nil],
      find: [["nobody"], nil], results: [[["a"]], [nil]], history: [["a"], []], retract: [[NODE], nil], nodes: [[], []]
    }
    verbs.each do |verb, (arguments, expected)|
      reach
      answer = far.public_send(verb, *arguments)
      answer = answer.size if verb == :list
      expected.nil? ? assert_nil(answer, verb.name) : assert_equal(expected, answer, verb.name)
    end
    reach
    assert_equal 1, far.stats[:in_flight]
    reach
    assert_nil far.leave(NODE)
  end

  # The first try has extended a lease that had run out, and the second finds it extended.
  def test_a_lease_that_ran_out_is_told_by_the_second_try
    far.extend([NODE], 60)
    call("DEL", "ringspun:alive:#{NODE}")
    reach
    assert_equal [false, true], far.extend([NODE, "other"], 60)
    reach
    assert_equal [true, true], far.extend([NODE, "other"], 60)
  end

  def test_what_must_not_be_done_twice_is_not
    storage.push([push_of])
    fetched = storage.fetch(NODE, ["default"], 1).first
    ack = Storage::Ack.new("default", JOB, "a")
    failure = Storage::Failure.new("default", JOB, "a", :retry, JOB, 5)
    storage.ack("other", [ack]) # see above
    verbs = { fetch: [NODE, ["default"], 1], wait_any: [NODE, ["default"], 0.01], ack: [NODE, [ack]], fail: [NODE, [failure]],
              signal: [NODE, "TERM"], signals: [NODE], counters: [], remove: ["default", [JOB]],
              begin_quarantined: [NODE, [Storage::Begun.new(fetched, 1)]], retry_now: [:dead, [JOB]], recover: [5],
              unlock: %w[t a] }
    verbs.each do |verb, arguments|
      reach
      assert_raises(Unknown, verb.name) { far.public_send(verb, *arguments) }
    end
    assert_equal "1", call("GET", "stat:processed")
  end

  def test_jobs_whose_fetch_had_no_answer_are_found
    storage.push([push_of, push_of("{}")])
    storage.fetch(NODE, ["none"], 1) # see above
    reach
    assert_raises(Unknown) { far.fetch(NODE, ["default"], 1) }
    reach
    assert_raises(Unknown) { far.wait_any(NODE, ["default"], 1) }
    assert_equal [JOB, "{}"], far.in_flight(NODE).map(&:entry)
  end

  # So many waits at the server, one for each queue.
  def until_it_waits(count = 1)
    yield_until("it waits at the server") { call("CLIENT", "LIST").scan(" cmd=blmove ").size == count }
  end

  def waiting_in_vain(*queues)
    far.time # for a connection that was cut before
    Ringspun.run do
      error = nil
      strand = machine.spin do
        loop { far.wait_any(NODE, queues, 2, max: 9) }
      rescue Jobs::Error => error
        nil
      end
      until_it_waits(queues.size)
      yield
      strand.join
      assert_kind_of Unknown, error
    end
  end

  def test_a_wait_at_the_server_that_is_cut
    waiting_in_vain("default") { proxy.cut }
    waiting_in_vain("default", "other") { proxy.cut }
  end

  # The worker hears that an answer was lost, and looks for the jobs where they are in flight: no other wait hides that. It may be
  # the answer to what was sent before the move that is lost, and then a job stays where it is.
  def test_jobs_whose_wait_had_no_answer_are_found
    waiting_in_vain("default", "other") do
      proxy.swallow
      storage.push([push_of, push_of("{}", queue: "other")])
    end
    found = [*far.in_flight(NODE), *%w[default other].flat_map { |queue| far.list(queue, 0, 9) }]
    assert_equal ["{}", JOB], found.map(&:entry).sort.reverse
  end

  def test_a_server_that_does_not_let_us_end_waits
    limited = open_storage({ path: redis_path, middlewares: [Refusing] })
    Ringspun.run do
      2.times do
        strand = machine.spin { limited.wait_any(NODE, %w[other default], 60, max: 9) }
        machine.sleep(0.01)
        storage.push([push_of])
        assert_equal [JOB], strand.await.map(&:entry)
      end
    end
  end

  # As an ACL would.
  module Refusing
    def call_pipelined(commands, _config)
      super.tap do |replies|
        commands.each_with_index { |command, index| replies[index] = NO if command == %w[CLIENT ID] }
      end
    end

    NO = RedisClient::CommandError.parse("NOPERM no")
  end

  # As one that lets nobody else in.
  module Full
    def call_pipelined(commands, _config)
      raise RedisClient::CannotConnectError, "ERR max number of clients reached" if commands.first[0, 2] == %w[CLIENT UNBLOCK]

      super
    end
  end

  def test_a_wait_has_brought_a_job_and_the_others_cannot_be_ended
    full = open_storage({ path: redis_path, middlewares: [Full] })
    Ringspun.run do
      strand = machine.spin { full.wait_any(NODE, %w[other default], 60, max: 9) }
      until_it_waits(2)
      storage.push([push_of])
      assert_equal [JOB], strand.await.map(&:entry)
    end
  end

  # The worker looks for it where it is in flight.
  def test_a_job_of_a_paused_queue_that_cannot_be_given_back
    [Jobs::UnavailableError, Jobs::StorageError, Unknown].each do |error|
      replies = [[[[]], []], ["OK", "OK", JOB, 1, 0], error.new("no")]
      connection = Object.new
      connection.define_singleton_method(:exchange) do |*, **|
        reply = replies.shift
        reply.is_a?(Exception) ? raise(reply) : reply
      end
      connection.define_singleton_method(:call) { |*command| exchange([command]).first }
      assert_raises(Unknown) { storage.wait_any(NODE, ["default"], 1, connection: connection) }
      assert_empty replies
    end
  end

  # As the server sees one whose connection was cut, as long as it has not heard of that.
  def test_no_wait_gets_a_job_after_its_node_has_left
    Ringspun.run do
      strand = machine.spin { storage.wait_any(NODE, %w[default other], 2, max: 9) }
      until_it_waits(2)
      storage.leave(NODE)
      storage.push([push_of])
      assert_equal [[], [JOB]], [strand.await, queued]
    end
  end

  # The server refuses at one moment, and no more at the next.
  def test_a_wait_that_has_brought_a_job_says_so
    refused = Jobs::StorageError.new("BUSY")
    [nil, refused].each do |again|
      replies = [[[[]], []], ["OK", refused, JOB, 0, 0], [again]]
      connection = Object.new
      connection.define_singleton_method(:exchange) { |*, **| replies.shift }
      assert_equal [Storage::Fetched.new("default", JOB, JOB)], storage.wait_any(NODE, ["default"], 1, connection: connection)
      assert_empty replies
    end
  end

  # Where jobs of other priorities may be, a wait that has brought a job looks for them.
  def test_a_wait_that_has_brought_a_job_and_cannot_look_for_more
    { Jobs::UnavailableError => [JOB], Jobs::StorageError => [JOB], Unknown => Unknown }.each do |error, expected|
      replies = [[[[]], []], ["OK", "OK", JOB, 0, 1], error.new("no")]
      connection = Object.new
      connection.define_singleton_method(:exchange) do |*, **|
        reply = replies.shift
        reply.is_a?(Exception) ? raise(reply) : reply
      end
      wait = -> { storage.wait_any(NODE, ["default"], 1, max: 2, connection: connection).map(&:entry) }
      expected.is_a?(Array) ? assert_equal(expected, wait.call) : assert_raises(expected, &wait)
      assert_empty replies
    end
  end

  # Keeps what waits at the server have brought.
  module Watching
    def self.brought = @brought ||= []

    def call_pipelined(commands, _config)
      super.tap { |replies| commands.zip(replies) { |command, reply| Watching.brought << reply if command.first == "BLMOVE" } }
    end
  end

  def prior(jid, priority)
    entry = JSON.generate("class" => "Work", "args" => [], "jid" => jid, "ringspun_priority" => priority)
    Storage::Push.new(queue: "default", entry: entry, jid: jid, priority: priority)
  end

  # None of them has to end by its own time, after which it would look.
  def test_all_who_wait_get_a_job_with_a_priority_at_once
    watching = open_storage({ path: redis_path, middlewares: [Watching] })
    [[5, 5], [-5, 3], [0, 5], [5, 0], [-1, -1]].each do |priorities|
      Watching.brought.clear
      Ringspun.run do
        strands = Array.new(2) { machine.spin { watching.wait_any(NODE, ["default"], 60) } }
        until_it_waits(2)
        storage.push(priorities.each_with_index.map { |priority, index| prior("j#{index}", priority) })
        assert_equal 2, machine.await(*strands).flatten.size
      end
      assert_equal 2, Watching.brought.compact.size, priorities.inspect
    end
  end

  def test_who_comes_to_wait_finds_a_job_that_has_a_priority
    { "list" => %w[a b c], "remove" => %w[b c], "kill" => %w[b c], "move" => %w[b c] }.each do |verb, left|
      call("FLUSHALL")
      storage.push([prior("a", 1), prior("b", 2), prior("c", 3)])
      first = prior("a", 1).entry
      case verb
      when "remove", "kill" then storage.public_send(verb, "default", [first])
      when "move" then storage.move("default", [Storage::Move.new(first)], "other")
      else storage.list("default", 0, 1)
      end
      came = left.map { call("BLMOVE", "queue:default", "came", "RIGHT", "LEFT", 60) }
      assert_equal left, came.map { |entry| JSON.parse(entry)["jid"] }, verb
    end
  end

  def test_jobs_that_a_fetch_leaves_are_dealt_again
    storage.push(Array.new(40) { |index| prior("j#{index}", 1) })
    storage.fetch(NODE, ["default"], 20)
    assert_equal 16, call("LLEN", "queue:default")
    16.times { call("BLMOVE", "queue:default", "came", "RIGHT", "LEFT", 60) }
    storage.fetch(NODE, ["default"], 1)
    assert_operator call("LLEN", "queue:default"), :>, 0
    assert_equal 40, storage.stats[:enqueued] + 21 + 16
  end

  def test_nothing_is_lost_where_it_cannot_go
    storage.push([push_of])
    call("SET", "dead", "no set")
    assert_raises(Jobs::StorageError) { storage.kill("default", [JOB]) }
    call("ZADD", "retry", 5, JOB)
    assert_raises(Jobs::StorageError) { storage.kill(:retry, [JOB]) }
    call("SET", "queue:bad", "no list")
    call("SET", "ringspun:priority:7:full", "no list")
    moves = { "bad" => nil, "full" => prior("a", 7).entry }
    moves.each do |queue, entry|
      ["default", :retry].each do |place|
        assert_raises(Jobs::StorageError) { storage.move(place, [Storage::Move.new(JOB, entry)], queue) }
      end
    end
    assert_equal [[JOB], ["a"]], [queued, storage.scan(:retry, 0, 9).map { |job| JSON.parse(job.entry)["jid"] }]
  end

  # It is no timeout of the server's, which would be an unknown outcome.
  def test_a_deadline_of_the_callers_stays_the_callers
    Ringspun.run do
      [%w[default], %w[default other]].each do |queues|
        assert_raises(Ringspun::TimeoutError) { machine.timeout(0.05) { storage.wait_any(NODE, queues, 2, max: 9) } }
      end
      assert_nil storage.push([push_of])
    end
  end

  # The reply to one is never taken for the reply to the next.
  def test_a_strand_that_is_cancelled_while_it_waits
    Ringspun.run do
      strand = machine.spin { loop { storage.wait_any(NODE, %w[default other], 2, max: 9) } }
      until_it_waits(2)
      machine.terminate(strand)
      assert_nil storage.push([push_of])
      seen = storage.list("default", 0, 9).size + storage.in_flight(NODE).size
      assert_equal 1, seen
    end
  end

  def test_a_server_that_was_restarted_has_no_scripts
    unique = { lock: "t", lock_seconds: 60 }
    assert_nil storage.push([push_of, push_of("{}", **unique)])
    call("SCRIPT", "FLUSH")
    other = push_of("[]", **unique)
    other.jid = "b"
    assert_equal [nil, "a", nil], storage.push([push_of("[]"), other, push_of("5", queue: "other")])
    call("SCRIPT", "FLUSH")
    fetched = storage.fetch(NODE, ["default"], 9)
    assert_equal [JOB, "{}", "[]"], fetched.map(&:entry)
    call("SCRIPT", "FLUSH")
    assert_equal [true] * 3, storage.ack(NODE, fetched.map { |one| Storage::Ack.new(one.queue, one.token, "a") })
  end

  def test_a_refusal_is_for_those_that_it_concerns
    call("SET", "queue:bad", "no list")
    call("SET", "unique:bad", "x")
    call("DEL", "unique:bad")
    call("LPUSH", "unique:bad", "no string")
    answers = storage.push([push_of, push_of(queue: "bad"), push_of("{}"), push_of(queue: "bad", delay: -5),
                            push_of(queue: "bad", lock: "free", lock_seconds: 60), push_of(queue: "other", at: 5),
                            push_of(queue: "other", lock: "bad", lock_seconds: 60)])
    assert_equal [NilClass, Jobs::StorageError, NilClass, NilClass, Jobs::StorageError, NilClass, Jobs::StorageError],
                 answers.map(&:class)
    assert_match(/refused: WRONGTYPE/, answers[1].message)
    assert_equal [["{}", JOB], 0], [queued, call("EXISTS", "unique:free")]
  end

  # Somebody else has used the name. The other queues are counted and served all the same.
  def test_a_queue_that_is_no_list_is_told_and_the_others_go_on
    storage.push([push_of, push_of(queue: "other", priority: 5), push_of(queue: "levels")])
    call("SADD", "queues", "bad")
    call("SET", "queue:bad", "no list")
    call("SET", "ringspun:levels:levels", "no set")
    call("SADD", "ringspun:lists:#{NODE}", "bad")
    call("SADD", "ringspun:nodes", NODE)
    call("SET", "queue:backup::#{NODE}::bad", "no list")
    stats = storage.stats
    assert_equal [{ "bad" => 0, "default" => 1, "levels" => 1, "other" => 1 }, 3, 0, %w[bad levels]],
                 stats.values_at(:queues, :enqueued, :in_flight, :unreadable)
    assert_equal [JOB], storage.fetch(NODE, %w[bad default], 9).map(&:entry)
    assert_empty storage.wait_any(NODE, %w[bad], 0.01) # must pass
  end

  def test_a_list_that_is_none_costs_no_job
    storage.push([push_of])
    call("SET", "queue:backup::#{NODE}::default", "no list")
    assert_raises(Jobs::StorageError) { storage.fetch(NODE, ["default"], 1) }
    assert_equal [JOB], queued
    call("DEL", "queue:backup::#{NODE}::default")
    fetched = storage.fetch(NODE, ["default"], 1).first
    call("SET", "retry", "no set")
    failure = Storage::Failure.new(fetched.queue, fetched.token, "a", :retry, "{}", 5)
    assert_raises(Jobs::StorageError) { storage.fail(NODE, [failure]) }
    assert_equal [fetched], storage.in_flight(NODE)
  end

  def test_what_cannot_be_followed_is_not_done
    storage.push([push_of, push_of(JOB.sub('"a"', '"b"'))])
    fetched, other = storage.fetch(NODE, ["default"], 2)
    %w[queue:bad schedule].each { |place| call("SET", place, "something else") }
    { "queue:bad" => push_of(queue: "bad"), "schedule" => push_of(delay: 5) }.each do |place, bad|
      ack = Storage::Ack.new(fetched.queue, fetched.token, "a", nil, [push_of(queue: "good"), bad])
      error = assert_raises(Jobs::StorageError) { storage.ack(NODE, [ack]) }
      assert_match(/WRONGTYPE #{place} holds a string/, error.message)
    end
    acks = [Storage::Ack.new(fetched.queue, fetched.token, "a", nil, [push_of(queue: "bad")]),
            Storage::Ack.new(other.queue, other.token, "b", nil, [push_of(queue: "good")])]
    assert_raises(Jobs::StorageError) { storage.ack(NODE, acks) }
    assert_equal [[fetched], 1], [storage.in_flight(NODE), storage.list("good", 0, 9).size]
  end

  def test_a_lock_or_a_result_that_cannot_be_is_no_reason_to_lose_followers
    storage.push([push_of])
    fetched = storage.fetch(NODE, ["default"], 1).first
    %w[unique:bad ringspun:result:a].each { |key| call("LPUSH", key, "no string") }
    ack = Storage::Ack.new(fetched.queue, fetched.token, "a", "bad", [push_of("{}")], "5", 1e17)
    assert_equal [true], storage.ack(NODE, [ack])
    assert_equal [["{}"], [], 1], [queued, storage.in_flight(NODE), storage.stats[:processed]]
  end

  def test_one_whose_follower_cannot_have_its_lock_is_not_done
    storage.push([push_of])
    fetched = storage.fetch(NODE, ["default"], 1).first
    call("LPUSH", "unique:bad", "no string")
    ack = Storage::Ack.new(fetched.queue, fetched.token, "a", nil, [push_of("{}", lock: "bad", lock_seconds: 60)])
    assert_raises(Jobs::StorageError) { storage.ack(NODE, [ack]) }
    assert_equal [[fetched], []], [storage.in_flight(NODE), queued]
    call("DEL", "unique:bad")
    ack.pushes.first.lock_seconds = 1e300
    assert_equal [[true], ["{}"]], [storage.ack(NODE, [ack]), queued]
  end

  def test_a_queue_that_is_none_does_not_hold_up_what_is_due
    call("SET", "queue:bad", "no list")
    bad = JOB.sub("default", "bad")
    storage.push([push_of(bad, at: 1), push_of(at: 2)])
    dead = storage.due(10).last.map(&:first)
    assert_equal [dead, 1], [storage.scan(:dead, 0, 9).map(&:entry), queued.size]
    assert_equal ["bad", "what has the name of its queue is no queue"],
                 JSON.parse(dead.first).values_at("queue", "error_message")
  end

  def test_what_is_no_event_is_not_in_the_history
    ['{"at":5.5,"kind":"killed","node":"n"}', "{}", "5", "[]", "null", "no json", '{"kind":"done"}'].each do |text|
      call("RPUSH", "ringspun:history:a", text)
    end
    assert_equal [[5.5, :killed, "n", nil, nil]], storage.history("a").map(&:to_a)
  end

  def full
    call("CONFIG", "SET", "maxmemory", 1)
    yield
  ensure
    call("CONFIG", "SET", "maxmemory", 0)
  end

  # Nothing new comes in, but what is there can be done.
  def test_a_server_without_memory_left
    storage.push(Array.new(3) { |index| push_of(JOB.sub('"a"', "\"a#{index}\"")) } << push_of(JOB.sub('"a"', '"late"'), at: 5))
    storage.extend([NODE], 60)
    full do
      answers = storage.push([push_of, push_of(at: 5), push_of(delay: 5), push_of(lock: "t", lock_seconds: 9)])
      answers.each { |answer| assert_kind_of Jobs::StorageError, answer }
      answers.each { |answer| assert_match(/refused: OOM/, answer.message) }
      assert_equal [true], storage.extend([NODE], 60)
      assert_equal 1, storage.due(5).first
      fetched = [*storage.fetch(NODE, ["default"], 2), *storage.wait_any(NODE, ["default"], 1)]
      assert_equal 3, fetched.size
      assert_empty storage.wait_any(NODE, ["empty"], 0.01)
      assert_equal [1], storage.begin_quarantined(NODE, [Storage::Begun.new(fetched[0], 1)]).map(&:tries)
      storage.ack(NODE, [Storage::Ack.new("default", fetched[0].token, "a0")])
      storage.fail(NODE, [Storage::Failure.new("default", fetched[1].token, "a1", :retry, JOB, 5)])
      call("DEL", "ringspun:alive:#{NODE}")
      assert_equal 1, storage.recover(5).size
      storage.leave(NODE)
      assert_equal [true], storage.retry_now(:retry, [JOB])
      assert_nil storage.counters(failed: 1)
    end
    assert_equal [0, 0, 3], storage.stats.values_at(:in_flight, :retries, :enqueued)
  end

  def test_connections_are_shared_by_strands_and_threads
    counting = opened(Proxy.new { (@connected = @connected.to_i + 1) && UNIXSocket.new(redis_path) })
    shared = open_storage({ url: counting.url })
    work = ->(name) { 5.times { |index| assert_nil shared.push([push_of("#{name} #{index}")]) } }
    threads = Array.new(3) { |index| Thread.new { work.call("thread #{index}") } }
    Ringspun.run { 20.times { |index| machine.spin { work.call("strand #{index}") } } }
    threads.each(&:join)
    expected = [*(0...3).map { |index| "thread #{index}" }, *(0...20).map { |index| "strand #{index}" }]
    assert_equal expected.product((0...5).to_a).map { |name, index| "#{name} #{index}" }.sort, queued.sort
    assert_includes 1..Storage::Redis::CONNECTIONS, @connected
  end

  # A worker waits at each of its queues, again and again.
  def test_waits_keep_their_connections_however_many_they_are
    connected = 0
    counting = opened(Proxy.new { (connected += 1) && UNIXSocket.new(redis_path) })
    shared = open_storage({ url: counting.url })
    queues = Array.new(Storage::Redis::CONNECTIONS + 3) { |index| "queue #{index}" }
    3.times do
      Ringspun.run do
        strand = machine.spin { shared.wait_any(NODE, queues, 60, max: queues.size) }
        until_it_waits(queues.size)
        storage.push([push_of(queue: queues.last)])
        assert_equal queues.last(1), strand.await.map(&:queue)
      end
    end
    assert_equal queues.size + 1, connected
    shared.close
    Ringspun.run { yield_until { call("CLIENT", "LIST").scan(" name=ringspun:waits").empty? } }
  end

  def test_a_child_has_connections_of_its_own
    storage.push([push_of("parent")])
    assert_predicate in_child { storage.push([push_of("child")]) }, :success?
    storage.push([push_of("parent again")])
    assert_equal ["parent", "child", "parent again"], queued.reverse
  end

  # Even when all of the parent's are in use.
  def lend_all(left, &block)
    return block.call if left.zero?

    storage.instance_variable_get(:@pool).lend do |one|
      one.call("PING")
      lend_all(left - 1, &block)
    end
  end

  def test_a_child_of_a_busy_parent
    status = lend_all(Storage::Redis::CONNECTIONS) { in_child { storage.push([push_of]) } }
    assert_equal [true, [JOB]], [status.success?, queued]
  end

  def test_a_connection_of_the_caller
    count = 0
    counting = opened(Proxy.new { (count += 1) && UNIXSocket.new(redis_path) })
    far = open_storage({ url: counting.url })
    connection = opened(far.connect)
    far.push([push_of(lock: "t", lock_seconds: 60)], connection: connection)
    fetched = far.fetch(NODE, ["default"], 1, connection: connection).first
    far.wait_any(NODE, ["default"], 0.01, connection: connection)
    far.ack(NODE, [Storage::Ack.new(fetched.queue, fetched.token, "a", "t")], connection: connection)
    far.extend([NODE], 60, connection: connection)
    far.stats(connection: connection)
    assert_equal 1, count
    counting.cut
    assert_raises(Unknown) { far.push([push_of], connection: connection) }
    assert_nil far.push([push_of], connection: connection)
    assert_equal 2, count
  end

  # Its answer comes when nobody waits for it any more, and is not the next caller's.
  def test_whose_thread_is_killed_leaves_its_answer_to_nobody
    connection = opened(storage.connect)
    connection.call("CLIENT", "SETNAME", "waiter")
    thread = Thread.new { connection.exchange([["BLPOP", "gate", 0]], blocking: 0) }
    Thread.pass until call("CLIENT", "LIST")[/ name=waiter .* cmd=blpop /]
    thread.kill.join
    call("RPUSH", "gate", "late")
    assert_equal "mine", connection.call("ECHO", "mine")
  end

  def test_entries_that_are_no_text
    binary = "{\xFF\x00\xFE}".b
    latin = "{\xE4}".dup.force_encoding("ISO-8859-1")
    assert_nil storage.push([push_of(binary), push_of("{ä}"), push_of(latin)])
    fetched = storage.fetch(NODE, ["default"], 3)
    assert_equal [binary, "{ä}".b, latin.b], fetched.map { |one| one.entry.b }
    assert_equal [true] * 3, storage.ack(NODE, fetched.map { |one| Storage::Ack.new(one.queue, one.token, "a") })
  end
end
