# frozen_string_literal: true

require_relative "scripted_case"

# How TLS begins where the other side is somebody else, or wants it some other way.
class ConnectTLSTest < ScriptedCase
  IDENTITY = { cert: Certificate.certificate, key: Certificate.key }.freeze
  SSL_REQUEST = [Client::STARTUP[:tls], ""].freeze
  ConnectError = Postgres::ConnectError

  # --- whom to believe ---

  def test_a_server_that_is_verified
    identity = { cert: Certificate.issue(issuer: Certificate.authority), key: Certificate.key }
    on_server(tls(identity) { |client| welcome(client) }) do |where|
      %w[verify-ca verify-full].each { |sslmode| with_session(**where, **trust, sslmode:) { |session| assert session.encrypted } }
    end
  end

  def test_a_certificate_for_another_host
    other = Certificate.issue(names: "DNS:example.org", issuer: Certificate.authority)
    message = /\Alocalhost:\d+: the server's certificate is not for localhost; connect by a name that it is for/
    assert_untrusted(message, other, sslmode: "verify-full")
    on_server(tls({ cert: other, key: Certificate.key }) { |client| welcome(client) }) do |where|
      %w[verify-ca require].each { |sslmode| with_session(**where, **trust, sslmode:) { |session| assert session.encrypted } }
    end
  end

  def test_a_certificate_that_has_expired
    expired = Certificate.issue(issuer: Certificate.authority, days: -3..-1)
    %w[verify-ca verify-full].each { |sslmode| assert_untrusted(/of localhost has expired/, expired, sslmode:) }
  end

  def test_a_certificate_that_is_revoked
    revoked, good = Array.new(2) { Certificate.issue(issuer: Certificate.authority) }
    File.write("#{@home}/root.crl", Certificate.revoke(revoked).to_pem)
    FileUtils.cp("#{@home}/root.crl", "#{@home}/#{Certificate.authority.subject.hash.to_s(16).rjust(8, "0")}.r0")
    [{ sslcrl: "#{@home}/root.crl" }, { sslcrldir: @home }].each do |given|
      assert_untrusted(/revoked/, revoked, sslmode: "verify-full", **given)
      on_server(tls({ cert: good, key: Certificate.key }) { |client| welcome(client) }) do |where|
        with_session(**where, **trust, sslmode: "verify-full", **given) { |session| assert session.encrypted }
      end
    end
  end

  # Also where nobody has asked for it: there is a file of whom to trust.
  def test_a_certificate_that_nobody_trusted_has_made
    stranger = Certificate.issue(issuer: Certificate.issue(names: nil, common_name: "a stranger"))
    %w[require verify-ca verify-full].each do |sslmode|
      assert_untrusted(/by nobody who is trusted here: .*; say by sslrootcert whom to trust\z/, stranger, sslmode:)
    end
    on_server(tls({ cert: stranger, key: Certificate.key }) { |client| welcome(client) }) do |where|
      with_session(**where, sslmode: "require") { |session| assert session.encrypted }
    end
  end

  # --- the server's answer ---

  # What was in the clear is nobody's word: CVE-2021-23222.
  def test_bytes_before_the_handshake
    script = ->(client) { client.begin && client.say("S", Client::OK) && client.wait }
    %w[prefer require].each do |sslmode|
      assert_server(Postgres::ProtocolError, /the server sent bytes before the TLS handshake/, script, sslmode:)
      assert_equal 1, @clients
    end
  end

  def test_answers_that_there_are_not
    { "X" => [Postgres::ProtocolError, /what answers is no Postgres, it said "X"/],
      "E" => [ConnectError, /the server cannot say whether it has TLS/],
      "" => [ConnectError, /the server has closed the connection/],
      "N" => [ConnectError, /the server has no TLS, and sslmode=require wants it/] }.each do |answer, (error_class, message)|
      script = ->(client) { client.begin && client.say(answer) && client.stream.close_write && client.wait }
      assert_server(error_class, message, script, sslmode: "require")
    end
  end

  def test_a_server_without_tls
    script = lambda do |client|
      assert_equal SSL_REQUEST, client.begin
      client.say("N")
      welcome(client)
    end
    assert_connects(script, sslmode: "prefer") { |session| refute session.encrypted }
    assert_equal 1, @clients
  end

  def test_a_handshake_that_fails
    script = ->(client) { @clients == 1 ? client.begin && client.say("S") && nil : welcome(client) }
    assert_connects(script, sslmode: "prefer") { |session| refute session.encrypted }
    assert_server(ConnectError, /closed the connection in the TLS handshake/, script, sslmode: "require")
  end

  # --- the other way ---

  def test_who_is_let_in_the_other_way_only
    { "28000" => 2, "28P01" => 1, "3D000" => 1 }.each do |sqlstate, clients|
      refuse = ->(client) { client.begin && client.refuse(sqlstate) }
      on_server(tls(IDENTITY, &refuse)) do |where|
        assert_raises(Postgres::ServerError) { session(**where, sslmode: "prefer") }
        assert_equal clients, @clients, sqlstate
      end
      on_server(refuse) do |where|
        assert_raises(Postgres::Error) { session(**where, sslmode: "allow") }
        assert_equal clients, @clients, sqlstate
      end
    end
  end

  # --- TLS at once ---

  def test_tls_that_begins_at_once
    on_server(method(:welcome), tls: { **IDENTITY, alpn: ["postgresql"] }) do |where|
      with_session(**where, sslmode: "require", sslnegotiation: "direct") { |session| assert session.encrypted }
    end
  end

  # It may be the server of another protocol.
  def test_a_server_that_does_not_name_the_protocol
    direct = { sslmode: "require", sslnegotiation: "direct" }
    on_server(method(:welcome), tls: IDENTITY) do |where|
      error = assert_raises(ConnectError) { session(**where, **direct) }
      assert_match(/the server speaks nothing that it names in TLS \(ALPN\), and not postgresql/, error.message)
    end
    on_server(method(:welcome), tls: { **IDENTITY, alpn: ["h2"] }, on_error: ->(*) {}) do |where|
      assert_raises(ConnectError) { session(**where, **direct) }
    end
  end

  # --- cancel ---

  def test_a_request_to_cancel_goes_the_way_that_the_session_has_gone
    key = "k" * 256
    heard = []
    script = lambda do |client|
      heard << (first = client.begin)
      next if first.first == Client::STARTUP[:cancel]

      client.say(Client::OK, Client.message("K", "\0\0\0\7#{key}"), Client::READY)
      client.wait
    end
    direct = { sslmode: "require", sslnegotiation: "direct", max_protocol_version: "3.2" }
    on_server(script, tls: { **IDENTITY, alpn: ["postgresql"] }) do |where|
      with_session(**where, **direct) { |session| assert CANCEL.send(options(**where, **direct), session) }
    end
    assert_equal [Client::STARTUP[:cancel], "\0\0\0\7#{key}"], heard.last
  end

  # Whoever stands between us and the server now may not have been there before.
  def test_a_request_to_cancel_is_not_sent_in_the_clear
    heard = []
    script = lambda do |client|
      heard << client.begin
      next client.say("N") && heard << client.wait if @clients == 2

      client.say("S")
      client.stream.accept_tls(IDENTITY)
      welcome(client)
    end
    on_server(script) do |where|
      with_session(**where, sslmode: "prefer") do |session|
        error = assert_raises(ConnectError) { CANCEL.send(options(**where, sslmode: "prefer"), session) }
        assert_match(/the server has no TLS/, error.message)
      end
    end
    assert_equal [SSL_REQUEST, SSL_REQUEST, ""], heard
  end

  def test_a_request_to_cancel_that_nobody_takes
    on_server(->(client) { @clients == 1 ? welcome(client) : client.begin && client.stream.read }) do |where|
      with_session(**where) do |session|
        slow = options(**where, connect_timeout: 0.01)
        error = assert_raises(Ringspun::TimeoutError) { CANCEL.send(slow, session) }
        assert_match(/\Alocalhost:\d+: no connection within 0.01 s/, error.message)
      end
    end
  end

  private

  def trust
    File.write("#{@home}/root.crt", Certificate.authority.to_pem)
    { sslrootcert: "#{@home}/root.crt" }
  end

  def welcome(client)
    client.begin
    client.welcome
    client.wait
  end

  def tls(identity)
    lambda do |client|
      next yield(client) unless client.stream.peek(8) == [8, Client::STARTUP[:tls]].pack("N2")

      client.begin
      client.say("S")
      client.stream.accept_tls(identity)
      yield client
    end
  end

  def assert_untrusted(message, certificate, **)
    script = tls({ cert: certificate, key: Certificate.key }) { |client| welcome(client) }
    assert_server(ConnectError, message, script, **trust, **)
  end
end
