# frozen_string_literal: true

# What every storage does. A class that includes it has `new_storage`, which makes one that is empty, by options that all have,
# and `storage` is the test's.
module StorageSuite
  include Strands

  def self.included(test_class)
    test_class.include(Nodes, Admin, Locks, Search, History, Priority, Limits, Due, Done, Upkeep, Crons, Transactions)
  end

  Storage = Ringspun::Jobs::Storage
  NODE = "host:1:aa"
  OTHER = "host:2:bb"

  def storage = @storage ||= new_storage

  def teardown
    @storage&.close
    super
  end

  def entry(jid, args: [], queue: "default") = JSON.generate("class" => "Work", "args" => args, "jid" => jid, "queue" => queue)

  def push(*jids, queue: "default", **options)
    storage.push(jids.map { |jid| Storage::Push.new(queue: queue, entry: entry(jid, queue: queue), jid: jid, **options) })
  end

  def push_of(jid, **) = Storage::Push.new(queue: "default", entry: entry(jid), jid: jid, **)

  def fetch(max = 100, queues: ["default"], node: NODE, **) = storage.fetch(node, queues, max, **)

  def jids(all) = all.map { |one| Ringspun::Jobs::Wire.parse(one.entry)["jid"] }

  def set(name, count = 100) = storage.scan(name, 0, count)

  def list(queue, count = 100) = storage.list(queue, 0, count)

  def entries(all) = all.map(&:entry)

  # Of the jobs with these entries, in their order; what nobody has where there is no such job.
  def tokens(all, *entries) = entries.map { |entry| all.find { |one| one.entry == entry }&.token || "no token" }

  def done(fetched, lock: nil) = Storage::Ack.new(fetched.queue, fetched.token, jids([fetched]).first, lock)

  def failed(fetched, **) = Storage::Failure.new(queue: fetched.queue, token: fetched.token, jid: jids([fetched]).first, **)

  def test_has_all_verbs
    missing = Storage.public_instance_methods(false).select { |verb| storage.method(verb).owner == Storage }
    assert_empty missing
  end

  def test_first_in_first_out
    assert_nil push("a", "b")
    push("c")
    assert_equal %w[a b], jids(fetch(2))
    assert_equal %w[c], jids(fetch)
    assert_empty fetch
  end

  def test_a_batch_for_many_queues
    pushes = %w[a b c d].each_with_index.map do |jid, index|
      Storage::Push.new(queue: index.even? ? "even" : "odd", entry: entry(jid), jid: jid)
    end
    assert_nil storage.push(pushes)
    assert_equal [%w[even a], %w[even c], %w[odd b]],
                 fetch(3, queues: %w[even odd]).map { |one| [one.queue, *jids([one])] }
  end

  def test_an_empty_batch
    assert_nil storage.push([])
    assert_equal [[], [], [], []], [storage.ack(NODE, []), storage.fail(NODE, []), storage.extend([], 5), fetch(0)]
  end

  def test_an_entry_comes_out_as_it_went_in
    texts = [entry("a", args: ["Größe", "\u0000", "日本", "\"\\"]), %({"b":[],"c":{}}), "", "no json"]
    storage.push(texts.map { |text| Storage::Push.new(queue: "ä::b", entry: text) })
    assert_equal texts, fetch(queues: ["ä::b"]).map(&:entry)
  end

  def test_what_was_acknowledged_is_gone
    push("a", "b")
    fetched = fetch
    assert_equal [true, true], storage.ack(NODE, fetched.map { |one| done(one) })
    assert_equal [false, false], storage.ack(NODE, fetched.map { |one| done(one) })
  end

  def test_an_ack_keeps_a_result
    push("a", "b", "c")
    a, b, c = fetch.map { |one| done(one) }
    b.result = '{"sum":[1,"ü"]}'
    b.keep_seconds = 60
    c.result = "null"
    c.keep_seconds = 0.001
    assert_equal [nil, nil], storage.results(%w[a b])
    assert_equal [true] * 3, storage.ack(NODE, [a, b, c])
    assert_equal [false], storage.ack(NODE, [b.dup.tap { |again| again.result = "5" }])
    yield_until("the result has gone") { storage.results(%w[c]) == [nil] }
    assert_equal [nil, '{"sum":[1,"ü"]}', nil], storage.results(%w[a b nobody])
    assert_empty storage.results([])
  end

  # Anybody may have written how long.
  def test_a_result_without_an_end_is_kept_for_a_year
    push("a")
    ack = done(fetch.first)
    ack.result = "5"
    ack.keep_seconds = 1e300
    ack.pushes = [push_of("b")]
    assert_equal [[true], ["5"], %w[b]], [storage.ack(NODE, [ack]), storage.results(%w[a]), jids(fetch)]
  end

  def test_only_the_node_that_has_it_acknowledges
    push("a")
    fetched = fetch.first
    assert_equal [false], storage.ack(OTHER, [done(fetched)])
    assert_equal [true], storage.ack(NODE, [done(fetched)])
  end

  # The storage may look for it at both ends first.
  def test_of_many_each_can_be_acknowledged
    names = Array.new(300) { |number| number.to_s }
    push(*names)
    fetched = fetch(300)
    places = [299, 0, 150, 298, 40, 270, 1]
    assert_equal [true] * 7, storage.ack(NODE, fetched.values_at(*places).map { |one| done(one) })
    assert_equal [false] * 7, storage.ack(NODE, fetched.values_at(*places).map { |one| done(one) })
    assert_equal names - places.map(&:to_s), jids(storage.in_flight(NODE))
  end

  def test_what_is_acknowledged_twice_at_once_counts_once
    push("1", "2")
    push("3", queue: "low")
    one, two, three = fetch(queues: %w[default low])
    elsewhere = done(two).tap { |ack| ack.queue = "low" }
    assert_equal [true, false, true, false, true], storage.ack(NODE, [done(one), done(one), done(three), elsewhere, done(two)])
    assert_equal [0, 3], storage.stats.values_at(:in_flight, :processed)
  end

  def test_of_equal_entries_one_is_acknowledged
    push("a", "a")
    fetched = fetch
    assert_equal [true], storage.ack(NODE, [done(fetched.first)])
    assert_equal %w[a], jids(storage.in_flight(NODE))
    assert_equal [true, false], storage.ack(NODE, [done(fetched.last), done(fetched.last)])
  end

  # Both happen, or neither.
  def test_what_follows_a_job_is_stored_with_its_ack
    push("a", "b")
    a, b = fetch
    followers = [push_of("c"), push_of("d", delay: 100), push_of("e", lock: "token", lock_seconds: 60),
                 push_of("f", lock: "token", lock_seconds: 60)]
    acks = [done(a), done(b)].each { |ack| ack.pushes = followers.map(&:dup) }
    assert_equal [true], storage.ack(NODE, [acks.first])
    assert_equal [false, false], [*storage.ack(NODE, [acks.first]), *storage.ack(OTHER, [acks.last])]
    assert_equal [%w[c e], %w[d], ["e"]], [jids(list("default")), jids(set(:schedule)), push("g", lock: "token", lock_seconds: 1)]
  end

  def test_what_follows_a_job_may_take_its_lock
    push("a", lock: "token", lock_seconds: 60)
    ack = done(fetch.first, lock: "token")
    ack.pushes = [push_of("b", lock: "token", lock_seconds: 60)]
    assert_equal [true], storage.ack(NODE, [ack])
    assert_equal %w[b], jids(fetch)
  end

  def test_acks_with_and_without_followers_in_one_batch
    push("a", "b", "c")
    acks = fetch.map { |one| done(one) }
    acks[1].pushes = [push_of("d"), push_of("e")]
    assert_equal [true] * 3, storage.ack(NODE, acks)
    assert_equal [%w[d e], 0], [jids(list("default")), storage.stats[:in_flight]]
  end

  def test_a_failure_goes_to_its_set
    push("a", "b", "c")
    goals = %i[retry schedule dead]
    failures = fetch.zip(goals).map { |one, to| failed(one, to: to, new_entry: "#{to}!", delay: 100) }
    before = storage.time
    assert_equal [true] * 3, storage.fail(NODE, failures)
    after = storage.time
    { retry: 100, schedule: 100, dead: 0 }.each do |set, delay|
      job, *more = set(set)
      assert_equal ["#{set}!", []], [job.entry, more]
      assert_in_delta (before + after) / 2 + delay, job.at, (after - before) / 2 + 0.001
    end
    assert_equal [false] * 3, storage.fail(NODE, failures)
    assert_equal 1, storage.scan(:retry, 0, 10).size
  end

  def test_a_failure_goes_in_front_of_a_queue
    push("a", "b", "c")
    first, second = fetch(2)
    storage.fail(NODE, [failed(second, to: :queue, new_entry: second.entry), failed(first, to: :queue, new_entry: entry("z"))])
    assert_equal %w[z b c], jids(fetch)
    push("d")
    storage.fail(NODE, [failed(fetch.first, to: :queue, new_entry: entry("d"), new_queue: "elsewhere")])
    assert_equal %w[d], jids(fetch(queues: %w[elsewhere]))
  end

  def wait(*queues, max: 1, node: NODE, seconds: 60, **) = storage.wait_any(node, queues, seconds, max: max, **)

  def test_waits_for_a_job
    Ringspun.run do
      strand = parked { wait("default") }
      push("a")
      assert_equal %w[a], jids(strand.await)
    end
    assert_equal [true], storage.ack(NODE, [done(storage.in_flight(NODE).first)])
  end

  def test_waits_at_several_queues
    %w[one two three].each do |queue|
      Ringspun.run do
        strand = parked { wait("one", "two", "three", max: 9) }
        push(queue, queue: queue)
        assert_equal [[queue, queue]], (strand.await.map { |one| [one.queue, *jids([one])] })
      end
    end
    assert_empty wait("one", "two", "three", max: 9, seconds: 0.01)
  end

  # Each may come from one queue, so not all queues can be waited at.
  def test_waits_at_more_queues_than_jobs_may_come
    Ringspun.run do
      strand = parked { wait("one", "two", "three") }
      push("a", "b", queue: "three")
      assert_equal %w[a], jids(strand.await)
    end
    assert_equal %w[b], jids(wait("one", "two", "three"))
  end

  def test_a_wait_on_a_connection_of_the_callers
    connection = storage.connect
    Ringspun.run do
      %w[one two].each do |queue|
        strand = parked { wait("one", "two", connection: connection) }
        push(queue, queue: queue)
        assert_equal [queue], jids(strand.await)
      end
    end
  ensure
    connection&.close
  end

  def test_a_wait_hears_of_other_threads
    Ringspun.run do
      strand = parked { wait("default") }
      Thread.new { push("a") }.join
      assert_equal %w[a], jids(strand.await)
    end
  end

  def test_a_thread_waits_without_a_machine
    push("a", queue: "two")
    assert_equal %w[a], jids(wait("one", "two", max: 5))
    thread = Thread.new { wait("one", "two", max: 5) }
    push("b", queue: "two")
    assert_equal %w[b], jids(thread.value)
  end

  def test_each_job_goes_to_one_of_those_who_wait
    Ringspun.run do
      strands = Array.new(3) { machine.spin { wait("default", "other") } }
      until_parked(*strands)
      push("a", "b")
      push("c", queue: "other")
      assert_equal %w[a b c], jids(machine.await(*strands).flatten).sort
    end
  end

  # Whoever leaves with one job must not take the news of another along.
  def test_nobody_waits_beside_a_job
    Ringspun.run do
      5.times do
        strands = Array.new(2) { machine.spin { wait("one", "two", max: 1) } }
        until_parked(*strands)
        push("a", queue: "one")
        push("b", queue: "two")
        assert_equal %w[a b], jids(machine.await(*strands).flatten).sort
      end
    end
  end

  def test_a_wait_takes_what_is_there_in_the_order_of_a_fetch
    push("a", "b", "c")
    push("d", queue: "other")
    assert_equal %w[d a], jids(wait("other", "default", max: 2))
    assert_equal %w[b c], jids(wait("other", "default", max: 9, seconds: 0))
    assert_equal [[], []], [wait("default", seconds: 0), wait("default", seconds: 0.01)]
    push("e")
    assert_equal [[], %w[e]], [wait("default", max: 0), jids(wait("default"))]
  end

  def test_a_wait_passes_over_paused_queues
    storage.pause("one")
    push("a", queue: "one")
    assert_empty wait("one", seconds: 0.01)
    Ringspun.run do
      strand = parked { wait("one", "two", max: 9) }
      push("b", queue: "one")
      push("c", queue: "two")
      assert_equal %w[c], jids(strand.await)
      strand = parked { wait("one", "two", max: 9) }
      storage.resume("one")
      assert_equal %w[a b], jids(strand.await)
    end
  end

  # No job that is pushed after the pause comes out of a wait that began before it.
  def test_a_wait_heeds_a_pause_that_comes_later
    Ringspun.run do
      strand = parked { wait("one", "two", max: 9) }
      storage.pause("one")
      push("a", queue: "one")
      push("b", queue: "two")
      assert_equal %w[b], jids(strand.await)
      assert_equal %w[a], jids(list("one"))
    end
    assert_equal 1, storage.stats[:in_flight]
  end

  def test_a_wait_heeds_limits
    storage.extend([NODE, OTHER], 60)
    push("a", "b")
    limits = { "default" => 1 }
    first = wait("default", max: 9, limits: limits)
    assert_equal [%w[a], []], [jids(first), wait("default", max: 9, limits: limits, seconds: 0.01)]
    Ringspun.run do
      strand = parked { wait("default", "other", max: 9, limits: limits, node: OTHER) }
      storage.ack(NODE, [done(first.first)])
      assert_equal %w[b], jids(strand.await)
      strand = parked { wait("default", "other", max: 9, limits: limits, node: OTHER) }
      push("c", queue: "other")
      assert_equal %w[c], jids(strand.await)
    end
  end

  def test_a_wait_that_is_ended_early
    Ringspun.run do
      others = parked { wait("a", node: OTHER) }
      storage.pause("p")
      mine = [%w[a], %w[b], %w[a b], %w[p], []].map { |queues| parked { wait(*queues, max: 9) } }
      while mine.any?(&:alive?)
        storage.rouse(NODE)
        machine.sleep(0.001) # for threads of the storage's
      end
      assert_equal [[]] * 5, machine.await(*mine)
      assert_predicate others, :alive?
      push("a", queue: "a")
      assert_equal %w[a], jids(others.await)
      assert_nil storage.rouse("none such")
    end
  end

  def test_a_wait_that_is_cancelled_takes_no_job_along
    Ringspun.run do
      strand = parked { wait("one", "two", max: 9) }
      strand.terminate
      push("a", queue: "two")
      assert_equal %w[a], jids(wait("one", "two", max: 9, node: OTHER, seconds: 0.01) + storage.in_flight(NODE))
    end
  end

  def test_leases
    assert_equal [true, true], storage.extend([NODE, OTHER], 60)
    assert_equal [true], storage.extend([NODE], 60)
  end

  def test_what_is_due_goes_into_its_queue
    now = storage.time
    push("late", at: now - 5)
    push("later", at: now - 4, queue: "other")
    push("never", at: now + 5000)
    push("soon", delay: -1)
    moved, left = storage.due(100)
    assert_equal 3, moved
    assert_in_delta 5000, left, 60
    assert_equal %w[late soon], jids(fetch)
    assert_equal %w[later], jids(fetch(queues: %w[other]))
    assert_equal %w[never], jids(set(:schedule))
  end

  def test_due_goes_in_pages
    5.times { |index| push("j#{index}", at: 1000 + index) }
    assert_equal [[2, 0.0], [2, 0.0], [1, nil]], Array.new(3) { storage.due(2).first(2) }
    assert_equal %w[j0 j1 j2 j3 j4], jids(fetch)
  end

  def test_a_page_of_what_is_due_is_of_both_sets
    push("a", "b")
    storage.fail(NODE, fetch.map { |one| failed(one, to: :retry, delay: -5) })
    push("c", "d", at: 5)
    assert_equal [3, 1], Array.new(2) { storage.due(3).first }
  end

  def test_what_is_due_is_as_it_was_but_for_when
    text = %({"class":"Work","args":[[],{},1.0,10000000000000001,"é"],"jid":"a","queue":"default","unknown":{}})
    stamped = text.sub("{", %({"enqueued_at":1.5,))
    storage.push([text, stamped].map { |one| Storage::Push.new(queue: "default", entry: one, at: 1) })
    before = storage.time
    assert_equal 2, storage.due(2).first
    moved = entries(fetch)
    assert_includes moved, stamped
    added = (moved - [stamped]).first
    assert_equal text, added.sub(/"enqueued_at":\d+\.\d+,/, "")
    assert_operator Ringspun::Jobs::Wire.parse(added)["enqueued_at"], :>=, before.floor
  end

  def test_what_is_no_job_dies_when_it_is_due
    texts = ["", "nonsense", "[]", "5", "{}",
             %({"class":1,"args":[],"jid":"a"}), %({"class":"A","jid":"a"}), %({"class":"A","args":[]})]
    storage.push(texts.map { |text| Storage::Push.new(queue: "default", entry: text, at: 1) })
    push("good", at: 2)
    moved, seconds, told = storage.due(100)
    assert_equal [1, nil], [moved, seconds]
    dead = entries(set(:dead))
    assert_equal told.map(&:first).sort, dead.sort
    assert_equal ["", "nonsense"], dead.grep_v(/{/).sort
    faults = ["the entry is no JSON object", "the entry is no JSON object", /class is missing|args is missing|jid is missing/,
              "the entry's class is 1", "the entry's args is missing", "the entry's jid is missing"]
    faults.zip([%({"args":[[]]}), %({"args":[5]}), *texts.drop(4)]) do |fault, text|
      entry = dead.find { |one| one.include?("{") && JSON.parse(one).except(*FAULT) == JSON.parse(text) }
      assert_operator fault, :===, JSON.parse(entry)["error_message"]
      assert_equal ["Ringspun::Jobs::MalformedEntryError", Float], JSON.parse(entry).values_at(*FAULT.values_at(0, 2))
                                                                        .then { |name, time| [name, time.class] }
      assert_includes told, [entry, JSON.parse(entry)["error_message"]]
    end
    assert_equal %w[good], jids(fetch)
  end

  # Nothing may come into a node's jobs in flight, or into the quarantine, from outside.
  def test_a_job_of_a_queue_that_is_reserved_dies_when_it_is_due
    names = ["backup::#{NODE}::default", Storage::QUARANTINE]
    push("a", at: 1, queue: names.first)
    push("b", at: 2, queue: names.last)
    push("c", at: 3, queue: "backup")
    moved, _, told = storage.due(100)
    assert_equal [1, names.map { |name| "the queue #{JSON.generate(name)} is reserved" }], [moved, told.map(&:last)]
    assert_equal [[], [], %w[c]], [storage.in_flight(NODE), list(Storage::QUARANTINE), jids(fetch(queues: ["backup"]))]
    assert_equal [false, false], storage.retry_now(:dead, set(:dead).map(&:token))
    assert_equal [%w[a b], 1], [jids(set(:dead)), storage.stats[:queues].size]
  end

  FAULT = %w[error_class error_message failed_at].freeze

  # It may say why it has failed before.
  def test_what_was_wrong_before_is_not_what_is_wrong_now
    storage.push([Storage::Push.new(queue: "default", at: 1, entry: '{"error_message":"old","class":"A","jid":"a"} ')])
    storage.due(100)
    assert_equal "the entry's args is missing", JSON.parse(set(:dead).first.entry)["error_message"]
  end

  def test_a_storage_that_threatens_nothing
    assert_empty storage.risks
  end

  def test_a_lock_refuses_a_second_job
    assert_nil push("a", lock: "token", lock_seconds: 60)
    assert_equal ["a"], push("b", lock: "token", lock_seconds: 60)
    assert_nil push("a", lock: "token", lock_seconds: 60)
    assert_equal [nil, "a", nil], storage.push([push_of("c"), push_of("d", lock: "token", lock_seconds: 60), push_of("e")])
    assert_equal %w[a c e], jids(fetch)
  end

  def test_a_lock_for_later
    assert_nil push("a", lock: "token", lock_seconds: 60, at: 5)
    assert_equal ["a"], push("b", lock: "token", lock_seconds: 60, delay: 5)
    assert_equal [["a"], []], [jids(set(:schedule)), fetch]
  end

  def test_a_lock_lasts_from_when_the_job_may_run
    began = storage.time
    storage.push([push_of("a", lock: "at", lock_seconds: 0.001, at: began + 1000),
                  push_of("b", lock: "in", lock_seconds: 0.001, delay: 1000), push_of("c", lock: "now", lock_seconds: 0.001)])
    nil until storage.time > began + 0.01
    assert_equal [["a"], ["b"], nil], (%w[at in now].map { |lock| push("d#{lock}", lock: lock, lock_seconds: 1) })
  end

  # Its answer was lost, and it is sent again.
  def test_a_push_with_a_lock_is_known_when_its_job_has_run_meanwhile
    assert_nil push("a", lock: "token", lock_seconds: 60)
    storage.ack(NODE, [done(fetch.first, lock: "token")])
    assert_nil push("a", lock: "token", lock_seconds: 60)
    assert_empty fetch
    assert_nil push("b", lock: "token", lock_seconds: 60)
    assert_nil push("a", lock: "token", lock_seconds: 60)
    assert_equal %w[b], jids(fetch)
  end

  def test_an_ack_releases_the_lock_of_its_own_job
    push("a", lock: "mine", lock_seconds: 60)
    push("b", lock: "theirs", lock_seconds: 60)
    push("c")
    a, _, c = fetch
    storage.ack(NODE, [done(a, lock: "mine"), done(c, lock: "theirs")])
    assert_equal [nil, ["b"]], [push("d", lock: "mine", lock_seconds: 60), push("e", lock: "theirs", lock_seconds: 60)]
  end
end

require_relative "storage_suite/nodes"
require_relative "storage_suite/admin"
require_relative "storage_suite/locks"
require_relative "storage_suite/search"
require_relative "storage_suite/history"
require_relative "storage_suite/priority"
require_relative "storage_suite/limits"
require_relative "storage_suite/due"
require_relative "storage_suite/done"
require_relative "storage_suite/upkeep"
require_relative "storage_suite/crons"
require_relative "storage_suite/transactions"
