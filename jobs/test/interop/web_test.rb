# frozen_string_literal: true

require "support/interop_case"
require "support/sidekiq_web"

# Sidekiq's web pages show what is ours, and their buttons work on it.
class InteropWebTest < InteropCase
  def web(&) = RealSidekiq.on(url) { |pool| yield SidekiqWeb.new(pool) }

  # Answers the page's text without its markup.
  def page(web, path)
    answer = web.get(path)
    assert_equal 200, answer.status, "#{path}: #{answer.body}"
    CGI.unescapeHTML(answer.body.gsub(/<[^>]*>/, " ").gsub(/\s+/, " "))
  end

  def fail_one(*arguments, **options)
    jid = FromRingspun.set(**options).perform_async("fail", *arguments)
    told
    jid
  end

  # The path of the page, or of the buttons, of that set's only entry.
  def key_of(set)
    entry, score = redis.call("ZRANGE", set, 0, -1, "WITHSCORES").first
    "#{score}-#{JSON.parse(entry)["jid"]}"
  end

  def test_the_pages_of_jobs_that_wait
    jid = FromRingspun.set(tags: %w[blue]).perform_async("a", "<b>")
    FromRingspun.perform_in(3600, "later")
    web do |web|
      assert_match(/1 Enqueued/, page(web, "/"))
      assert_match(/default 1/, page(web, "/queues"))
      assert_match(/FromRingspun blue "a", "<b>"/, page(web, "/queues/default"))
      assert_match(/default FromRingspun "later"/, page(web, "/scheduled"))
      assert_match(/FromRingspun .*"later".* JID /, page(web, "/scheduled/#{key_of("schedule")}"))
      assert_equal 302, web.post("/queues/default/delete", key_val: redis.call("LINDEX", "queue:default", 0)).status
      assert_equal 0, redis.call("LLEN", "queue:default"), jid
      assert_equal 302, web.post("/scheduled/#{key_of("schedule")}", add_to_queue: "1").status
    end
    start_worker
    assert_equal ["ringspun", "FromRingspun", "later"], told.values_at(0, 1, 3)
  end

  def test_the_pages_of_a_job_that_has_failed
    start_worker
    fail_one("<i>", retry: 5, tags: %w[red])
    entry_of("retry")
    web do |web|
      assert_match(/0 default FromRingspun red "fail", "<i>" ArgumentError: as told/, page(web, "/retries"))
      text = page(web, "/retries/#{key_of("retry")}")
      assert_match(/ArgumentError.*as told/, text)
      assert_match(/Originally Failed 2/, text)
      web.post("/retries/#{key_of("retry")}", retry: "1")
      assert_equal ["fail", "<i>"], told.drop(3)
      entry_of("retry")
      web.post("/retries/#{key_of("retry")}", kill: "1")
      assert_match(/default FromRingspun red "fail", "<i>" ArgumentError: as told/, page(web, "/morgue"))
      assert_match(/ArgumentError.*as told/, page(web, "/morgue/#{key_of("dead")}"))
      web.post("/morgue/#{key_of("dead")}", retry: "1")
      told
      entry_of("retry")
      web.post("/retries/#{key_of("retry")}", delete: "1")
      assert_equal [0, 0], [redis.call("ZCARD", "retry"), redis.call("ZCARD", "dead")]
    end
  end

  def test_the_page_of_a_job_that_has_failed_twice
    start_worker
    fail_one
    entry_of("retry")
    make_due("retry")
    told
    soon("it is to be tried again") { redis.call("ZCARD", "retry") == 1 }
    web do |web|
      assert_match(/Retry Count 1 Last Retry 2/, page(web, "/retries/#{key_of("retry")}"))
      web.post("/retries/all/kill")
      assert_equal 1, redis.call("ZCARD", "dead")
    end
  end

  def test_the_page_of_what_runs
    start_worker(queues: %w[default other])
    jid = FromRingspun.set(queue: "other").perform_async("hold", "x")
    told
    web do |web|
      text = soon("it is shown") { page(web, "/busy").then { |found| found if found.include?(jid) } }
      assert_match(/1 Processes 10 Threads 1 Busy 10%/, text)
      assert_match(/#{jid} other FromRingspun "hold", "x"/, text)
      assert_match(/Queues: (default, other|other, default)/, text)
      redis.call("LPUSH", "go", "1")
      soon("it is gone") { !page(web, "/busy").include?(jid) }
      soon("it is counted") { page(web, "/").include?("1 Processed") }
    end
  end

  def test_the_buttons_of_a_process
    worker = start_worker
    soon("it is there") { redis.call("SCARD", "processes") == 1 }
    identity = redis.call("SMEMBERS", "processes").first
    web do |web|
      web.post("/busy", identity:, quiet: "1")
      soon("it is quiet") { page(web, "/busy").include?("quiet") }
      FromRingspun.perform_async("never")
      web.post("/busy", identity:, stop: "1")
      assert_predicate worker.wait, :success?, worker.log
      assert_match(/0 Processes/, page(web, "/busy"))
      assert_equal [1, 0], [redis.call("LLEN", "queue:default"), redis.call("LLEN", "told")]
    end
  end

  MALFORMED = ["no JSON", "[1]", "null", "7", '"text"', "{}", '{"class":7,"args":1,"jid":[]}', "\xff\x00", ""].freeze

  # What is no job is among the dead ones, and no page breaks because of it.
  def test_the_pages_of_what_is_no_job
    start_worker
    redis.call("SADD", "queues", "default")
    redis.call("LPUSH", "queue:default", *MALFORMED)
    redis.call("ZADD", "schedule", *MALFORMED.flat_map { |entry| [1, "#{entry} "] })
    soon("all are dead") { redis.call("ZCARD", "dead") == MALFORMED.size * 2 }
    web do |web|
      %w[/ /busy /queues /queues/default /retries /scheduled /morgue].each { |path| page(web, path) }
      text = page(web, "/morgue")
      assert_match(/"no JSON"/, text)
      assert_match(/MalformedEntryError: the entry's class is 7/, text)
    end
  end
end
