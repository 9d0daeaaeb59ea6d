# frozen_string_literal: true

require "http_helper"
require "support/certificate"
require "tmpdir"

# Where a server listens, and with which certificate.
class HTTPPlacesTest < Minitest::Test
  include OnServer

  DUPFD = 0 # F_DUPFD of fcntl(2)
  PLACES = HTTP.const_get(:Places)
  HANDED_IN = HTTP.const_get(:HandedIn)

  def places(what, **) = PLACES.of(what, **).transform_values(&:to_h)

  def refuse(what, message, **)
    error = assert_raises(Ringspun::UsageError) { PLACES.of(what, **) }
    assert_match message, error.message
  end

  def test_places
    tls = { cert: "a" }
    assert_equal({ nil => { at: ["::1", 80], tls: nil } }, places("tcp://[::1]:80"))
    assert_equal({ nil => { at: "run/app", tls: nil } }, places("unix://run/app"))
    { ["127.0.0.1", 80] => { nil => { at: ["127.0.0.1", 80], tls: } }, "/run/app" => { nil => { at: "/run/app", tls: } },
      "ssl://a.b:0" => { nil => { at: ["a.b", 0], tls: } },
      "ssl://h:1?cert=c.pem&key=k&verify_mode=force_peer&ca=x&min_version=TLS1_3" =>
        { nil => { at: ["h", 1], tls: { cert: "c.pem", key: "k", verify: true, ca: "x", min_version: :TLS1_3 } } },
      ["tcp://h:1", ["::", 2]] => { nil => { at: ["h", 1], tls: nil }, [nil, 1] => { at: ["::", 2], tls: } },
      { a: "unix:///x", b: ["tcp://h:1", "ssl://h:2"] } =>
        { a: { at: "/x", tls: nil }, b: { at: ["h", 1], tls: nil }, [:b, 1] => { at: ["h", 2], tls: } } }
      .each { |what, expected| assert_equal expected, places(what, tls:) }
  end

  def test_what_is_no_place
    refuse("tcp://h", %r{"tcp://h" has no host and port; it is tcp://127})
    refuse("tcp://::1:80", /has no host and port/)
    refuse("tcp://h:65536", /has no host and port/)
    refuse("tcp://h:1?cert=x", /takes nothing behind a question mark/)
    refuse("ftp://h:1", %r{listen: takes tcp://HOST:PORT})
    refuse("unix://", /has no path/)
    refuse("ssl://h:1", /needs \?cert=FILE&key=FILE, or tls:/)
    refuse("ssl://h:1?certificate=x", /says "certificate"; there are cert, key, ca/)
    refuse("ssl://h:1?cert=c&key=k&verify_mode=x", /verify_mode is one of none, peer, force_peer/)
    refuse("systemd://web", /systemd has handed in no socket named web; LISTEN_PID=nil/)
    refuse([], /says no place/)
    refuse("tcp://h:1", %r{tls: is for ssl://HOST:PORT, \[host, port\] and paths}, tls: { cert: "a" })
    refuse(80, /listen: takes \[host, port\], a path/)
  end

  # As sd_listen_fds(3) says it.
  def test_sockets_that_were_handed_in
    Dir.mktmpdir do |folder|
      path = File.join(folder, "socket")
      sockets = [TCPServer.new("127.0.0.1", 0), UNIXServer.new(path)]
      with_descriptors(sockets) do |first|
        environment = { "LISTEN_PID" => Process.pid.to_s, "LISTEN_FDS" => "2", "LISTEN_FDNAMES" => "web:admin" }
        handed_in = HANDED_IN.new(environment, first:)
        assert_equal [2, 1, 0], ["", "web", "other"].map { |name| handed_in.named(name).size }
        assert_equal path, handed_in.named("admin").first.local_address.unix_path
        assert_equal handed_in.named("web").first, handed_in.at("localhost", sockets.first.addr[1])
        assert_equal handed_in.named("admin").first, handed_in.at_path(path)
        assert_nil handed_in.at("127.0.0.2", sockets.first.addr[1])
        assert(handed_in.named("").all?(&:close_on_exec?))
        assert_empty HANDED_IN.new({ **environment, "LISTEN_PID" => "1" }, first:).named("")
        handed_in.named("").each(&:close)
      end
    ensure
      sockets&.each(&:close)
    end
  end

  def test_what_was_handed_in_and_is_none
    environment = { "LISTEN_PID" => Process.pid.to_s, "LISTEN_FDS" => "1" }
    UNIXSocket.pair do |one, other|
      error = assert_raises(Ringspun::UsageError) { HANDED_IN.new(environment, first: one.fileno) }
      assert_match(/descriptor #{one.fileno}, which was handed in, is no stream socket that listens/, error.message)
      assert_raises(Ringspun::UsageError) { HANDED_IN.new({ **environment, "LISTEN_FDS" => "x" }, first: other.fileno) }
    end
    IO.pipe do |reader, writer|
      error = assert_raises(Ringspun::UsageError) { HANDED_IN.new(environment, first: reader.fileno) }
      assert_match(/is no socket/, error.message)
      writer.close
    end
  end

  # --- certificates ---

  def test_a_certificate_that_is_renewed
    Dir.mktmpdir do |folder|
      tls = { cert: File.join(folder, "cert.pem"), key: File.join(folder, "key.pem") }
      write(tls, Certificate.issue(common_name: "first"))
      errors = StringIO.new
      fresh = HTTP.const_get(:FreshContext).new(tls, HTTP.const_get(:Telling).new(errors), look_seconds: 0)
      first = fresh.context
      assert_same first, fresh.context

      File.write(tls[:cert], "half")
      assert_same first, fresh.context
      assert_same first, fresh.context
      assert_equal 1, errors.string.scan(/ringspun-http: the certificate stays as it is: tls: cert .* holds no certificate/).size

      write(tls, Certificate.issue(common_name: "second"))
      refute_same first, fresh.context
      assert_equal ["second"], subjects_of_a_server(fresh)
      File.unlink(tls[:key])
      assert_equal ["second"], subjects_of_a_server(fresh)
    end
  end

  # Connections that are there stay, and the next ones get the new one.
  def test_a_certificate_that_is_renewed_where_a_server_listens
    Dir.mktmpdir do |folder|
      tls = { cert: File.join(folder, "cert.pem"), key: File.join(folder, "key.pem") }
      write(tls, Certificate.certificate)
      serving(->(_env) { [200, {}, ["hello"]] }, tls:) do |connect|
        client = connect.call
        @tls.cert_store.add_cert(renewed = Certificate.issue(common_name: "second"))
        write(tls, renewed)
        machine = Ringspun::Machine.current
        machine.sleep(0.1) until subject_of(connect) == "second" # it looks once a second at most
        client.get("/")
        assert_equal "hello", client.answer.body
      end
    end
  end

  def test_a_context_of_the_program_stays
    context = Certificate.server_context
    assert_same context, HTTP.const_get(:FreshContext).of(context, nil).context
    assert_nil HTTP.const_get(:FreshContext).of(nil, nil)
    assert_raises(Ringspun::UsageError) { HTTP.const_get(:FreshContext).of(true, nil) }
  end

  private

  def write(tls, certificate)
    File.write(tls[:cert], certificate.to_pem)
    File.write(tls[:key], Certificate.key.to_pem)
  end

  def subject_of(connect)
    client = connect.call
    client.instance_variable_get(:@stream).tls.peer_certificate.subject.to_a.first[1]
  ensure
    client&.close
  end

  # The name by which the server's certificate calls it.
  def subjects_of_a_server(fresh)
    UNIXSocket.pair do |ours, theirs|
      server = Thread.new { OpenSSL::SSL::SSLSocket.new(ours, fresh.context).accept }
      client = OpenSSL::SSL::SSLSocket.new(theirs, OpenSSL::SSL::SSLContext.new).connect
      server.value
      [client.peer_cert.subject.to_a.first[1]]
    end
  end

  # Copies of these sockets that have descriptors one behind the other.
  def with_descriptors(sockets)
    first = Dir.children("/proc/self/fd").map(&:to_i).max + 1 # those behind it are free
    copies = sockets.each_with_index.map do |socket, at|
      IO.for_fd(socket.fcntl(DUPFD, first + at), autoclose: false)
    end
    assert_equal [first, first + 1], copies.map(&:fileno)
    yield first
  end
end
