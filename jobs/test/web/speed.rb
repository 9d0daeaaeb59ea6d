# frozen_string_literal: true

# Measures how long the server takes for each web page, with JOBS=1000000 jobs in a queue and RETRIES=100000 to be tried again in
# a Redis of its own, and 1500 jobs that run. The samples are not shared between requests, as they are when many look. Fails if
# the median of a page but the search is 100 ms or more.

require "cgi/escape"
require_relative "../../../runtime/test/support/servers"
require "ringspun/jobs/web"

class PagesSpeed
  include Servers::Redis

  LIMIT_MS = 100
  TIMES = 21
  STEP = 10_000

  # Fills the server by itself, for a million entries take their time on the way.
  FILL = <<~LUA
    for number = ARGV[2] + 0, ARGV[3] - 1 do
      local entry = string.format('{"class":"Mail","args":["customer-%d@example.org",{"template":"receipt"}],"queue":"big",' ..
        '"jid":"%024x","created_at":1764000000.0,"enqueued_at":1764000000.0,"retry_count":1,"error_class":"IOError",' ..
        '"error_message":"closed stream"}', number, number)
      if ARGV[1] == 'retry' then redis.call('ZADD', 'retry', 5000000000 + number, entry) else redis.call('LPUSH', ARGV[1], entry) end
    end
  LUA

  def initialize(jobs, retries)
    @redis = RedisClient.new(path: redis_path, timeout: 60)
    @storage = Ringspun::Jobs::Storage::Redis.new({ path: redis_path })
    @web = Ringspun::Jobs::Web.new(storage: @storage)
    { "queue:big" => jobs, "retry" => retries }.each do |key, count|
      0.step(count - 1, STEP) { |from| @redis.call("EVAL", FILL, 0, key, from, [from + STEP, count].min) }
    end
    @redis.call("SADD", "queues", "big")
    announce
  end

  # @return [Boolean] whether no page is slow
  def run
    job = CGI.unescapeHTML(get("/queue?place=queue&queue=big")[%r{href="(/job\?[^"]+)"}, 1])
    pages = ["/", "/live", "/queues", "/queue?place=queue&queue=big", "/queue?place=queue&queue=big&from=500000", "/busy",
             "/scheduled", "/retries", "/retries?from=50000", "/dead", "/quarantine", "/processes", job]
    medians = pages.map { |path| measure(path) }
    %w[/search?text=nowhere@ /search?class=Mail&where=retries].each { |path| measure(path, 3) }
    medians.max < LIMIT_MS
  end

  private

  def announce
    list = @storage.list("big", 0, 500).map.with_index { |job, slot| [slot.to_s, "big", job.entry, 1_764_000_000.0] }
    info = { "concurrency" => 1000, "queues" => ["big"], "started_at" => 1_764_000_000.0 }
    3.times { |number| @storage.announce("host:#{number}:aa", info, list) }
  end

  def get(path)
    @web.instance_variable_get(:@sampler).forget
    name, query = path.split("?", 2)
    status, _, body = @web.call("REQUEST_METHOD" => "GET", "PATH_INFO" => name, "QUERY_STRING" => query.to_s,
                                "HTTP_HOST" => "localhost", "SCRIPT_NAME" => "")
    status == 200 ? body.join : raise("#{path}: #{status}")
  end

  def measure(path, times = TIMES)
    body = nil
    taken = Array.new(times) do
      began = Process.clock_gettime(Process::CLOCK_MONOTONIC, :float_millisecond)
      body = get(path)
      Process.clock_gettime(Process::CLOCK_MONOTONIC, :float_millisecond) - began
    end.sort
    puts format("%-50s median %7.1f ms, worst %7.1f ms  %s", path[0, 50], taken[times / 2], taken.last, body[/Looked at [^<]*/])
    taken[times / 2]
  end
end

speed = PagesSpeed.new(Integer(ENV.fetch("JOBS", "1000000")), Integer(ENV.fetch("RETRIES", "100000")))
exit speed.run
