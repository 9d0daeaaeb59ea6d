# frozen_string_literal: true

require_relative "connect_case"
require_relative "secured_postgres"

# servers: 15, 17

# Connections to a real server.
class StartupTest < ConnectCase
  include SecuredPostgres

  # --- what a session is ---

  def test_a_session
    on_session(**secured_unix, user: "trusted", application_name: "some test", options: "-cgeqo=off") do |session|
      assert_equal ["I", 0x30000, false, 4], [session.status, session.version, session.encrypted, session.key.bytesize]
      told = session.settings.values_at("application_name", "client_encoding", "IntervalStyle")
      assert_equal ["some test", "UTF8", "iso_8601"], told
      assert_equal "off", ask(session, "SHOW geqo")
      refute_includes session.inspect, session.key.inspect
    end
  end

  # https://www.postgresql.org/docs/17/libpq-envars.html
  def test_what_the_environment_has_each_session_begin_with
    env = { "HOME" => @home, "PGTZ" => "Asia/Tokyo", "PGDATESTYLE" => "German, DMY", "PGGEQO" => "off" }
    Ringspun.run do
      session = STARTUP.connect(OPTIONS.new(**secured_unix, user: "trusted", env:))
      assert_equal ["Asia/Tokyo", "ISO, DMY", "off"], %w[TimeZone DateStyle geqo].map { |name| ask(session, "SHOW #{name}") }
    ensure
      session&.stream&.close
    end
  end

  def test_names_that_are_no_words
    on_session(**secured_unix, user: "trusted", dbname: "on'; -- the left") do |session|
      assert_equal "on'; -- the left", ask(session, "SELECT current_database()")
    end
    assert_refused(Postgres::ServerError, /database "größer" does not exist/, **secured_unix, user: "trusted", dbname: "größer")
  end

  # Which servers know from 18 on, and those before say that they do not.
  def test_a_newer_version_of_the_protocol
    on_session(**secured_unix, user: "trusted", max_protocol_version: "3.2") do |session|
      assert_equal server_version(session) >= 18 ? [0x30002, 32] : [0x30000, 4], [session.version, session.key.bytesize]
    end
  end

  # --- who we are ---

  %w[plain old salted].each do |role|
    define_method("test_a_password_of_#{role}") do
      on_session(**secured_tcp, user: role, password: "secret") { |session|
        assert_equal role, ask(session, "SELECT current_user")
      }
      error = assert_refused(Postgres::InvalidPassword, /password authentication failed/, **secured_tcp, user: role,
                                                                                                         password: "no")
      assert_equal "28P01", error.sqlstate
      assert_refused(Postgres::ConnectError, /\Alocalhost:\d+: the server wants a password; give one/, **secured_tcp, user: role)
    end
  end

  def test_a_password_in_clear_text
    clear = { **secured_tcp, user: "plain", password: "secret", sslmode: "disable" }
    assert_refused(Postgres::ConnectError, /password in clear text over a connection that all can read/, **clear)
    on_session(**clear, allow_cleartext: true) { |session| refute session.encrypted }
    on_session(**secured_unix, user: "plain", password: "secret") { |session| refute session.encrypted }
  end

  def test_a_password_of_a_file
    File.write("#{@home}/.pgpass", "localhost:#{SecuredPostgres.port}:*:salted:secret\n", perm: 0o600)
    on_session(**secured_tcp, user: "salted") { |session| assert_predicate session, :encrypted }
  end

  def test_scram_without_tls
    on_session(**secured_tcp, user: "salted", password: "secret", sslmode: "disable") { |session| refute session.encrypted }
  end

  def test_what_the_server_may_ask_for
    salted = { **secured_tcp, user: "salted", password: "secret" }
    on_session(**salted, require_auth: "md5,scram-sha-256") { nil }
    on_session(**salted, require_auth: "!none,!md5") { nil }
    assert_refused(Postgres::ConnectError, /asks for scram-sha-256, and require_auth wants md5/, **salted, require_auth: "md5")
    assert_refused(Postgres::ConnectError, /does not ask who is there, and require_auth wants md5/, **secured_unix,
                   user: "trusted", require_auth: "md5")
  end

  def test_a_proof_that_is_bound_to_the_session
    salted = { **secured_tcp, user: "salted", password: "secret" }
    %w[require prefer disable].each { |channel_binding| on_session(**salted, channel_binding:) { nil } }
    message = /cannot bind SCRAM to the TLS session, and channel_binding=require/
    assert_refused(Postgres::ConnectError, message, **salted, channel_binding: "require", sslmode: "disable")
    message = /does not ask for SCRAM-SHA-256-PLUS, and channel_binding=require/
    assert_refused(Postgres::ConnectError, message, **salted, user: "old", channel_binding: "require")
  end

  def test_who_runs_the_server
    on_session(**secured_unix, user: "trusted", requirepeer: SecuredPostgres.server.user.name) { nil }
    message = /the server runs as .*, and requirepeer wants somebody/
    assert_refused(Postgres::ConnectError, message, **secured_unix, user: "trusted", requirepeer: "somebody")
  end

  # --- TLS ---

  def test_modes_of_tls
    { "disable" => false, "allow" => false, "prefer" => true, "require" => true }.each do |sslmode, encrypted|
      on_session(**secured_tcp, user: "salted", password: "secret", sslmode:) do |session|
        assert_equal encrypted, session.encrypted, sslmode
        assert_equal encrypted.to_s[0], ask(session, "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
      end
    end
  end

  # The server may have wishes of its own, of which it tells only who has come the other way.
  def test_modes_that_try_it_the_other_way
    on_session(**secured_tcp, user: "clear_only", sslmode: "prefer") { |session| refute session.encrypted }
    on_session(**secured_tcp, user: "trusted", sslmode: "allow") { |session| assert session.encrypted }
    assert_refused(Postgres::InvalidAuthorization, /no pg_hba.conf entry/, **secured_tcp, user: "clear_only", sslmode: "require")
    assert_refused(Postgres::InvalidAuthorization, /no pg_hba.conf entry/, **secured_tcp, user: "trusted", sslmode: "disable")
    assert_refused(Postgres::InvalidAuthorization, /no pg_hba.conf entry/, **secured_tcp, user: "nobody")
  end

  def test_a_server_that_is_verified
    trusted = { **secured_tcp, user: "trusted", sslrootcert: "#{SecuredPostgres.server.folder}/root.crt" }
    %w[verify-ca verify-full].each { |sslmode| on_session(**trusted, sslmode:) { |session| assert session.encrypted } }
    on_session(**trusted, host: "other.example", sslmode: "verify-ca") { nil }
    assert_refused(Postgres::ConnectError, /\Aother.example:\d+: the server's certificate is not for other.example/, **trusted,
                   host: "other.example", sslmode: "verify-full")
    assert_refused(Postgres::ConnectError, /by nobody who is trusted here.*sslrootcert/, **secured_tcp, user: "trusted",
                                                                                                        sslrootcert: "system")
  end

  def test_a_certificate_of_the_server_that_has_expired
    trusted = { **secured_tcp, user: "trusted", sslrootcert: "#{SecuredPostgres.server.folder}/root.crt" }
    with_certificate(Certificate.issue(issuer: Certificate.authority, days: -3..-1)) do
      %w[verify-ca verify-full].each do |sslmode|
        assert_refused(Postgres::ConnectError, /\Alocalhost:\d+: the certificate of localhost has expired/, **trusted, sslmode:)
      end
    end
    on_session(**trusted, sslmode: "verify-full") { |session| assert session.encrypted }
  end

  def test_versions_of_tls
    { "TLSv1.2" => "TLSv1.2", "TLSv1.3" => "TLSv1.3" }.each do |option, version|
      on_session(**secured_tcp, user: "trusted", ssl_min_protocol_version: option, ssl_max_protocol_version: option) do |session|
        assert_equal version, session.stream.tls.version
      end
    end
  end

  def test_a_certificate_of_our_own
    File.write("#{@home}/key", Certificate.key.to_pem, perm: 0o600)
    certified = { **secured_tcp, user: "certified", sslcert: "#{@home}/certificate", sslkey: "#{@home}/key", sslmode: "require" }
    File.write("#{@home}/certificate", Certificate.issue(issuer: Certificate.authority, common_name: "certified").to_pem)
    on_session(**certified) { |session| assert_equal "certified", ask(session, "SELECT current_user") }
    File.write("#{@home}/certificate", Certificate.issue(issuer: Certificate.authority, common_name: "other").to_pem)
    assert_refused(Postgres::InvalidAuthorization, /certificate authentication failed/, **certified)
    File.write("#{@home}/certificate", Certificate.issue(common_name: "certified").to_pem)
    assert_refused(Postgres::ConnectError, /localhost/, **certified)
  end

  # From 17 on.
  def test_tls_that_begins_at_once
    trusted = { **secured_tcp, user: "trusted", sslmode: "require" }
    if on_session(**trusted) { |session| server_version(session) } >= 17
      on_session(**trusted, sslnegotiation: "direct") { |session| assert_equal "postgresql", session.stream.tls.alpn_protocol }
      verified = { **trusted, sslnegotiation: "direct", sslmode: "verify-full" }
      root = "#{SecuredPostgres.server.folder}/root.crt"
      on_session(**verified, sslrootcert: root) { |session| assert session.encrypted }
      assert_refused(Postgres::ConnectError, /is not for other.example/, **verified, sslrootcert: root, host: "other.example")
      assert_refused(Postgres::ConnectError, /by nobody who is trusted/, **verified, sslrootcert: "system")
    else
      assert_refused(Postgres::ConnectError, /closed the connection in the TLS handshake/, **trusted, sslnegotiation: "direct")
    end
  end

  # --- several hosts ---

  def test_a_host_that_is_not_there
    nobody = "#{@home}/.s.PGSQL.#{SecuredPostgres.port}"
    on_session(**secured_unix, host: [@home, secured_unix[:host]], user: "trusted") do |session|
      assert_equal "#{secured_unix[:host]}/.s.PGSQL.#{SecuredPostgres.port}", session.host.to_s
    end
    assert_refused(Postgres::ConnectError, /\A#{nobody}: No such file/, **secured_unix, host: @home, user: "trusted")
    message = /\A#{nobody}: No such file.*; localhost:1: Connection refused/
    assert_refused(Postgres::ConnectError, message, host: [@home, "localhost"], port: [SecuredPostgres.port, 1], user: "trusted")
    assert_refused(Postgres::ConnectError, /\Anowhere.invalid:5432: .*getaddrinfo/, host: "nowhere.invalid", user: "trusted")
  end

  def test_all_addresses_of_a_name
    on_session(host: "localhost", port: SecuredPostgres.port, dbname: "postgres", user: "clear_only") do |session|
      assert_equal ["localhost", "127.0.0.1"], [session.host.name, session.host.address]
    end
  end

  def test_a_server_with_a_role_that_is_wanted
    trusted = { **secured_unix, user: "trusted" }
    %w[any read-write primary prefer-standby].each { |target| on_session(**trusted, target_session_attrs: target) { nil } }
    reader = { **trusted, options: "-cdefault_transaction_read_only=on" }
    %w[read-only primary].each { |target| on_session(**reader, target_session_attrs: target) { nil } }
    { "read-only" => trusted, "standby" => trusted, "read-write" => reader }.each do |target, who|
      assert_refused(Postgres::ConnectError, /the server is not #{target}, as target_session_attrs/, **who,
target_session_attrs: target)
    end
  end

  # --- cancel ---

  def test_a_statement_is_cancelled
    [secured_unix, secured_tcp].each do |where|
      on_session(**where, user: "trusted") do |session, machine|
        asking = machine.spin { ask(session, "SELECT pg_sleep(1000)") }
        with_session(**secured_unix, user: "trusted") { |other| wait_until_busy(other, session) }
        assert CANCEL.send(options(**where), session)
        assert_instance_of Postgres::QueryCanceled, machine.await(asking).first
      end
    end
  end

  private

  # The server shows that one meanwhile.
  def with_certificate(certificate)
    before = File.read("#{SecuredPostgres.server.folder}/server.crt")
    show_certificate(certificate.to_pem)
    yield
  ensure
    show_certificate(before)
  end

  # Of a reload nobody hears when it is done.
  def show_certificate(pem)
    serial = OpenSSL::X509::Certificate.new(pem).serial
    SecuredPostgres.server.write("server.crt", pem)
    on_session(**secured_unix, user: "trusted") { |session| ask(session, "SELECT pg_reload_conf()") }
    shown = nil
    until shown == serial
      encrypted = { **secured_tcp, user: "trusted", sslmode: "require" }
      shown = on_session(**encrypted) { |session| session.stream.tls.peer_certificate.serial }
    end
  end

  def server_version(session) = Integer(session.settings["server_version"][/\A\d+/])

  def wait_until_busy(other, session)
    sql = "SELECT state FROM pg_stat_activity WHERE pid = #{session.process} AND wait_event = 'PgSleep'"
    nil until ask(other, sql) == "active"
  end
end
