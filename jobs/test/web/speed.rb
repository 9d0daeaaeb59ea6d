# frozen_string_literal: true

# Measures how long the server takes for each web page, with JOBS=1000000 jobs in a queue and RETRIES=100000 to be tried again in
# a Redis of its own, and 1500 jobs that run. The samples are not shared between requests, as they are when many look. Fails if
# the median of a page but the search is 100 ms or more.
#
# With STORAGE=sqlite they are in a file, with as many more that are scheduled, and DONE=100000 that are done; then it is the time
# of the processor that counts.

require "cgi/escape"
require "tmpdir"
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

  # A file, which SQLite fills by itself.
  class InFile
    ENTRY = <<~SQL
      printf('{"class":"Mail","args":["customer-%d@example.org",{"template":"receipt"}],"queue":"big","jid":"%024x",' ||
             '"created_at":1764000000.0,"enqueued_at":1764000000.0,"retry_count":1,"error_class":"IOError",' ||
             '"error_message":"closed stream"}', id, id)
    SQL
    # The numbers of the jobs of each table, and what it gets of each.
    PLACES = { "ready (queue, priority, place, job)" => "1, 0, id, id", "sets (job, kind, at, sum)" => "id, 0, 5e9 + id, id",
               "sets (job, kind, at, sum) " => "id, 1, 5e9 + id, id",
               "done (job, at, seconds, class, queue, node)" => "id, 1764000000.0 + id, 0.5, 'Mail', 1, 'host:1:aa'" }.freeze

    attr_reader :storage

    def initialize(jobs, retries, done)
      require "ringspun/jobs/storage/sqlite"
      @folder = Dir.mktmpdir("ringspun-speed-")
      @storage = Ringspun::Jobs::Storage::Sqlite.new("#{@folder}/jobs.sqlite3", durable: :normal)
      @storage.migrate
      @last = jobs - 50
      fill([jobs, jobs, retries, done])
      @storage.migrate # which counts
      minute = (Time.now.to_i / 60) - 1
      @storage.measure([Ringspun::Jobs::Storage::Measure.new(minute, "Mail", done, 0, 500 * done, { 9 => done })])
    end

    def pages
      ["/scheduled?from=#{@last}", "/scheduled?order=last", "/queue?place=queue&queue=big&from=#{@last}", "/done",
       "/done?order=first", "/done?class=Mail", "/classes", "/class?class=Mail", "/queue?place=queue&queue=big&class=None",
       "/scheduled?in=none", "/retries?class=Mail"]
    end

    def close
      @storage.close
      FileUtils.remove_entry(@folder)
    end

    private

    def fill(counts)
      first = 1
      statements = PLACES.zip(counts).flat_map do |(table, values), count|
        from = "FROM (WITH RECURSIVE n(id) AS (SELECT #{first} UNION ALL SELECT id + 1 FROM n " \
               "WHERE id < #{first + count - 1}) SELECT id FROM n)"
        first += count
        ["INSERT INTO jobs SELECT id, #{ENTRY} #{from}", "INSERT INTO #{table} SELECT #{values} #{from}"]
      end
      change("INSERT INTO queues (id, name, used) VALUES (1, 'big', 1)", *statements, "UPDATE state SET next = #{first}")
    end

    def change(*statements)
      connection = Extralite::Database.new("#{@folder}/jobs.sqlite3")
      statements.each { |statement| connection.execute(statement) }
      connection.close
    end
  end

  def initialize(jobs, retries, done)
    @file = InFile.new(jobs, retries, done) if ENV["STORAGE"] == "sqlite"
    @storage = @file ? @file.storage : filled_redis(jobs, retries)
    @web = Ringspun::Jobs::Web.new(storage: @storage)
    announce
  end

  # @return [Boolean] whether no page is slow
  def run
    job = CGI.unescapeHTML(get("/queue?place=queue&queue=big")[%r{href="(/job\?[^"]+)"}, 1])
    pages = ["/", "/live", "/queues", "/queue?place=queue&queue=big", "/queue?place=queue&queue=big&from=500000", "/busy",
             "/scheduled", "/retries", "/retries?from=50000", "/dead", "/quarantine", "/processes", job, *@file&.pages]
    medians = pages.map { |path| measure(path) }
    %w[/search?text=nowhere@ /search?class=Mail&where=retries].each { |path| measure(path, 3) }
    medians.max < LIMIT_MS
  ensure
    @file&.close
  end

  private

  def filled_redis(jobs, retries)
    redis = RedisClient.new(path: redis_path, timeout: 60)
    { "queue:big" => jobs, "retry" => retries }.each do |key, count|
      0.step(count - 1, STEP) { |from| redis.call("EVAL", FILL, 0, key, from, [from + STEP, count].min) }
    end
    redis.call("SADD", "queues", "big")
    Ringspun::Jobs::Storage::Redis.new({ path: redis_path })
  end

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
    clock = @file ? Process::CLOCK_PROCESS_CPUTIME_ID : Process::CLOCK_MONOTONIC
    taken = Array.new(times) do
      began = Process.clock_gettime(clock, :float_millisecond)
      body = get(path)
      Process.clock_gettime(clock, :float_millisecond) - began
    end.sort
    puts format("%-50s median %7.1f ms, worst %7.1f ms  %s", path[0, 50], taken[times / 2], taken.last, body[/Looked at [^<]*/])
    taken[times / 2]
  end
end

counts = { "JOBS" => 1_000_000, "RETRIES" => 100_000, "DONE" => 100_000 }.map { |name, count| Integer(ENV.fetch(name, count)) }
speed = PagesSpeed.new(*counts)
exit speed.run
