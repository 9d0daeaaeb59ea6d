# frozen_string_literal: true

require "http_helper"
require "json"
require "socket"
require "support/certificate"
require "support/http_command"
require "ringspun/http/command"

# The executable, and its configuration file.
class HTTPCommandTest < Minitest::Test
  # It names a class of Rack, as many do, and requires nothing: other servers have loaded rack.
  RU = <<~'RUBY'
    run ->(env) { [200, { "content-type" => "text/plain" }, ["#{ENV["RACK_ENV"]} #{Rack::Request.new(env).ip} #{Process.pid}\n"]] }
  RUBY

  # The answer of the executable in this process: what it says and its status.
  def said(*arguments)
    output, errors = Array.new(2) { StringIO.new }
    status = Ringspun::HTTP::Command.new(arguments, output:, errors:).run
    [status, output.string, errors.string]
  end

  # A full disk. Ruby has it in a buffer until the process ends, and says nothing of an error then.
  def test_what_cannot_be_printed_is_told
    %w[--help --version].each do |word|
      output = File.open("/dev/full", "w")
      assert_equal 1, Ringspun::HTTP::Command.new([word], output:, errors: errors = StringIO.new).run
      assert_match(/\Aringspun-http: No space left/, errors.string)
    ensure
      assert_raises(Errno::ENOSPC) { output.close } # it tries once more
    end
  end

  def in_folder(files)
    before = ENV.to_h
    Dir.mktmpdir do |folder|
      Dir.chdir(folder) do
        files.each do |path, text|
          FileUtils.mkdir_p(File.dirname(path))
          File.write(path, text)
        end
        yield
      end
    end
  ensure
    ENV.replace(before)
  end

  def settings(*arguments, file: nil, env: {})
    in_folder({ "config.ru" => RU, **(file ? { "config/ringspun_http.rb" => file } : {}) }) do
      command = Ringspun::HTTP::Command
      command.const_get(:Settings).new(command.const_get(:Arguments).new(arguments), env)
    end
  end

  # --- what needs no server ---

  def test_help_and_version
    status, output, = said("--help")
    assert_equal 0, status
    %w[--bind --port --workers --environment --config\ FILE --access-log --metrics --proxy-protocol --drain --preload USR1 PORT]
      .each { |word| assert_includes output, word }
    assert_operator output.lines.map(&:chomp).map(&:size).max, :<=, 130
    assert_equal [0, "ringspun-http #{Ringspun::VERSION}\n", ""], said("-V")
  end

  def test_wrong_words
    in_folder("config.ru" => RU) do
      { ["--nothing"] => /invalid option: --nothing; --help lists the options/,
        ["--drian", "5"] => /invalid option: --drian, did you mean --drain\?; --help lists the options/,
        ["-w", "many"] => /workers: must be :cores or a number from 0 to 1024, got "many"/,
        ["-w", "1025"] => /workers: must be :cores or a number from 0 to 1024, got 1025/,
        ["--limits", "heat=3"] => /there is no limit heat, did you mean head\?/,
        ["--limits", "zzz=3"] => /there is no limit zzz; there are line_max/,
        ["--limits", "head"] => /limits: takes NAME=VALUE,NAME=VALUE, got "head"/,
        ["--limits", "head=x"] => /head must be seconds above 0, or nil for no limit, got "x"/,
        ["--request-timeout", "x"] => /request_timeout must be seconds above 0/,
        ["-w", "1", "--max-requests", "0"] => /\Aringspun-http 0.*\nringspun-http: max_requests must be/,
        ["--max-connections", "none"] => /max_connections must be an Integer above 0, got nil/,
        ["--tracing", "maybe"] => /tracing: is true or false, got "maybe"/, ["--backlog", "x"] => /backlog: must be a positive/,
        ["--mode", "rw", "-b", "unix://s"] => /mode: must be permissions of a file, 0 to 0o7777, or nil, got "rw"/,
        ["--backoff", "3"] => /backoff: must be a range of positive seconds, as 0.1..30, got "3"/,
        ["--errors", "none/errors"] => %r{errors: none/errors cannot be opened: No such file},
        ["-p", "70000"] => /port must be a number up to 65535, got "70000"/, ["a.ru", "b.ru"] => /one config.ru is served/,
        ["none.ru"] => %r{there is no /.*/none.ru; name the program},
        ["-C", "none.rb"] => /none.rb, the configuration, cannot be read/,
        ["--access-log", "short"] => /there is no access log :short/, ["-b", "ftp://x"] => %r{listen: takes tcp://HOST:PORT},
        ["-b", "ssl://127.0.0.1:0?cert=a&key=b"] => /tls: cert .*neither PEM nor the path/,
        ["--proxy-protocol", "x y"] => /proxy_protocol: takes addresses/, ["--drain", "-1"] => /drain: must be/ }
        .each do |arguments, message|
          status, output, errors = said(*arguments)
          assert_equal [64, ""], [status, output], errors
          assert_match(/\Aringspun-http: |\n.*ringspun-http: /, errors)
          assert_match message, errors
        end
    end
  end

  def test_wrong_words_in_the_file
    { "listen 'tcp://h:1'\nworker 4\n" => /\Aringspun-http: .*_http.rb:2: there is no word worker, did you mean workers\?$/,
      "frobnicate" => /:1: there is no word frobnicate; there are access_log, after_fork, app/,
      "threads 5, 5" => /:1: there is no word threads: there are none: each connection has a strand/,
      "\nworkers :many" => /:2: workers: must be :cores or a number/, "limits head: 0" => /head must be seconds above 0/,
      "\n\nlisten 'ftp://x'" => %r{:3: listen: takes tcp://HOST:PORT}, "drain 1, 2" => /:1: drain takes one value, got 2/,
      "\naccess_log :short" => /:2: there is no access log :short/,
      "listen 'ssl://h:1', cert: 'x'" => /:1: tls: cert: needs key:/,
      "\nraise KeyError, 'no'" => /:2: no \(KeyError\)/, "workers (" => /is no Ruby:\n.*ringspun_http.rb:1/m,
      "File.read('/nowhere')" => /:1: No such file or directory.*\(Errno::ENOENT\)/,
      "listen '0.0.0.0', 1\ntls 5" => /:2: tls: takes \{cert:, key:\} or a context/,
      "\nmode 'rw'" => /:2: mode: must be permissions/, "\nmax_connections 'x'" => /:2: max_connections must be an Integer/,
      "port 'x'" => /:1: port must be a number up to 65535, got "x"/,
      "\ntls cert: 'c', key: 'k'" => %r{:2: tls: is for ssl://HOST:PORT}, "said" => /:1: there is no word said/ }
      .each do |file, message|
        in_folder("config.ru" => RU, "config/ringspun_http.rb" => file) do
          status, _, errors = said
          assert_equal 64, status, errors
          assert_match message, errors
        end
      end
  end

  def test_the_words_of_the_file
    file = <<~RUBY
      listen "tcp://127.0.0.1:1"
      listen "unix:///run/app"
      port 3
      workers 4
      drain nil
      limits head: 3, body_max: 10
      proxy_protocol "10.0.0.0/8", "unix"
      before_fork { |index| index }
      environment "production"
      preload
      app { ->(env) { env } }
    RUBY
    env = {}
    found = settings(file:, env:)
    assert_equal ["tcp://127.0.0.1:1", "unix:///run/app", ["0.0.0.0", 3]], found.options[:listen]
    assert_equal [4, nil, { head: 3, body_max: 10 }, ["10.0.0.0/8", "unix"], "production", true, 7],
                 [*found.options.values_at(:workers, :drain, :limits, :proxy_protocol), env["RACK_ENV"], found.preload?,
                  found.options[:before_fork].call(7)]
    assert_equal 5, found.app.call(5)
  end

  # Each may be said by a flag as well, and reads as what Ruby would say.
  def test_the_words_as_flags
    flags = %w[--limits head=3,body_max=10 --limits keep_alive=none --drain none --grace 1.5 --workers auto --mode 0660
               --backoff 0.5..3 --proxy-protocol 10.0.0.0/8,unix --early-hints --tracing no --request-timeout 15
               --tls cert=c.pem,key=k --metrics none --logger none --max-connections 5 --access-log none --errors stderr]
    found = settings(*flags, file: "limits head: 1, body: 2\nmetrics '/m'\npreload")
    expected = { limits: { head: 3, body: 2, body_max: 10, keep_alive: nil }, drain: nil, grace: 1.5, workers: :cores,
                 mode: 0o660, backoff: 0.5..3, proxy_protocol: %w[10.0.0.0/8 unix], early_hints: true, tracing: false,
                 request_timeout: 15, tls: { cert: "c.pem", key: "k" }, metrics: nil, logger: nil, max_connections: 5,
                 access_log: nil, errors: $stderr, listen: ["tcp://127.0.0.1:9292"] }
    assert_equal expected, found.options
    assert_predicate found, :preload?
  end

  # One table for all: what can be said in Ruby can be said there.
  def test_the_table_has_every_option
    words = Ringspun::HTTP::Command.const_get(:Words)
    options = [Ringspun::HTTP.method(:run), Ringspun::Cluster.method(:run)]
              .flat_map { |method| method.parameters.filter_map { |kind, name| name if %i[key keyreq].include?(kind) } }
    assert_equal options.uniq.sort, words.of_run.sort
    _, help, = said("--help")
    words::ALL.each_value { |word| assert_includes help, word.flags.last if word.flag? }
  end

  # Their line says nothing of what a flag has said.
  def test_a_wrong_flag_beside_a_right_line
    in_folder("config.ru" => RU, "config/ringspun_http.rb" => "workers 1\ndrain 3") do
      assert_match(/^ringspun-http: drain: must be .*-1$/, said("--drain", "-1").last)
    end
  end

  # What the guide shows is a file.
  def test_the_file_of_the_guide
    guide = File.read(File.expand_path("../../docs/33-http-command.md", __dir__))
    in_folder("config.ru" => RU, "log/access.log" => "") do
      File.write("f", guide[/^```text\n(listen .*?)^```/m, 1])
      found = Ringspun::HTTP::Command.const_get(:File).read("f", "production")
      assert_equal [2, 4, 20], [found.places.size, *found.options.values_at(:workers, :drain)]
      assert_empty found.options.keys - Ringspun::HTTP::Command.const_get(:Words).of_run
      found.options.values_at(:access_log, :errors).each(&:close)
    end
  end

  def test_who_wins
    file = "workers 3\nlisten 'tcp://h:1'\nenvironment 'test'"
    env = { "PORT" => "5", "WEB_CONCURRENCY" => "2", "RACK_ENV" => "staging" }
    by_all = settings("-w", "auto", "-p", "6", "-e", "production", file:, env: env.dup)
    assert_equal [:cores, [["0.0.0.0", 6]]], by_all.options.values_at(:workers, :listen)
    assert_equal [3, ["tcp://h:1"]], settings(file:, env: env.dup).options.values_at(:workers, :listen)
    assert_equal [2, [["0.0.0.0", 5]]], settings(env: env.dup).options.values_at(:workers, :listen)
    assert_equal [2, [["0.0.0.0", 5]]], settings("-C", "-", file:, env: env.dup).options.values_at(:workers, :listen)
    assert_equal [0, ["tcp://127.0.0.1:9292"]], settings.options.values_at(:workers, :listen)
    env = { "RAILS_ENV" => "production", "WEB_CONCURRENCY" => "x" }
    assert_match(/WEB_CONCURRENCY must be/, assert_raises(Ringspun::UsageError) { settings(env:) }.message)
    assert_equal "production", env["RACK_ENV"]
  end

  def test_a_file_for_the_environment
    in_folder("config.ru" => RU, "config/ringspun_http/production.rb" => "workers 9", "config/ringspun_http.rb" => "workers 8") do
      file = Ringspun::HTTP::Command.const_get(:File)
      given = [[nil, "production"], [nil, "test"], ["-", "test"]]
      assert_equal([9, 8, nil], given.map { |one| file.read(*one).options[:workers] })
    end
  end

  # --- servers ---

  def test_this_process_alone
    HTTPCommand.run("-b", "tcp://127.0.0.1:0", "-t", "5:5", "--access-log", "json", files: { "config.ru" => RU }) do |command|
      assert_equal "development 127.0.0.1 #{command.pid}\n", command.get("/a?b")
      assert_equal "/a?b", JSON.parse(command.await(/^{.*"client":.*/)[0])["path"]
      assert_equal 0, command.finish
      assert_match(/-t is ignored: each connection has a strand/, command.text)
      assert_match(/^ringspun-http \S+, ruby \S+, development, .*config.ru$/, command.text)
    end
  end

  def test_workers_a_reload_and_metrics
    files = { "config.ru" => "VERSION = File.read('version')\nrun ->(_env) { [200, {}, [VERSION, Process.pid.to_s]] }",
              "version" => "1 ",
              "config/ringspun_http.rb" => "listen 'tcp://127.0.0.1:0'\nworkers 2\nmetrics 'tcp://127.0.0.1:0'\n" \
                                           "access_log :common, to: 'log'" }
    HTTPCommand.run(files:) do |command|
      metrics = Integer(command.await(/event=starting .*listen=\S*?:(?<port>\d+),\S*ringspun_metrics:\S*:(?<metrics>\d+)/)
                               .then { |found| (@port = found[:port]) && found[:metrics] })
      2.times { command.await(/event=ready/) }
      first = command.get("/x", port: @port)
      assert_match(/\A1 \d+\z/, first)
      File.write(command.path("version"), "2 ")
      command.signal(:HUP)
      ends = Array.new(3) { command.await(/event=(reloaded|gone)/)[1] } # until they have, the old ones may take a connection
      assert_equal %w[gone gone reloaded], ends.sort
      assert_match(/\A2 \d+\z/, command.get("/x", port: @port))
      assert_match(/^ringspun_http_requests_total{status="2xx"} 2$/, command.get("/metrics", port: metrics))
      assert_equal 0, command.finish
      assert_equal 2, File.read(command.path("log")).scan(%r{"GET /x HTTP/1\.1" 200 }).size
    end
  end

  # They are those of the process that has loaded the program.
  def test_what_a_program_leaves_behind
    ru = <<~'RUBY'
      require "tempfile"
      at_exit { $stderr.write("at_exit #{Process.pid}\n") }
      run ->(_env) { [200, {}, [Process.pid.to_s, ($kept ||= Tempfile.new("kept", "tmp")) && ""]] }
    RUBY
    file = "after_fork { |_| at_exit { $stderr.write(\"worker's \#{Process.pid}\\n\") } }"
    [[], ["--preload"]].each do |preload|
      files = { "config.ru" => ru, "config/ringspun_http.rb" => file, "tmp/here" => "" }
      HTTPCommand.run("-b", "tcp://127.0.0.1:0", "-w", "1", *preload, files:) do |command|
        worker = command.get("/")
        assert_equal 0, command.finish
        assert_equal [preload.any? ? command.pid.to_s : worker], command.text.scan(/^at_exit (\d+)$/).flatten
        assert_equal [worker], command.text.scan(/^worker's (\d+)$/).flatten
        assert_equal ["here"], Dir.children(command.path("tmp"))
      end
    end
  end

  # In place of Rails.
  def test_a_rails_application_finds_what_it_needs
    files = { "config/application.rb" => "# Rails::Application",
              "config/boot.rb" => "$LOAD_PATH.unshift(File.expand_path('../lib', __dir__))",
              "lib/ringspun/railtie.rb" => "", "lib/rails/railtie.rb" => <<~'RUBY', "config.ru" => <<~'RU' }
                module ActiveSupport; class OrderedOptions; def requests = false; end; end
                module Rails; class Railtie; def self.config = @config ||= Struct.new(:ringspun_http).new; end; end
              RUBY
                run ->(_env) { [200, {}, [Ringspun::HTTP::Railtie.config.ringspun_http.class.name]] }
              RU
    HTTPCommand.run("-b", "tcp://127.0.0.1:0", files:) { |command| assert_equal "ActiveSupport::OrderedOptions", command.get("/") }
    files = { "config/application.rb" => "", "config.ru" => RU }
    HTTPCommand.run("-b", "tcp://127.0.0.1:0", files:) do |command|
      assert_match(/\Adevelopment/, command.get("/"))
      assert_equal 0, command.finish
    end
  end

  # What was cut stands in the log as well, and whoever wonders what it waits for can ask.
  def test_a_request_that_does_not_end
    files = { "config.ru" => "run ->(_env) { $stderr.write(%(inside\\n)) && Ringspun::Machine.current.park }" }
    [0, 1].each do |workers|
      options = ["-b", "tcp://127.0.0.1:0", "-w", workers.to_s, "--drain", "0", "--access-log", "common"]
      HTTPCommand.run(*options, files:) do |command|
        TCPSocket.open("127.0.0.1", command.port) do |socket|
          socket.write("GET /long HTTP/1.1\r\nhost: a\r\n\r\n")
          command.await(/^inside$/)
          command.signal(:TTIN) if workers.zero?
          command.await(%r{ "GET /long">: (waits for Machine#schedule|running)$}) if workers.zero? # it may not wait yet
          command.signal(:TERM)
          command.await(%r{"GET /long HTTP/1\.1" - - \d+\.\d{6} cancelled$})
          assert_equal 1, command.wait
          assert_match(/event=drained .*connections_cut=1 block_cut=false$.*event=ended clean=false$/m, command.text)
        end
      end
    end
  end

  # They wait for nothing, and whoever restarts a server is not to hear of them.
  def test_connections_without_a_request_are_not_cut
    [0, 1].each do |workers|
      HTTPCommand.run("-b", "tcp://127.0.0.1:0", "-w", workers.to_s, "--drain", "0", files: { "config.ru" => RU }) do |command|
        TCPSocket.open("127.0.0.1", command.port) do |socket|
          socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n")
          nil until socket.gets.start_with?("development")
          assert_equal 0, command.finish
          assert_match(/event=drained .*connections_cut=0 block_cut=false$.*event=ended clean=true$/m, command.text)
        end
      end
    end
  end

  def test_a_log_that_is_moved_away
    HTTPCommand.run("-b", "tcp://127.0.0.1:0", "--access-log-to", "log", files: { "config.ru" => RU }) do |command|
      log = command.path("log")
      command.get("/1") until File.size?(log) # the line is written behind the answer
      File.rename(log, "#{log}.1")
      command.signal(:USR1)
      command.get("/2") until File.exist?(log) && File.read(log).include?("GET /2 ") # a line of /1 may come later
      assert_equal 0, command.finish
      assert_match(%r{\A127\.0\.0\.1 - - \[.*\] "GET /1 HTTP/1\.1" 200 }, File.read(command.path("log.1")))
      assert_match(%r{"GET /2 HTTP/1\.1" 200 \d+ "-" "Ruby" \d}, File.read(command.path("log")))
    end
  end

  def test_unix_sockets_and_tls
    files = { "config.ru" => RU, "cert.pem" => Certificate.certificate.to_pem, "key.pem" => Certificate.key.to_pem }
    HTTPCommand.run("-b", "ssl://127.0.0.1:0?cert=cert.pem&key=key.pem", "-b", "unix://socket", files:) do |command|
      http = Net::HTTP.new("127.0.0.1", command.port)
      http.use_ssl = true
      http.cert_store = Certificate.store
      assert_match(/\Adevelopment/, http.get("/").body)
      UNIXSocket.open(command.path("socket")) do |socket|
        socket.write("GET / HTTP/1.0\r\n\r\n")
        assert_match(/^development 127.0.0.1 #{command.pid}$/, socket.read)
      end
      assert_equal 0, command.finish
      refute_path_exists command.path("socket")
    end
  end

  # It begins as one that systemd starts: its sockets are there before it.
  def test_sockets_that_were_handed_in
    TCPServer.open("127.0.0.1", 0) do |server|
      code = 'ENV["LISTEN_PID"] = Process.pid.to_s; load ARGV.shift'
      HTTPCommand.run(files: { "config.ru" => RU }, env: { "LISTEN_FDS" => "1" }, code:, handed_in: server) do |command|
        assert_match(/\Adevelopment/, command.get("/", port: server.addr[1]))
        assert_equal 0, command.finish
      end
    end
  end

  # The unit of the guide has workers, and reloads them.
  def test_workers_with_sockets_that_were_handed_in
    TCPServer.open("127.0.0.1", 0) do |server|
      code = 'ENV["LISTEN_PID"] = Process.pid.to_s; load ARGV.shift'
      options = { files: { "config.ru" => RU }, env: { "LISTEN_FDS" => "1" }, code:, handed_in: server }
      HTTPCommand.run("-w", "2", **options) do |command|
        2.times { command.await(/event=ready/) }
        before = command.get("/", port: server.addr[1])
        command.signal(:HUP)
        ends = Array.new(3) { command.await(/event=(reloaded|gone)/)[1] } # until they have, the old ones may take a connection
        assert_equal %w[gone gone reloaded], ends.sort
        after = command.get("/", port: server.addr[1])
        assert_match(/\Adevelopment 127.0.0.1 \d+$/, after)
        refute_equal before, after
        assert_equal 0, command.finish
      end
    end
  end

  # A worker looks at its files itself.
  def test_a_certificate_that_is_renewed
    first, second = %w[first second].map { |common_name| Certificate.issue(common_name:).to_pem }
    files = { "config.ru" => RU, "cert.pem" => first, "key.pem" => Certificate.key.to_pem }
    HTTPCommand.run("-b", "ssl://127.0.0.1:0?cert=cert.pem&key=key.pem", "-w", "1", files:) do |command|
      port = command.port
      command.await(/event=ready/)
      assert_equal "first", name_of_server(port)
      File.write(command.path("cert.pem"), second)
      sleep 0.1 until name_of_server(port) == "second" # it looks once a second at most
      assert_equal 0, command.finish
    end
  end

  def name_of_server(port)
    TCPSocket.open("127.0.0.1", port) do |socket|
      OpenSSL::SSL::SSLSocket.new(socket, OpenSSL::SSL::SSLContext.new).connect.peer_cert.subject.to_a.first[1]
    end
  end

  def test_what_goes_wrong_at_the_start
    TCPServer.open("127.0.0.1", 0) do |server|
      HTTPCommand.run("-b", "tcp://127.0.0.1:#{server.addr[1]}", files: { "config.ru" => RU }) do |command|
        assert_equal 1, command.wait
        assert_match(/^ringspun-http: Address already in use - .* 127\.0\.0\.1:#{server.addr[1]}$/, command.text)
      end
    end
    files = { "config.ru" => "raise Ringspun::UsageError, 'of the program'" }
    HTTPCommand.run("-b", "tcp://127.0.0.1:0", files:) do |command|
      assert_equal 1, command.wait
      assert_match(/config.ru:1:.*of the program \(Ringspun::UsageError\)/, command.text)
    end
  end
end
