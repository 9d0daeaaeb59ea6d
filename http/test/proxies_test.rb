# frozen_string_literal: true

require "http_helper"
require "socket"
require "support/certificate"
require "support/nasty"
require "support/proxies"
require "support/seeds"
require "support/smuggling"
require "tempfile"

# rubies: one
# inputs: http, bin/support/servers.sh

# Behind a proxy: whatever a client sends, each request that the program gets is one that the proxy has forwarded, and its answer
# is the one that this client gets. A second request that only we see would be answered to nobody, or to somebody else.
class HTTPProxiesTest < Minitest::Test
  HEADS = Nasty.rows("nasty_heads.tsv").map(&:bytes).freeze
  CHUNKED = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
  BODIES = Nasty.rows("nasty_bodies.tsv").map { |row| CHUNKED.b + row.bytes }.freeze
  SEEDS = Seeds.of_the_day(300)
  AT_ONCE = 100 # connections

  # Those of the night are installed by `bin/setup --matrix` then.
  NIGHTLY = ENV["RINGSPUN_NIGHTLY"] == "1"
  NAMES = NIGHTLY ? %i[nginx haproxy varnish apache] : %i[nginx]

  NAMES.each { |name| define_method("test_#{name}") { check(name) } }

  # --- nginx as the guide has it ---

  GUIDE = File.read(File.expand_path("../../docs/32-behind-nginx.md", __dir__)).freeze
  FORWARDED = %w[HTTP_X_FORWARDED_PROTO HTTP_X_FORWARDED_FOR HTTP_HOST PATH_INFO].freeze
  ECHO = lambda do |output|
    output << output.read(3)
    output.close
  end

  SITE = lambda do |env|
    seen = env.values_at(*FORWARDED).join(" ")
    case env["PATH_INFO"]
    when "/events" then Ringspun::HTTP::SSE.answer(env) { |events| events.write(seen) && Ringspun::Machine.current.sleep }
    when "/cable" then [101, { "upgrade" => "echo", "connection" => "upgrade", "x-seen" => seen, "rack.hijack" => ECHO }, []]
    else [200, { "content-type" => "text/plain" }, [seen]]
    end
  end

  def test_nginx_of_the_guide
    files = { "site.pem" => Certificate.certificate.to_pem, "site.key" => Certificate.key.to_pem, "robots.txt" => "of a file" }
    listening(SITE) do |port|
      Proxies.before(:nginx_of_guide, port, text: GUIDE[/^```text\n(upstream .*?)^```/m, 1], files:) do |proxy|
        assert_includes through(proxy, "/orders", "connection: close", &:read), "\r\n\r\nhttps 127.0.0.1 h /orders"
        assert_match(/\r\n\r\nof a file\z/, through(proxy, "/robots.txt", "connection: close", &:read))
        events = through(proxy, "/events") { |socket| until_line(socket, /^data: /) } # while the answer goes on
        assert_match(%r{^data: https 127\.0\.0\.1 h /events$}, events)
        through(proxy, "/cable", "connection: upgrade", "upgrade: echo") do |socket|
          assert_match(%r{\AHTTP/1\.1 101 .*^x-seen: https 127\.0\.0\.1 h /cable}m, until_line(socket, /\A\r\n/))
          socket.write("abc")
          assert_equal "abc", socket.read
        end
      end
    end
  end

  # --- PROXY headers, as HAProxy sends them ---

  HEADERS = { "version_1" => "send-proxy", "version_2" => "send-proxy-v2" }.freeze
  # What a program sees of the connection, and where a look at its health comes from.
  SEEN = %w[REMOTE_ADDR SERVER_NAME SERVER_PORT rack.url_scheme PATH_INFO].freeze
  # How long it waits for a client that has no processor.
  SECONDS = 60
  # Addresses of the loopback, each that of a client.
  CLIENTS = %w[127.0.0.2 127.0.0.3].freeze

  if NIGHTLY
    HEADERS.each do |name, word|
      define_method("test_haproxy_#{name}") { check_headers(server: word) }
      define_method("test_haproxy_#{name}_tls_ends_there") { check_headers(server: word, tls: :there, scheme: "http") }
      define_method("test_haproxy_#{name}_tls_is_passed_on") { check_headers(server: word, tls: :here, mode: "tcp") }
      define_method("test_haproxy_#{name}_looks_whether_we_are_well") { check_looks(word) }
    end
    define_method("test_haproxy_version_2_says_that_tls_has_ended_there") do
      check_headers(server: "send-proxy-v2-ssl", tls: :there, scheme: "https")
    end
  end

  private

  def through(proxy, path, *fields)
    socket = connected(proxy, "127.0.0.1", :there)
    socket.write("GET #{path} HTTP/1.1\r\n", *["host: h", *fields].map { |field| "#{field}\r\n" }, "\r\n")
    yield socket
  ensure
    socket&.close
  end

  def until_line(socket, pattern)
    lines = +""
    lines << socket.gets until lines.lines.last&.match?(pattern)
    lines
  end

  # Each client is seen as itself, on connections that stay, whoever asks in between.
  def check_headers(server:, tls: nil, mode: "http", scheme: tls ? "https" : "http")
    certificate = { cert: Certificate.certificate, key: Certificate.key } if tls == :here
    told_by_proxies(tls: certificate) do |port, errors|
      pem = pem_file if tls == :there
      Proxies.before(:haproxy, port, server:, mode:, bind: pem ? "ssl crt #{pem}" : "", seconds: SECONDS) do |proxy|
        sockets = CLIENTS.map { |client| connected(proxy, client, tls) }
        3.times do
          answers = sockets.map { |socket| answer(socket) }
          assert_equal(CLIENTS.map { |client| "#{client} h #{proxy} #{scheme} /" }, answers)
        end
        assert_empty errors.string
      ensure
        sockets&.each(&:close)
      end
    end
  end

  # It speaks for itself, in the same words.
  def check_looks(word)
    looks = Thread::Queue.new
    told_by_proxies(looks) do |port, errors|
      # inter: a pause between two of them
      options = { server: "#{word} check check-send-proxy inter 20ms", backend: "option httpchk GET /health", seconds: SECONDS }
      Proxies.before(:haproxy, port, **options) do |proxy|
        3.times { assert_equal "127.0.0.1 127.0.0.1 #{port} http /health", looks.pop }
        socket = connected(proxy, CLIENTS.first, nil)
        assert_equal "#{CLIENTS.first} h #{proxy} http /", answer(socket)
        assert_empty errors.string
      ensure
        socket&.close
      end
    end
  end

  def told_by_proxies(looks = nil, tls: nil)
    errors = StringIO.new
    app = lambda do |env|
      seen = env.values_at(*SEEN).join(" ")
      looks << seen if env["PATH_INFO"] == "/health"
      [200, { "content-type" => "text/plain" }, [seen]]
    end
    listening(app, proxy_protocol: "127.0.0.1", errors:, tls:) { |port| yield port, errors }
  end

  def pem_file
    @pem ||= Tempfile.new("pem").tap do |file|
      file.write(Certificate.certificate.to_pem, Certificate.key.to_pem)
      file.close
    end
    @pem.path
  end

  def connected(proxy, client, tls)
    socket = TCPSocket.new("127.0.0.1", proxy, client)
    return socket unless tls

    context = OpenSSL::SSL::SSLContext.new.tap { |made| made.cert_store = Certificate.store }
    OpenSSL::SSL::SSLSocket.new(socket, context).tap { |secured| secured.sync_close = true }.connect
  end

  def answer(socket)
    socket.write("GET / HTTP/1.1\r\nhost: h\r\n\r\n")
    head = +""
    head << socket.gets until head.end_with?("\r\n\r\n")
    assert_operator head, :start_with?, "HTTP/1.1 200 "
    socket.read(Integer(head[/^content-length: (\d+)/i, 1]))
  end

  def check(name)
    behind do |port, seen|
      sent = HEADS + BODIES + SEEDS.map { |seed| Smuggling.new(seed).bytes }
      answers = Proxies.before(name, port) { |proxy| sent.each_slice(AT_ONCE).flat_map { |some| ask(proxy, some) } }
      assert_operator seen.size, :>=, 50, "next to nothing was forwarded"
      sent.zip(answers) { |bytes, answer| assert_answers(bytes, answer) }
      assert_each_answered_to_one(answers.flat_map { |answer| told(answer) }, seen)
    end
  end

  # Not more than there are, and none that is another's.
  def assert_answers(bytes, answer)
    told = told(answer)
    assert_operator told.size, :<=, answer.scan(%r{^HTTP/1\.[01] [2-5]\d\d}n).size, bytes.inspect
    # Proxies may write other paths in another way.
    drawn = told.map(&:last).grep(%r{\A/\d+(/hidden)?\z})
    assert_empty drawn.reject { |path| bytes.include?(path) }, "#{bytes.inspect} got another's answer"
  end

  # One whose client has broken off is the proxy's to drop. A hidden one has come whole.
  def assert_each_answered_to_one(told, seen)
    assert_equal told.uniq, told
    assert_empty told - seen
    assert_empty((seen - told).select { |_, path| path.end_with?("hidden") }, "smuggled")
  end

  # The numbers and the paths of the requests that an answer says it is to.
  def told(answer) = answer.scan(/^x-seen: (\d+) (\h*)/in).map { |number, path| [Integer(number), [path].pack("H*")] }

  # Yields the port of a server, and what it has seen until now.
  def behind
    seen = []
    listening(program(seen), limits: { body: 2 }) { |port| yield port, seen }
  end

  # Yields the port of a server in a thread of its own.
  def listening(app, **options)
    ready = Thread::Queue.new
    thread = Thread.new do
      Ringspun.run do
        server = Ringspun::HTTP.listen(app, "127.0.0.1", 0, **options)
        ready << server.port
        server.wait
      end
    end
    yield ready.pop
  ensure
    thread.kill.join
  end

  # Each request has a number, and counts once it has come whole.
  def program(seen)
    lambda do |env|
      env["rack.input"].read
      seen << [seen.size, env["PATH_INFO"].b]
      told = seen.last.then { |number, path| "#{number} #{path.unpack1("H*")}" }
      [200, { "x-seen" => told, "cache-control" => "no-store", "content-type" => "text/plain" }, ["seen\n"]]
    end
  end

  # Each on a connection of its own, all at once, up to its end.
  def ask(port, some)
    sockets = some.map { |bytes| TCPSocket.new("127.0.0.1", port).tap { |socket| put(socket, bytes) } }
    sockets.map { |socket| read(socket) }
  ensure
    sockets&.each(&:close)
  end

  # Proxies refuse while a client still sends.
  def put(socket, bytes)
    socket.write(bytes)
  rescue Errno::EPIPE, Errno::ECONNRESET
    nil
  end

  def read(socket)
    answer = "".b
    socket.timeout = 30
    loop { answer << socket.readpartial(65_536) }
  rescue EOFError, Errno::ECONNRESET
    answer
  end
end
