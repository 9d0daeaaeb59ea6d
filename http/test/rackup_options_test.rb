# frozen_string_literal: true

require "http_helper"
require "json"
require "support/certificate"
require "support/http_command"
require "rackup/handler/ringspun"

# rubies: one
# inputs: http, runtime/lib

# What `rackup -O`, Rails and the configuration file say to the handler.
class HTTPRackupOptionsTest < Minitest::Test
  include AnyBackend

  RACKUP = 'ARGV.shift; load Gem.bin_path("rackup", "rackup")'
  RU = "run ->(env) { [200, { 'content-type' => 'text/plain' }, [env['REMOTE_ADDR'] + ' ' + Process.pid.to_s]] }"
  FILE = "config/ringspun_http.rb"
  OPTIONS = Ringspun::HTTP::Command.const_get(:Rackup)

  def rackup(*arguments, files: {}, env: {}, &)
    HTTPCommand.run("-s", "ringspun", *arguments, code: RACKUP, files: { "config.ru" => RU, **files }, env:, &)
  end

  # In a folder with this file, as rackup or Rails would say it.
  def options(given = {}, file: nil, env: {}, **)
    Dir.mktmpdir do |folder|
      Dir.chdir(folder) do
        FileUtils.mkdir_p("config")
        File.write(FILE, file) if file
        return OPTIONS.new({ Host: "localhost", Port: 9292, environment: "development", AccessLog: [], **given }, env, **)
      end
    end
  end

  def refused(given = {}, **)
    assert_raises(Ringspun::UsageError) do
      found = options(given, **)
      found.places
      found.options
    end.message
  end

  # --- what needs no server ---

  def test_texts_are_what_ruby_would_say
    found = options({ limits: "head=3,body_max=10", workers: "2", request_timeout: "1.5", access_log: :json, early_hints: true,
                      "max-requests": "7", drain: 3, server: "ringspun", pid: "x", quiet: true })
    assert_equal({ limits: { head: 3, body_max: 10 }, workers: 2, drain: 3, request_timeout: 1.5, early_hints: true,
                   max_requests: 7 }, found.options.except(:access_log))
    assert_instance_of Ringspun::HTTP::AccessLog, found.options[:access_log]
    refute_predicate found, :plain?
  end

  def test_wrong_options
    { { worker: "2" } => "there is no option worker, did you mean workers?",
      { Threads: "5:5" } => /\Athere is no option Threads: there are none: each connection has a strand of its own; max_c/,
      { frobnicate: true } => /\Athere is no option frobnicate; there are access_log, access_log_to, backlog/,
      { workers: true } => "workers: needs a value: workers=N", { before_fork: "x" } => /\Abefore_fork: only Ruby can say it/,
      { bind: "tcp://[::1]:1" } => /\Abind: is listen here, as listen=/, { silent: true } => /: say logger nil in Ruby, and none/,
      { directory: "/" } => /\Adirectory: comes too late/, { access_log: "short" } => /\Athere is no access log :short/ }
      .each { |given, message| assert_operator message, :===, refused(given) }
    assert_match(/\Aconfig.*_http.rb:2: app: comes too late/, refused(file: "workers 2\napp 'x.ru'"))
    assert_match(/http.rb:1: environment: comes too late/, refused(file: "environment 'production'"))
    assert_match(/http.rb:1: there is no word worker, did you mean workers\?/, refused(file: "worker 2"))
    assert_match(/WEB_CONCURRENCY must be/, refused(env: { "WEB_CONCURRENCY" => "x" }))
  end

  def test_without_a_word_it_is_plain
    assert_predicate options, :plain?
    assert_predicate options({ early_hints: nil, restart_cmd: "x", user_supplied_options: [:Port] }), :plain?
    assert_predicate options({ early_hints: false }, env: { "WEB_CONCURRENCY" => "0" }), :plain?
    refute_predicate options({ early_hints: true }), :plain?
    refute_predicate options({}, env: { "WEB_CONCURRENCY" => "2" }), :plain?
    refute_predicate options({}, file: "workers 0"), :plain?
    # On a thread of a program there is no file to be looked for.
    assert_predicate options({}, file: "workers 2", env: { "WEB_CONCURRENCY" => "2" }, reads: false), :plain?
  end

  def test_who_wins
    file = "listen 'tcp://h:1'\nworkers 3\nlimits body: 1, head: 2"
    found = options({ workers: "4", limits: "head=5" }, file:, env: { "WEB_CONCURRENCY" => "2" })
    assert_equal [4, { body: 1, head: 5 }, ["tcp://h:1"]], [*found.options.values_at(:workers, :limits), found.places]
    assert_equal 3, options(file:, env: { "WEB_CONCURRENCY" => "2" }).options[:workers]
    assert_equal ["unix://x"], options({ listen: "unix://x", Port: 80 }, file:).places
    # What rackup says unasked is not meant.
    assert_equal [["127.0.0.1", 80]], options({ Port: "80" }, file:).places.first(1)
    assert_equal [["h", 9292]], options({ Host: "h" }, file:).places
    assert_equal ["tcp://h:1"], options({ Port: 3000, user_supplied_options: [:daemon] }, file:).places
    assert_equal [["h", 3000]], options({ Host: "h", Port: 3000, user_supplied_options: [:Host] }, file:).places
    assert_equal 0, options({ configuration: "-" }, file:).options[:workers]
  end

  # It would take the signals of the whole process, and fork.
  def test_more_than_a_place_on_another_thread
    given = { Host: "127.0.0.1", Port: 0, quiet: true, workers: 1 }
    thread = Thread.new { Rackup::Handler::Ringspun.run(->(_env) {}, **given) }
    thread.report_on_exception = false
    assert_match(/is for the main thread/, assert_raises(Ringspun::UsageError) { thread.join }.message)
  end

  def test_help
    rackup("--help") do |command|
      command.wait
      Ringspun::HTTP::Command.const_get(:Words).of_rackup.each do |word|
        assert_match(/^  -O #{word.name}#{"=" if word.takes}/, command.text)
      end
      refute_match(/-O (directory|after_fork|app|Port)/, command.text)
    end
  end

  # --- servers ---

  def test_options_of_one_process
    files = { "cert.pem" => Certificate.certificate.to_pem, "key.pem" => Certificate.key.to_pem }
    listen = "listen=ssl://127.0.0.1:0?cert=cert.pem&key=key.pem"
    rackup("-O", listen, "-O", "access_log=json", "-O", "access_log_to=log", files:) do |command|
      port = command.await(%r{\* Listening on https://127\.0\.0\.1:(\d+)$})[1]
      http = Net::HTTP.new("127.0.0.1", port)
      http.use_ssl = true
      http.cert_store = Certificate.store
      assert_equal "127.0.0.1 #{command.pid}", http.get("/a?b").body
      assert_equal 0, command.finish
      assert_equal "/a?b", JSON.parse(File.read(command.path("log")))["path"]
    end
  end

  def test_workers_of_the_file
    files = { FILE => "workers 2\nmetrics '/metrics'\nlisten 'tcp://127.0.0.1:0'" }
    rackup(files:) do |command|
      port = command.await(%r{\* Listening on http://127\.0\.0\.1:(\d+)$})[1]
      refute_equal "127.0.0.1 #{command.pid}", command.get("/", port:)
      command.signal(:HUP)
      command.await(/event=reloaded/)
      assert_match(/^ringspun_http_requests_total{status="2xx"} 1$/, command.get("/metrics", port:))
      assert_equal 0, command.finish
    end
  end

  # As `bin/rails restart` asks for it, with workers and without.
  def test_starts_anew
    code = <<~'RUBY'
      require "rackup/handler/ringspun"
      Rackup::Handler::Ringspun.run(->(_env) { [200, {}, []] }, Host: "localhost", Port: 0, restart_cmd: "echo anew", workers: ENV["N"])
    RUBY
    %w[0 1].each do |workers|
      HTTPCommand.run(code:, files: { "tmp/x" => "" }, env: { "N" => workers }) do |command|
        command.await(/Listening on/)
        workers == "0" ? command.signal(:USR2) : FileUtils.touch(command.path("tmp/restart.txt"))
        command.await(/^anew$/)
        assert_equal 0, command.wait
      end
    end
  end

  # As with one that has said nothing.
  def test_what_cannot_end_is_cut_by_the_second_signal
    files = { "config.ru" => "run ->(_env) { $stderr.write(%(inside\\n)) && Ringspun::Machine.current.park }" }
    rackup("-O", "listen=tcp://127.0.0.1:0", files:) do |command|
      port = command.await(/Listening on \S+:(\d+)$/)[1]
      TCPSocket.open("127.0.0.1", port) do |socket|
        socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        command.await(/^inside$/)
        command.signal(:INT)
        socket.wait_readable(0) until command.refuses?(port)
        command.signal(:INT)
        assert_equal 1, command.wait
        assert_match(/^ringspun-http: not a clean end: a second signal has cut what was left$/, command.text)
      end
    end
  end
end
