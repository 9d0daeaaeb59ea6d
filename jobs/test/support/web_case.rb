# frozen_string_literal: true

require "cgi/escape"
require "rack/mock_request"
require "ringspun/jobs/web"
require "support/faulty"

# The web pages on a storage in memory, called in this process.
class WebCase < Minitest::Test
  include AnyBackend

  Jobs = Ringspun::Jobs
  Storage = Jobs::Storage
  NODE = "host:1:aa"
  LOCAL = { "HTTP_HOST" => "localhost:9292" }.freeze

  # What was asked of the storage, and of how many jobs. Verbs may be made to fail.
  class Counted < SimpleDelegator
    attr_reader :calls
    attr_accessor :fault

    def initialize(storage)
      super
      @calls = []
    end

    (Storage.public_instance_methods(false) - %i[connect close identity]).each do |verb|
      define_method(verb) do |*arguments, **options|
        raise @fault if @fault

        @calls << [verb, *arguments]
        super(*arguments, **options)
      end
    end
  end

  def memory = @memory ||= Storage::Memory.new

  def storage = @storage ||= Counted.new(memory)

  def web = @web ||= Jobs::Web.new(storage:)

  def get(path, **env) = request("GET", path, env)

  # As a browser does that has the page's form.
  def press(path, session: true, **fields)
    secret = fields.delete(:secret) || (form_secret if session)
    pairs = fields.flat_map { |name, values| [*values].map { |value| "#{name}=#{CGI.escape(value)}" } }
    request("POST", path, @cookie ? { "HTTP_COOKIE" => @cookie } : {},
            [*pairs, *("ringspun_jobs_secret=#{secret}" if secret)].join("&"))
  end

  def form_secret
    answer = get("/queue?place=queue&queue=#{CGI.escape("no queue")}")
    @cookie = answer["set-cookie"][/\A[^;]+/]
    answer.body[/name="ringspun_jobs_secret" value="(\h+)"/, 1]
  end

  def request(verb, path, env, input = nil)
    # Not by MockRequest.env_for alone, which refuses paths that servers let through.
    path, query = path.b.split("?", 2)
    web.call(Rack::MockRequest.env_for("/", method: verb, input:)
                              .merge({ "PATH_INFO" => path, "QUERY_STRING" => query.to_s, **LOCAL,
                                       **(input ? { "CONTENT_TYPE" => "application/x-www-form-urlencoded" } : {}), **env }))
       .then { |status, headers, body| Rack::MockResponse.new(status, headers, body) }
  end

  # The text of a page, without its markup.
  def text(path)
    answer = get(path)
    assert_equal 200, answer.status, "#{path}: #{answer.body}"
    CGI.unescapeHTML(answer.body.force_encoding(Encoding::UTF_8).gsub(/<[^>]*>/, " ").gsub(/\s+/, " "))
  end

  def entry(jid = "a", **fields)
    JSON.generate({ "class" => "Work", "args" => [1], "jid" => jid, "queue" => "default", **fields.transform_keys(&:to_s) })
  end

  def push(jid = "a", queue: "default", at: nil, **fields)
    memory.push([Storage::Push.new(queue:, entry: fields.delete(:entry) || entry(jid, queue:, **fields), jid:, at:)])
  end

  # Puts a job of the default queue into a set.
  def put(set, jid = "a", **fields)
    push(entry: entry(jid, **fields), queue: "before")
    one = memory.fetch(NODE, ["before"], 1).first
    memory.fail(NODE, [Storage::Failure.new(queue: "before", token: one.token, jid:, to: set, delay: 1000)])
  end

  # The values of the checkboxes of a page.
  def keys(path) = get(path).body.scan(/name="key"[^>]* value="([^"]+)"/).flatten.map { |key| CGI.unescapeHTML(key) }

  def sizes = memory.stats.values_at(:enqueued, :scheduled, :retries, :dead)

  # Where a button leads, and what is told there.
  def told(answer)
    assert_equal 303, answer.status, answer.body
    path = answer["location"]
    [path[/\A[^?]+/], get(path).body[%r{role="status">([^<]+)</p>}, 1].to_s.strip]
  end
end
