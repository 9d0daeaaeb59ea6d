# frozen_string_literal: true

require_relative "tls_case"

# How a TLS session begins, or does not: certificates, names, protocols, and those who speak something else.
class TLSHandshakeTest < TLSCase
  # --- whom to believe ---

  def test_a_certificate_of_an_authority
    certificate = Certificate.issue(issuer: Certificate.authority)
    on_server({ cert: certificate, key: Certificate.key }) do |server|
      [{ ca: Certificate.authority }, { ca: Certificate.authority.to_pem }].each do |tls|
        %w[localhost 127.0.0.1].each { |host| assert_equal("x", connect(server, tls, host:) { |stream| ask(stream, "x") }) }
      end
    end
  end

  def test_a_certificate_that_has_expired
    expired = Certificate.issue(days: -3..-1)
    assert_refused(Ringspun::CertificateExpiredError, /of localhost has expired.*clock/, expired, { ca: expired })
    early = Certificate.issue(days: 1..3)
    assert_refused(Ringspun::CertificateExpiredError, /not valid yet/, early, { ca: early })
  end

  def test_a_certificate_for_another_host
    other = Certificate.issue(names: "DNS:example.org")
    message = /is not for localhost; connect by a name that it is for/
    assert_refused(Ringspun::WrongHostError, message, other, { ca: other })
    named = Certificate.issue(names: "DNS:localhost")
    message = /is not for 127.0.0.1; connect by a name that it is for/
    assert_refused(Ringspun::WrongHostError, message, named, { ca: named }, host: "127.0.0.1")
  end

  # As the name is here, although the context is not to.
  def test_a_context_that_verifies_no_host
    named = Certificate.issue(names: "DNS:localhost")
    context = OpenSSL::SSL::SSLContext.new
    context.set_params(cert_store: OpenSSL::X509::Store.new.tap { |store| store.add_cert(named) }, verify_hostname: false)
    message = /not for 127.0.0.1, but for DNS:localhost; connect/
    assert_refused(Ringspun::WrongHostError, message, named, context, host: "127.0.0.1")
  end

  # The gem warns of a session that is to verify a host and has none.
  def test_an_address_is_verified_without_a_warning
    [TRUST, Ringspun::TLS.client_context(**TRUST)].each do |tls|
      on_server do |server|
        assert_silent { assert_equal("x", connect(server, tls, host: "127.0.0.1") { |stream| ask(stream, "x") }) }
      end
    end
  end

  # As one that ends with the dot of a full name: SNI and certificates have none.
  def test_the_full_name_of_a_host
    on_server do |server, machine|
      descriptor = machine.socket(:INET, :STREAM)
      machine.connect(descriptor, server.address)
      stream = keep_stream(Ringspun::Stream.new(descriptor)).start_tls(TRUST, host: "localhost.")
      assert_equal "x", ask(stream, "x")
      stream.close
    end
  end

  # Who verifies a certificate without asking for whom it is believes everybody who has one.
  def test_a_context_that_verifies_wants_a_host
    context = OpenSSL::SSL::SSLContext.new
    context.verify_mode = OpenSSL::SSL::VERIFY_PEER
    on_machine do
      stream = Ringspun::Stream.new(make_socketpair.first)
      assert_wrong(/say by host:/) { stream.start_tls(context) }
      assert_wrong(/say by host:/) { Ringspun.connect_unix("/nowhere", tls: context) }
      refute_predicate stream, :closed?
    end
  end

  # What is inside of one's own network may have a certificate by its authority, and any name.
  def test_a_certificate_of_an_authority_for_whatever_host
    trust = { ca: Certificate.authority, verify: :issuer }
    other = { cert: Certificate.issue(names: "DNS:example.org", issuer: Certificate.authority), key: Certificate.key }
    on_server(other) do |server, machine|
      assert_equal("x", connect(server, trust) { |stream| ask(stream, "x") })
      descriptor = machine.socket(:INET, :STREAM)
      machine.connect(descriptor, server.address)
      stream = keep_stream(Ringspun::Stream.new(descriptor)).start_tls(trust)
      assert_equal "x", ask(stream, "x")
      stream.close
    end
    assert_refused(Ringspun::UntrustedCertificateError, /self-signed/, Certificate.issue, trust)
    expired = Certificate.issue(issuer: Certificate.authority, days: -3..-1)
    assert_refused(Ringspun::CertificateExpiredError, /has expired/, expired, trust)
  end

  def test_a_certificate_that_nobody_trusted_has_made
    assert_refused(Ringspun::UntrustedCertificateError, /self-signed.*ca: "ca.pem"/, Certificate.issue, true)
    strange = Certificate.issue(issuer: Certificate.issue(names: nil, common_name: "a stranger"))
    assert_refused(Ringspun::UntrustedCertificateError, /issuer is not known/, strange)
  end

  def test_a_certificate_for_the_name_that_is_expected
    other = Certificate.issue(names: "DNS:example.org")
    on_server({ cert: other, key: Certificate.key }) do |server|
      assert_equal("x", connect(server, { ca: other, host: "example.org" }) { |stream| ask(stream, "x") })
    end
  end

  # --- clients that show one ---

  def test_a_client_that_must_show_a_certificate
    on_server({ **IDENTITY, ca: Certificate.authority }) do |server|
      mine = { cert: Certificate.issue(common_name: "me", issuer: Certificate.authority), key: Certificate.key }
      2.times { assert_equal("x", connect(server, { **TRUST, **mine }) { |stream| ask(stream, "x") }) }
      # In TLS 1.3 a client hears of it after its handshake, and from some in the way of the kernel.
      assert_raises(Ringspun::TLSSessionError, Errno::ECONNRESET) { connect(server, TRUST, &:read_line) }
      assert_raises(Ringspun::TLSSessionError, Errno::ECONNRESET) { connect(server, { **TRUST, **IDENTITY }, &:read_line) }
    end
  end

  def test_a_client_that_may_show_a_certificate
    subjects = []
    handler = lambda do |stream|
      subjects << stream.tls.peer_certificate&.subject.to_s
      echo(stream)
    end
    on_server({ **IDENTITY, ca: Certificate.authority, verify: false }, handler) do |server|
      mine = { cert: Certificate.issue(common_name: "me", issuer: Certificate.authority), key: Certificate.key }
      [TRUST, { **TRUST, **mine }].each { |tls| connect(server, tls) { |stream| ask(stream, "x") } }
    end
    assert_equal ["", "/CN=me"], subjects
  end

  # --- what both agree on ---

  def test_protocols
    seen = []
    handler = lambda do |stream|
      seen << stream.tls.alpn_protocol
      echo(stream)
    end
    on_server({ **IDENTITY, alpn: %w[h2 http/1.1] }, handler) do |server|
      offers = [%w[http/1.1], %w[http/1.1 h2], nil]
      got = offers.map { |alpn| connect(server, { **TRUST, alpn: }) { |stream| ask(stream, "x") && stream.tls.alpn_protocol } }
      assert_equal ["http/1.1", "h2", nil], got
      assert_equal got, seen
      error = assert_raises(Ringspun::HandshakeRefusedError) { connect(server, { **TRUST, alpn: %w[smtp] }) }
      assert_match(/refused the TLS handshake: .*no application protocol/, error.message)
    end
  end

  def test_the_name_that_the_client_asks_for
    names = []
    handler = ->(stream) { names << stream.tls.server_name && echo(stream) }
    context = Ringspun::TLS.server_context(**IDENTITY)
    other = Ringspun::TLS.server_context(cert: Certificate.issue(names: "DNS:other.example"), key: Certificate.key)
    context.servername_cb = ->((_, name)) { name == "other.example" ? other : context }
    on_server(context, handler) do |server|
      connect(server) { |stream| ask(stream, "x") }
      connect(server, TRUST, host: "127.0.0.1") { |stream| ask(stream, "x") }
      subject = connect(server, { verify: false, host: "other.example" }) do |stream|
        ask(stream, "x") && stream.tls.peer_certificate.extensions.last.value
      end
      assert_equal "DNS:other.example", subject
    end
    assert_equal ["localhost", nil, "other.example"], names
  end

  def test_versions
    on_server({ **IDENTITY, min_version: :TLS1_3 }) do |server|
      old = OpenSSL::SSL::SSLContext.new.tap { |context| context.set_params(cert_store: Certificate.store) }
      old.max_version = :TLS1_2
      assert_match(/protocol version/, assert_raises(Ringspun::HandshakeRefusedError) { connect(server, old) }.message)
    end
  end

  %i[TLS1_2 TLS1_3].each do |version|
    define_method(:"test_a_session_is_resumed_with_#{version}") do
      context = Ringspun::TLS.server_context(**IDENTITY)
      context.max_version = version
      on_server(context) do |server|
        resumed = lambda do |tls, **options|
          connect(server, tls, **options) { |stream| ask(stream, "x") && stream.tls.session_reused? }
        end
        own = { ca: Certificate.certificate.to_pem, alpn: ["of #{version}"] } # nobody else has connected with that
        assert_equal([false, true, true], Array.new(3) { resumed.call(own) })
        refute resumed.call(own, host: "127.0.0.1"), "a session of another host"
        refute resumed.call({ **own, verify: false }), "a session of another context"
      end
    end
  end

  def test_what_a_session_tells_of_itself
    on_server do |server|
      connect(server) do |stream|
        tls = stream.tls
        assert_same tls, stream.tls
        assert_equal ["TLSv1.3", false], [tls.version, tls.session_reused?] unless tls.session_reused?
        assert_match(/\A#<Ringspun::TLS::Connection TLSv1.3 TLS_\w+( resumed)?>\z/, tls.inspect)
        assert_includes [[true, true], [true, false], [false, false]], [tls.kernel_sends?, tls.kernel_receives?]
      end
    end
  end

  # --- those who speak something else, or nothing ---

  def test_a_client_that_does_not_speak_tls
    on_server do |server|
      Ringspun.connect_tcp("127.0.0.1", server.port) do |stream|
        stream.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        refute_equal "HTTP", error_of { stream.read }.to_s[0, 4]
      end
      assert_equal("x", connect(server) { |stream| ask(stream, "x") })
    end
  end

  # Nor is that told to anybody.
  def test_clients_that_are_gone_before_the_handshake
    on_server do |server, machine|
      10.times do
        descriptor = machine.socket(:INET, :STREAM)
        machine.connect(descriptor, server.address)
        machine.setsockopt(descriptor, Socket::SOL_SOCKET, Socket::SO_LINGER, [1, 0].pack("ii"))
        machine.close(descriptor)
      end
      assert_equal("x", connect(server) { |stream| ask(stream, "x") })
    end
  end

  def test_a_server_that_does_not_speak_tls
    on_machine do
      server = Ringspun.listen_tcp("127.0.0.1", 0, first_byte: nil) do |stream|
        stream.write("220 ready\r\n")
        stream.read_partial
      end
      error = assert_raises(Ringspun::HandshakeError) { connect(server) }
      assert_match(/does not speak TLS .* right port/, error.message)
      server.stop
    end
  end

  def test_a_server_that_closes_the_connection
    on_machine do
      server = Ringspun.listen_tcp("127.0.0.1", 0, &:read_partial)
      error = assert_raises(Ringspun::HandshakeError) { connect(server) }
      assert_match(/closed the connection in the TLS handshake/, error.message)
      server.stop
    end
  end

  def test_a_client_that_never_finishes_the_handshake
    on_server(first_byte: 0.05) do |server|
      Ringspun.connect_tcp("127.0.0.1", server.port) do |stream|
        stream.write("\x16\x03\x01")
        assert_equal "", stream.read
      end
    end
  end

  def test_a_server_that_never_answers
    on_machine do |machine|
      gate = Ringspun::Queue.new
      server = Ringspun.listen_tcp("127.0.0.1", 0) { gate.pop }
      assert_raises(Ringspun::TimeoutError) { connect(server, connect_timeout: 0.05) }
      shaking = waiting(/poll/) { connect(server) }
      machine.terminate(shaking)
      assert_raises(Ringspun::TerminatedError) { shaking.await }
      assert_raises(Ringspun::TimeoutError) { plain(server).start_tls(TRUST, host: "localhost", timeout: 0.01) }
      gate.close
      server.stop
    end
  end

  def plain(server) = keep_stream(Ringspun.connect_tcp("127.0.0.1", server.port))

  # --- the stock library at the other end ---

  def test_a_stock_client
    on_server do |server, machine|
      client = Thread.new do
        socket = OpenSSL::SSL::SSLSocket.open("127.0.0.1", server.port, context: Certificate.client_context)
        socket.hostname = "localhost"
        socket.sync_close = true
        socket.connect
        socket.puts("hello")
        socket.gets.tap { socket.close }
      end
      machine.sleep(0.001) while client.alive?
      assert_equal "hello\n", client.value
    end
  end

  def test_a_stock_server
    listener = TCPServer.new("127.0.0.1", 0)
    server = Thread.new do
      socket = OpenSSL::SSL::SSLSocket.new(listener.accept, Certificate.server_context)
      socket.sync_close = true
      socket.accept
      socket.puts(socket.gets.upcase)
      socket.close
    end
    on_machine do
      Ringspun.connect_tcp("localhost", listener.addr[1], tls: Certificate.client_context) do |stream|
        assert_equal "HELLO", ask(stream, "hello")
        assert_nil stream.read_line
      end
    end
    server.join
  ensure
    listener.close
  end

  def test_a_unix_socket
    Dir.mktmpdir do |folder|
      on_machine do
        server = Ringspun.listen_unix("#{folder}/door", tls: IDENTITY) { |stream| echo(stream) }
        tls = { **TRUST, host: "localhost" }
        assert_equal("x", Ringspun.connect_unix("#{folder}/door", tls:) { |stream| ask(stream, "x") })
        assert_raises(Ringspun::UsageError) { Ringspun.connect_unix("#{folder}/door", tls: TRUST) }
        server.stop
      end
    end
  end

  # --- options ---

  def assert_wrong(message, &) = assert_match(message, assert_raises(Ringspun::UsageError, &).message)

  def test_options_of_a_client
    on_machine do
      {
        { cas: 1 } => /unknown option :cas; there are :ca, /, { ca: 1 } => /ca is PEM, a path or/,
        { ca: "/nowhere" } => %r{ca \(/nowhere\) is neither PEM nor}, { ca: "-----BEGIN nothing" } => /ca holds no certificate/,
        { cert: Certificate.certificate } => /cert: needs key:/,
        { alpn: "h2" } => /alpn is an Array/, { min_version: :SSL3 } => /min_version is one of :TLS1_2, :TLS1_3/,
        { verify: :peer } => /verify is true, false or :issuer, got :peer/, { host: 1 } => /by host:/, 7 => /tls: true, a Hash or/
      }.each { |tls, message| assert_wrong(message) { Ringspun.connect_tcp("127.0.0.1", 1, tls:) } }
      assert_wrong(/say by host:/) { Ringspun.connect_unix("/nowhere", tls: true) }
    end
  end

  def test_options_of_a_server
    on_machine do
      other_key = OpenSSL::PKey::EC.generate("prime256v1")
      {
        {} => /needs cert: and key:/, { cert: Certificate.certificate } => /cert: needs key:/,
        true => /a server needs \{cert:, key:\}/, { **IDENTITY, key: other_key } => /the key is not that of the certificate/,
        { **IDENTITY, key: "./x" } => %r{key \(./x\) is neither PEM nor},
        { **IDENTITY, key: "-----BEGIN x" } => /key holds no private key/,
        { **IDENTITY, verify: true } => /say by ca: whose certificates/,
        { **IDENTITY, hosts: 1 } => /unknown option :hosts/
      }.each { |tls, message| assert_wrong(message) { Ringspun.listen_tcp("127.0.0.1", 0, tls:) { flunk } } }
    end
  end

  def test_files
    Dir.mktmpdir do |folder|
      File.write("#{folder}/cert.pem", Certificate.certificate.to_pem)
      File.write("#{folder}/key.pem", Certificate.key.to_pem)
      on_server({ cert: "#{folder}/cert.pem", key: "#{folder}/key.pem" }) do |server|
        assert_equal("x", connect(server, { ca: "#{folder}/cert.pem" }) { |stream| ask(stream, "x") })
      end
    end
  end
end
