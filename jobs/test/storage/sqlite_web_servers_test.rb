# frozen_string_literal: true

require "jobs_helper"
require "net/http"
require "support/heard_process"
require "support/sqlite_case"

# Web servers with several processes, which load the program before they fork: their threads and strands, and the parent, enqueue
# into one file.
class SqliteWebServersTest < SqliteCase
  ROOT = File.expand_path("../../..", __dir__)
  LOAD_PATH = %w[runtime jobs http].map { |gem| "-I#{ROOT}/#{gem}/lib" }.freeze
  PUMA = ["-e", 'load Gem.bin_path("puma", "puma")', "--", "-C", "puma.rb"].freeze
  RINGSPUN = ["#{ROOT}/http/exe/ringspun-http", "--bind", "tcp://127.0.0.1:0", "-w", "2"].freeze
  # How many requests there are at once, and how often, until each of two processes has answered one.
  CALLERS = 8
  ROUNDS_MAX = 100

  def write_program
    File.write("#{folder}/puma.rb", <<~RUBY)
      bind "tcp://127.0.0.1:0"
      workers 2
      threads 4, 4
      preload_app!
      raise_exception_on_sigterm false
    RUBY
    File.write("#{folder}/config.ru", <<~RUBY)
      require "ringspun/jobs"

      Ringspun::Jobs.configure { |config| config.storage = { name: :sqlite, path: #{path.inspect}, durable: :normal } }
      Ringspun::Jobs.enqueue("Mail", "loaded")
      run(lambda do |env|
        Ringspun::Jobs.enqueue("Mail", env["QUERY_STRING"])
        [200, {}, [Process.pid.to_s]]
      end)
    RUBY
  end

  def start(*words) = @server = HeardProcess.new("-w", *LOAD_PATH, *words, chdir: folder, env: { "RACK_ENV" => "test" })

  def teardown
    @server&.close
    super
  end

  # @return [Array<String>] which process has answered each request
  def ask(port, texts)
    texts.map { |text| Thread.new { Net::HTTP.get(URI("http://127.0.0.1:#{port}/?#{text}")) } }.map(&:value)
  end

  def assert_all_enqueue(port)
    texts = []
    pids = []
    until pids.uniq.size == 2
      flunk "one process answers all requests" if texts.size > CALLERS * ROUNDS_MAX
      some = Array.new(CALLERS) { |number| "n#{texts.size + number}" }
      pids.concat(ask(port, some))
      texts.concat(some)
    end
    assert_predicate @server.finish, :success?, @server.text
    arguments = storage.list("default", 0, 10_000).map { |job| JSON.parse(job.entry)["args"].first }
    assert_equal texts.sort, (arguments - ["loaded"]).sort
    assert_includes arguments, "loaded"
    assert_empty storage.check
  end

  def test_puma
    write_program
    port = start(*PUMA).await(%r{Listening on http://127\.0\.0\.1:(\d+)})[1]
    2.times { @server.await(/Worker \d .* booted/) }
    assert_all_enqueue(port)
  end

  def test_ringspun_http
    write_program
    assert_all_enqueue(start(*RINGSPUN).await(/event=starting .*listen=\S*?:(\d+)/)[1])
  end
end
