# frozen_string_literal: true

require "cgi/escape"
require "jobs_helper"
require "support/command_case"
require "ringspun/jobs/web"

# The pages on a real Redis, beside a real worker.
class WebRedisTest < CommandCase
  SETTINGS = LEASE
  PROGRAM = <<~'RUBY'
    class Wait
      include Ringspun::Jobs::Job

      def perform(seconds) = sleep(seconds)
    end
  RUBY
  SECONDS = 30

  def web = @web ||= Jobs::Web.new(storage:)

  def request(verb, path, body = nil)
    path, query = path.split("?", 2)
    env = { "REQUEST_METHOD" => verb, "PATH_INFO" => path, "QUERY_STRING" => query.to_s, "HTTP_HOST" => "localhost" }
    if body
      env["HTTP_COOKIE"] = @cookie
      env["CONTENT_TYPE"] = "application/x-www-form-urlencoded"
      env["rack.input"] = StringIO.new("#{body}&#{@cookie}")
    end
    status, headers, parts = web.call(env)
    @cookie = headers["set-cookie"][/\A[^;]+/] if headers["set-cookie"]
    [status, parts.join]
  end

  def get(path) = request("GET", path)

  # Nobody else has looked within a second.
  def fresh = web.instance_variable_get(:@sampler).forget

  def soon(what)
    value = Patience.poll(SECONDS, pause: 0.05) do
      fresh
      yield
    end
    value || flunk("#{what}: not so")
  end

  def test_what_a_job_waits_for_and_to_cancel_it
    Jobs.storage = storage
    jid = Jobs.enqueue("Wait", 1000)
    start
    body = soon("it is told") { get("/busy").last.then { |text| text if text.include?("a time to pass") } }
    assert_includes body, jid
    assert_match(%r{Queue</dt>}, get(CGI.unescapeHTML(body[%r{href="(/job\?[^"]+)"}, 1])).last)
    assert_equal 303, request("POST", CGI.unescapeHTML(body[%r{action="(/cancel\?[^"]+)"}, 1]), "act=cancel").first
    soon("it is gone") { storage.stats[:in_flight].zero? }
    assert_includes get("/job?jid=#{jid}").last, "cancelled"
    assert_predicate @command.finish, :success?
  ensure
    Jobs.storage = nil
  end

  def test_a_page_of_a_list_is_one_reading_of_its_own_entries
    storage.push(Array.new(2000) { |number| push_of(JOB.sub('"a"', %("j#{number}")), at: 5e9 + number) })
    # The second never passes for which sizes are remembered.
    web.instance_variable_set(:@sampler, Jobs::Web.const_get(:Sampler).new(clock: -> { 0.0 }) { storage })
    assert_equal 200, get("/scheduled").first
    call("CONFIG", "RESETSTAT")
    assert_equal 50, get("/scheduled?from=1000").last.scan('name="key"').size
    asked = call("INFO", "commandstats").scan(/cmdstat_(\S+):calls=(\d+)/).to_h.except("config|resetstat", "info")
    assert_equal({ "zrange" => "1" }, asked)
  end

  def test_while_redis_is_away_the_pages_say_so_and_come_back
    @web = Jobs::Web.new(storage: far)
    assert_equal 200, get("/").first
    proxy.refusing = true
    proxy.cut
    fresh
    status, body = get("/retries")
    assert_equal 503, status
    assert_includes body, "The storage is away"
    proxy.refusing = false
    assert_equal 200, soon("it is back") { get("/retries").then { |answer| answer if answer.first == 200 } }.first
  end
end
