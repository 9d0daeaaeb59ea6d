# frozen_string_literal: true

require "net/http"
require "support/rails_case"

# Puma in front of a generated application, and a worker behind it.
class RailsPumaTest < RailsCase
  include RailsPostgres

  PUMA = ["-rbundler/setup", "-e", 'load Gem.bin_path("puma", "puma")', "--"].freeze
  # As many requests as each of the two processes of config/cluster.rb has threads, so that all can run at the same time.
  TEXTS = Array.new(8) { |number| "text#{number}" }

  # Its connections to Redis go by the proxy.
  def puma
    opened(Command.new("-C", "config/cluster.rb", program: PUMA, chdir: RailsApp.folder, seconds: RailsApp::START_SECONDS,
                                                  env: { **RailsApp.env(RailsApp.folder), **env, "REDIS_URL" => proxy.url }))
  end

  # @return [Array] what the action answers
  def post(port, **fields)
    uri = URI("http://127.0.0.1:#{port}/tells")
    answer = Net::HTTP.start(uri.host, uri.port, read_timeout: RailsApp::START_SECONDS) do |http|
      http.post(uri.path, JSON.generate(fields), "Content-Type" => "application/json", "X-Forwarded-Proto" => "https")
    end
    assert_equal "200", answer.code, answer.body
    JSON.parse(answer.body)
  end

  # Requests that run at the same time, of which every second one rolls its transaction back. One comes after the other. The
  # process that has the first one is stopped while the second one comes, so the other process has that.
  def post_all(port)
    busy = nil
    TEXTS.each_with_index.map do |text, index|
      Process.kill(:STOP, busy) if index == 1
      request = Thread.new { post(port, text: text, roll_back: index.odd?) }
      assert_match(/\Arequest \d+\z/, begun = seen.first)
      Process.kill(:CONT, busy) if index == 1
      busy ||= Integer(begun.split.last)
      request
    end
  end

  def test_threads_of_forked_processes_enqueue_and_a_worker_runs_their_jobs
    server = puma
    worker = worker()
    port = server.await(%r{Listening on http://127\.0\.0\.1:(\d+)})[1]
    2.times { server.await(/Worker \d .* booted/) }
    master, session = seen.first.split
    requests = post_all(port)
    TEXTS.each { call("RPUSH", "go", "1") }
    answers = requests.map(&:value).uniq
    assert_equal ["master", 2], [master, answers.map(&:first).uniq.size]
    sessions = [session.to_i, *answers.map(&:last)]
    assert_equal sessions.uniq, sessions, "processes share a connection to the database"
    assert_operator proxy.size, :>=, 3, "processes share a connection to Redis"
    assert_equal expected, seen(expected.size).sort
    assert_predicate worker.finish, :success?
    assert_nothing_seen
    assert_equal 0, storage.stats[:enqueued]
    server.finish
  end

  def expected
    TEXTS.each_with_index.flat_map { |text, index| ["#{text} after the commit", "#{text} at once"].last(index.odd? ? 1 : 2) }
  end
end
