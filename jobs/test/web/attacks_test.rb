# frozen_string_literal: true

require "jobs_helper"
require "support/web_case"
require "support/web_example"
require "support/seeds"

# What others may write into a job, a request or a header, and what it must not do.
class WebAttacksTest < WebCase
  EVIL = %(<script>alert("x")</script>'"><img src=x onerror=alert(1)>)
  PAGES = %w[/ /live /queues /busy /scheduled /retries /dead /quarantine /processes /search?class=Work /search?jid=a].freeze

  # No element and no attribute but ours.
  def assert_harmless(body, where)
    body = body.dup.force_encoding(Encoding::UTF_8)
    assert_predicate body, :valid_encoding?, where
    tags = body.scan(%r{<(/?[a-zA-Z!][^>]*)>}).flatten
    assert_empty tags.grep(/\A(img|iframe|b\b|object|style|base)/i), where
    assert_equal body.scan("<script").size, body.scan(%r{<script src="[^"]+\.js" defer></script>}).size, where
    assert_empty tags.grep(/\son\w+\s*=|\sstyle=|javascript:/i).reject { |tag| tag.include?("&quot;") }, where
  end

  def pages_of(queue = "default")
    query = "place=queue&queue=#{CGI.escape(queue)}"
    links = PAGES + ["/queue?#{query}"]
    bodies = links.to_h { |path| [path, get(path).body] }
    links = bodies.each_value.flat_map { |body| body.scan(%r{href="(/job\?[^"]+)"}).flatten }.uniq
    bodies.merge(links.map { |link| CGI.unescapeHTML(link) }.to_h { |path| [path, get(path).body] })
  end

  # In a queue, in each set, and in flight.
  def spread(**fields)
    push("a", entry: entry("a", **fields))
    %i[retry dead].each { |set| put(set, "a", **fields) }
    push("s", entry: entry("s", **fields), at: 5e9)
    memory.announce(NODE, { "concurrency" => 1, "queues" => %w[default] }, [["1", "default", entry("a", **fields), 1.0]])
  end

  def assert_shown_as_text(text, **fields)
    spread(**fields)
    all = pages_of
    assert_operator all.size, :>, 14
    all.each { |path, body| assert_harmless(body, path) }
    assert_operator all.count { |_, body| body.include?(CGI.escapeHTML(text)) }, :>=, 3
  end

  def test_a_class = assert_shown_as_text(EVIL, class: EVIL)
  def test_a_wrapped_class = assert_shown_as_text(EVIL, wrapped: EVIL)
  def test_arguments = assert_shown_as_text(JSON.generate(EVIL), args: [EVIL, { EVIL => EVIL }])
  def test_a_jid = assert_shown_as_text(EVIL, jid: EVIL)
  def test_tags = assert_shown_as_text(EVIL, tags: [EVIL, { EVIL => 1 }, 7])
  def test_the_class_of_an_error = assert_shown_as_text(EVIL, error_class: EVIL)
  def test_the_message_of_an_error = assert_shown_as_text(EVIL, error_message: EVIL)
  def test_a_backtrace = assert_shown_as_text(EVIL, error_class: "E", error_backtrace: [EVIL, 7, nil])
  def test_the_queue_that_a_job_names = assert_shown_as_text(EVIL, queue: EVIL)

  def test_what_is_of_another_type_than_it_should_be
    spread(wrapped: [1], tags: { "a" => 1 }, error_class: [EVIL], error_message: 7, error_backtrace: 7, retry_count: "x",
           created_at: "yesterday", enqueued_at: -1e300, failed_at: 1e308, retried_at: [])
    pages_of.each { |path, body| assert_harmless(body, path) }
  end

  MALFORMED = ["", "no JSON", "[1]", "null", '{"class":7,"args":1,"jid":[]}', "\xff\x00<b>", "#{"[" * 5000}#{"]" * 5000}",
               '{"class":"A","args":[1e999],"jid":"j"}', '{"class":"A","args":["\ud800"],"jid":"\u0000"}', EVIL].freeze

  def test_what_is_no_job
    MALFORMED.each do |text|
      push("a", entry: text)
      push("a", entry: text, at: 5e9)
    end
    # Ruby warns of numbers that are too large.
    capture_io { pages_of.each { |path, body| assert_harmless(body, path) } }
    %w[/queue?place=queue&queue=default /scheduled].each do |path|
      capture_io { assert_equal MALFORMED.size, keys(path).size, path }
    end
    capture_io { told(press("/jobs?place=scheduled", act: "delete", key: keys("/scheduled"))) }
    assert_equal 0, memory.stats[:scheduled]
  end

  def test_a_queue_with_any_name
    ["a/../../b", "a b&c=d?e#f%2e", EVIL, "\xff\n\"", "ü", "%3Cb%3E", "static/x.css"].each do |name|
      push("a", queue: name.dup.force_encoding(Encoding::UTF_8), entry: entry("a", queue: "default"))
    end
    body = get("/queues").body
    assert_harmless(body, "/queues")
    body.scan(%r{href="(/queue\?[^"]+)"}).flatten.map { |link| CGI.unescapeHTML(link) }.each do |link|
      assert_equal 1, keys(link).size, link
      assert_harmless(get(link).body, link)
    end
    body.scan(%r{action="(/queues\?[^"]+)"}).flatten.map { |link| CGI.unescapeHTML(link) }.each do |link|
      assert_match(/paused/, told(press(link, act: "pause")).last)
    end
    assert_equal memory.stats[:queues].keys.sort, memory.paused
  end

  def test_what_a_process_announces
    memory.announce(EVIL, { "tag" => EVIL, "labels" => [EVIL], "queues" => [EVIL], "concurrency" => EVIL, "started_at" => EVIL,
                            "waits" => { "1" => EVIL }, "ringspun" => EVIL }, [["1", EVIL, entry(EVIL), 1.0]])
    %w[/processes /busy /].each { |path| assert_harmless(get(path).body, path) }
    assert_includes get("/busy").body, CGI.escapeHTML(EVIL)
  end

  def test_results_and_histories
    push
    one = memory.fetch(NODE, ["default"], 1).first
    event = Storage::Event.new(kind: :dead, error_class: EVIL, error_message: EVIL)
    memory.fail(NODE, [Storage::Failure.new(queue: "default", token: one.token, jid: "a", to: :dead, event:)])
    push("b")
    two = memory.fetch(NODE, ["default"], 1).first
    result = JSON.generate(EVIL)
    memory.ack(NODE, [Storage::Ack.new(queue: "default", token: two.token, jid: "b", result:, keep_seconds: 9)])
    %w[/job?jid=a /job?jid=b].each do |path|
      assert_harmless(body = get(path).body, path)
      assert_includes body, "alert"
    end
  end

  def test_a_message_of_the_storage
    storage.fault = Jobs::StorageError.new(EVIL)
    assert_harmless(get("/").body, "/")
  end

  def test_what_is_in_the_address
    evil = CGI.escape(EVIL)
    ["/queue?place=queue&queue=#{evil}", "/job?jid=#{evil}", "/job?place=running&node=#{evil}&jid=#{evil}",
     "/search?class=#{evil}", "/search?jid=#{evil}&where=#{evil}", "/search?text=x&cursor=#{evil}", "/busy?node=#{evil}",
     "/dead?from=#{evil}", "/queues?from=-1", "/retries?said=#{evil}&n=#{evil}", "/retries?said=retry&n=#{"9" * 50}",
     "/dead?from=#{"9" * 12}", "/queues?from=#{"9" * 12}", "/?#{evil}", "/#{evil}", "/%00", "/\xff",
     "/job?place=dead&at=#{"9" * 12}&key=x&jid=%FF"].each do |path|
      answer = get(path)
      assert_includes [200, 400, 404], answer.status, path
      assert_harmless(answer.body, path)
    end
  end

  def test_whatever_is_in_the_address_there_is_an_answer
    pages = [*WebExample::PAGES.values.map { |path| path[/\A[^?]+/] }, "/live", "/quarantine"].uniq
    names = %w[from place queue jid text class where at key node said n gone left part cursor act]
    values = ["%FF", "%00", "%ED%A0%80", "-1", "1e99", "9" * 40, "%0d%0ax:1", "..%2f..%2f", "", "retries", "queue"]
    all = pages.product(names, values, ["", "place=retries&", "place=queue&queue=mail&"])
    # By day a third of them, by night all.
    share = [Seeds.part(all.size / 3), all.size].min
    all.sample(share, random: Random.new(Seeds.of_the_day(1).first)).each do |page, name, value, place|
      answer = get("#{page}?#{place}#{name}=#{value}")
      assert_includes [200, 404], answer.status, "#{page}?#{place}#{name}=#{value}"
      assert_predicate answer.body.dup.force_encoding(Encoding::UTF_8), :valid_encoding?
    end
  end

  def test_a_job_is_looked_for_with_a_cursor_that_is_none
    ["junk", "%FF", "eyJ9"].each do |cursor|
      answer = get("/job?jid=a&cursor=#{cursor}")
      assert_equal 400, answer.status
      assert_includes answer.body, "This page&#39;s address is damaged: begin anew."
    end
  end

  def test_whatever_is_in_a_form_there_is_an_answer
    push("a", queue: "\xff", entry: entry("a", queue: "default"))
    ["\xff:\xff", ":", "x:\xff", "x:%FF", "x"].each do |key|
      %w[place=dead place=queue&queue=%FF place=queue&queue=none].each do |place|
        assert_equal 303, press("/jobs?#{place}", act: "delete", key:).status, [place, key].inspect
      end
    end
  end

  def test_a_storage_that_cannot_be_made
    [Jobs::UnavailableError, Jobs::ConfigError].each do |kind|
      web = Jobs::Web.new
      web.define_singleton_method(:storage) { raise kind, EVIL }
      status, _headers, body = web.call(Rack::MockRequest.env_for("/").merge(LOCAL))
      assert_equal 503, status
      assert_match(/\AThe storage cannot be used: /, body.first)
    end
  end

  def test_characters_by_which_a_text_could_look_like_another
    push("a", entry: entry("a", class: "Ab\u202egnp.\u0007"))
    assert_includes text("/queue?place=queue&queue=default"), "Ab\u{fffd}gnp.\u{fffd}"
  end

  # --- requests ---

  def test_no_path_leads_to_other_files
    css = get("/").body[%r{href="(/static/[^"]+\.css)"}, 1]
    answer = get(css)
    assert_equal [200, "text/css; charset=utf-8"], [answer.status, answer["content-type"]]
    assert_match(/immutable/, answer["cache-control"])
    name = File.basename(css)
    ["/static/", "/static", "/static/jobs.css", "/static/../web.rb", "/static/%2e%2e/web.rb", "/static/..%2fweb.rb",
     "/static//#{name}", "/static/#{name}/", "/static/./#{name}", "/static/#{name}\0", "//static/#{name}", "/../static/#{name}",
     "/etc/passwd", "//etc/passwd"].each { |path| assert_equal 404, get(path).status, path }
  end

  def test_a_mount_point_that_is_none
    ["//evil.example", "/a\"><script>", "/a b", "evil", "/a\r\nx: y", "https://evil.example"].each do |base|
      answer = get("/", "SCRIPT_NAME" => base)
      assert_equal [400, "text/plain; charset=utf-8"], [answer.status, answer["content-type"]], base
      refute_includes answer.body, "evil"
    end
  end

  def test_no_header_says_where_we_are
    headers = %w[X_FORWARDED_HOST X_FORWARDED_PREFIX X_FORWARDED_PROTO X_FORWARDED_PORT FORWARDED X_ORIGINAL_URL X_REWRITE_URL]
    evil = headers.to_h { |name| ["HTTP_#{name}", "evil.example"] }
    refute_includes get("/", **evil).body, "evil"
    refute_includes get("/", "HTTP_HOST" => "127.0.0.1:80", "SERVER_NAME" => "evil.example").body, "evil"
    location = request("POST", "/queues?queue=x", evil.merge("HTTP_COOKIE" => (form_secret && @cookie)),
                       "act=pause&ringspun_jobs_secret=#{@cookie.split("=").last}")["location"]
    assert_equal "/queues?said=pause&n=1&gone=0&left=0", location
  end

  # A site whose name leads here for a moment could read the pages in a browser of ours.
  def test_without_authentication_only_local_names_are_answered
    %w[localhost localhost:1 app.localhost:80 127.0.0.1 [::1]:80 192.168.1.5:80].each do |host|
      assert_equal 200, get("/", "HTTP_HOST" => host).status, host
    end
    ["evil.example", "localhost.evil.example", "", "127.0.0.1.evil.example:80", "[::1].x"].each do |host|
      assert_equal 403, get("/", "HTTP_HOST" => host).status, host
    end
    @web = Jobs::Web.new(storage:, authenticate: ->(_env) { true })
    assert_equal 200, get("/", "HTTP_HOST" => "jobs.example.org").status
  end

  def test_every_answer_has_the_headers_that_protect_it
    css = get("/").body[%r{href="(/static/[^"]+\.css)"}, 1]
    ["/", css, "/nowhere", "/live", "/search?text=x&cursor=x"].each do |path|
      headers = get(path).headers
      assert_match(/default-src 'none'; script-src 'self'; style-src 'self'/, headers["content-security-policy"], path)
      refute_match(/unsafe|\*|http/, headers["content-security-policy"])
      assert_equal %w[nosniff DENY same-origin], headers.values_at("x-content-type-options", "x-frame-options", "referrer-policy")
    end
    assert_equal "no-store", get("/")["cache-control"]
    assert_equal 403, get("/", "HTTP_HOST" => "x.example").tap { |answer| assert answer["content-security-policy"] }.status
  end

  def test_other_verbs
    %w[PUT DELETE PATCH OPTIONS TRACE <b>].each { |verb| assert_equal 405, request(verb, "/", {}).status, verb }
    head = request("HEAD", "/", {})
    assert_equal [200, ""], [head.status, head.body]
  end

  def test_a_form_that_is_too_long
    assert_equal 413, request("POST", "/jobs", {}, "key=#{"x" * 70_000}").status
  end

  # --- forgery ---

  def deleted?(**env)
    secret = form_secret
    env = { "HTTP_COOKIE" => @cookie, **env.transform_keys(&:to_s) }.compact
    body = "act=clear&ringspun_jobs_secret=#{env.delete("secret") || secret}"
    answer = request("POST", "/all?place=queue&queue=default", env, body)
    [answer.status, memory.stats[:enqueued].zero?]
  end

  def test_a_form_without_its_secret_does_nothing
    push
    assert_equal [403, false], deleted?(secret: "0" * 64)
    assert_equal [403, false], deleted?(secret: "x")
    assert_equal [403, false], deleted?(HTTP_COOKIE: nil)
    assert_equal [403, false], deleted?(HTTP_COOKIE: "ringspun_jobs_secret=")
    assert_equal [403, false], deleted?(HTTP_COOKIE: "ringspun_jobs_secret=x", secret: "x")
    assert_equal [403, false], deleted?(HTTP_COOKIE: "xringspun_jobs_secret=#{"0" * 64}", secret: "0" * 64)
    assert_equal [303, true], deleted?
  end

  def test_another_site_does_nothing
    push
    assert_equal [403, false], deleted?(HTTP_SEC_FETCH_SITE: "cross-site")
    assert_equal [403, false], deleted?(HTTP_SEC_FETCH_SITE: "same-site")
    assert_equal [403, false], deleted?(HTTP_SEC_FETCH_SITE: "none")
    assert_equal [403, false], deleted?(HTTP_ORIGIN: "https://evil.example")
    assert_equal [403, false], deleted?(HTTP_ORIGIN: "null")
    assert_equal [403, false], deleted?(HTTP_ORIGIN: "http://localhost:9293")
    assert_equal [303, true], deleted?(HTTP_ORIGIN: "http://localhost:9292")
    push
    assert_equal [303, true], deleted?(HTTP_SEC_FETCH_SITE: "same-origin")
  end

  def test_a_get_changes_nothing
    push
    secret = form_secret
    storage.calls.clear
    %w[/all /jobs /queues /cancel /processes].each do |path|
      get("#{path}?place=queue&queue=default&act=clear&ringspun_jobs_secret=#{secret}", "HTTP_COOKIE" => @cookie)
    end
    assert_empty storage.calls.map(&:first) & %i[clear remove kill retry_now pause resume signal]
  end

  def test_buttons_that_there_are_not
    push
    assert_equal 400, press("/jobs?place=queue&queue=default", act: "explode", key: "x").status
    assert_equal 400, press("/jobs?place=dead", act: "kill", key: "x").status
    assert_equal 400, press("/all?place=queue&queue=default", act: "retry").status
    assert_equal 400, press("/queues?queue=default", act: "clear").status
    assert_equal 400, press("/nowhere", act: "clear").status
    assert_equal 1, memory.stats[:enqueued]
  end

  def test_the_cookie
    push(at: 5e9)
    cookie = get("/scheduled")["set-cookie"]
    assert_match(%r{\Aringspun_jobs_secret=\h{64}; path=/; httponly; samesite=strict\z}, cookie)
    encrypted = get("/scheduled", "rack.url_scheme" => "https", "SCRIPT_NAME" => "/jobs")["set-cookie"]
    assert_match(%r{; path=/jobs; httponly; samesite=strict; secure\z}, encrypted)
    assert_nil get("/scheduled", "HTTP_COOKIE" => cookie[/\A[^;]+/])["set-cookie"]
  end

  def test_where_there_is_a_session_the_secret_is_in_it
    push
    session = {}
    answer = get("/queue?place=queue&queue=default", "rack.session" => session)
    secret = answer.body[/name="ringspun_jobs_secret" value="(\h+)"/, 1]
    assert_equal [[secret], nil], [session.values, answer["set-cookie"]]
    path = "/all?place=queue&queue=default"
    fields = "ringspun_jobs_secret=#{secret}"
    assert_equal 403, request("POST", path, { "rack.session" => {}, "HTTP_COOKIE" => fields }, "act=clear&#{fields}").status
    assert_equal 303, request("POST", path, { "rack.session" => session }, "act=clear&#{fields}").status
  end

  # --- who may see them ---

  VARIABLES = %w[APP_ENV RAILS_ENV RACK_ENV].freeze

  def in_environment(**values)
    before = ENV.to_h.slice(*VARIABLES)
    VARIABLES.each { |name| ENV[name] = values[name.to_sym] }
    yield
  ensure
    VARIABLES.each { |name| ENV[name] = before[name] }
    Jobs::Web.authenticate
  end

  def test_outside_of_development_somebody_must_say_who_may_see_them
    [{ RACK_ENV: "production" }, { RAILS_ENV: "staging", RACK_ENV: "development" }].each do |values|
      in_environment(**values) do
        error = assert_raises(Jobs::ConfigError) { Jobs::Web.new }
        assert_match(/this is (production|staging).* Write Ringspun::Jobs::Web.authenticate \{ \|env\|/, error.message)
        Jobs::Web.new(authenticate: :outside)
        Jobs::Web.authenticate { |_env| false }
        Jobs::Web.new
      end
    end
    [{}, { RAILS_ENV: "test" }, { RACK_ENV: "development", APP_ENV: "" }].each { |values| in_environment(**values) { Jobs::Web.new } }
    assert_match(/:outside, got 7/, assert_raises(Jobs::ConfigError) { Jobs::Web.new(authenticate: 7) }.message)
  end

  # As for where jobs are kept: no variable counts beside it.
  def test_what_a_framework_says_of_the_environment_counts
    home = Jobs.const_get(:Home)
    before = home.instance_variable_get(:@environment)
    home.instance_variable_set(:@environment, "staging")
    in_environment { assert_match(/this is staging/, assert_raises(Jobs::ConfigError) { Jobs::Web.new }.message) }
    home.instance_variable_set(:@environment, "development")
    in_environment(RACK_ENV: "production") { Jobs::Web.new }
  ensure
    home.instance_variable_set(:@environment, before)
  end

  def test_who_may_not_see_them
    asked = []
    login = [302, { "location" => "/login" }, []]
    @web = Jobs::Web.new(storage:, authenticate: lambda { |env|
      asked << env["PATH_INFO"]
      { "/" => true, "/dead" => nil, "/retries" => login }[env["PATH_INFO"]]
    })
    assert_equal [200, 403, 302], %w[/ /dead /retries].map { |path| get(path).status }
    assert_equal 403, request("POST", "/all", {}, "act=clear").status
    assert_equal 403, get(Jobs::Web.const_get(:Assets).path("css")).status
    assert_equal 5, asked.size
    assert_empty storage.calls.map(&:first) & %i[clear scan]
  end
end
