# frozen_string_literal: true

require_relative "scripted_case"

# Whoever answers in the place of a server is broken, or wants the password, or us to wait for ever.
class HostileServerTest < ScriptedCase
  GOOD = [Client::OK, Client.message("S", "server_version\x0017.2\0"), Client.message("N", "SNOTICE\0\0"),
          Client.message("K", [7, 8].pack("N2")), Client::READY].join.freeze
  CLOSED = /the server has closed the connection while it began/
  BROKEN = /what answers is no Postgres, or a broken one: it sent /
  ProtocolError = Postgres::ProtocolError
  ConnectError = Postgres::ConnectError

  def test_what_a_client_says_and_hears
    heard = nil
    script = after_startup do |client, parameters|
      heard = parameters
      client.say(GOOD)
      client.wait
    end
    assert_connects(script, dbname: "shop", application_name: "some") do |session|
      assert_equal [7, [8].pack("N"), "17.2"], [session.process, session.key, session.settings["server_version"]]
    end
    assert_equal({ "user" => "me", "database" => "shop", "client_encoding" => "UTF8", "DateStyle" => "ISO",
                   "IntervalStyle" => "iso_8601", "extra_float_digits" => "3", "array_nulls" => "on",
                   "application_name" => "some" }, heard)
  end

  # As of PgBouncer, unless it is told to ignore them.
  def test_a_pooler_that_refuses_settings_that_it_does_not_know
    asked = []
    script = after_startup do |client, parameters|
      asked << parameters.keys.grep(/array_nulls|extra_float_digits/)
      next client.refuse("08P01", "unsupported startup parameter: array_nulls") if asked.last.any?

      client.say(GOOD)
      client.wait
    end
    on_server(script) do |where|
      chosen = options(**where)
      2.times { STARTUP.connect(chosen).stream.close }
    end
    assert_equal [%w[extra_float_digits array_nulls], [], []], asked
  end

  def test_a_pooler_that_refuses_everything
    refusal = after_startup { |client| client.refuse("08P01", "unsupported startup parameter: IntervalStyle") }
    assert_server(Postgres::ConnectionException, /unsupported startup parameter: IntervalStyle/, refusal)
  end

  # --- cut, split, never ---

  def test_what_comes_byte_by_byte
    script = after_startup do |client|
      GOOD.each_char { |byte| client.say(byte) && client.stream.flush && Ringspun::Machine.current.yield }
      client.wait
    end
    assert_connects(script) { |session| assert_equal 7, session.process }
  end

  def test_a_connection_that_is_cut_after_each_byte
    left = GOOD.bytesize
    on_server(after_startup { |client| client.say(GOOD.byteslice(0, left)) }) do |where|
      left.times do
        left -= 1
        error = assert_raises(ConnectError) { session(**where) }
        assert_match(CLOSED, error.message)
      end
    end
  end

  def test_what_comes_after_the_beginning_is_left_for_others
    script = after_startup { |client| client.say(GOOD, "more") && client.wait }
    assert_connects(script) { |session| assert_equal "more", session.stream.read(4) }
  end

  def test_a_server_that_never_answers
    [->(client) { client.wait }, after_startup { |client| client.say("R\0\0") && client.wait }].each do |script|
      assert_server(Ringspun::TimeoutError, /no connection within 0.01 s/, script, connect_timeout: 0.01)
    end
  end

  # --- what is no message, or none that may come ---

  def test_what_is_too_long
    %w[R E v].product([0x7fffffff, 30_001, 0xffffffff]) do |type, length|
      assert_said([type, length].pack("aN"), /a message of #{length} bytes/)
    end
    %w[S K N Z].product([0x7fffffff, 30_001]) do |type, length|
      assert_said(Client::OK + [type, length].pack("aN"), /a message of #{length} bytes/)
    end
    script = after_startup { |client| client.say("R\0\0\0\3") && client.wait }
    assert_server(ProtocolError, /what the server sends is no message/, script)
  end

  def test_what_nobody_has_asked_for
    early = [Client.message("S", "a\0b\0"), Client.message("N", "SNOTICE\0\0"), Client::READY, Client.message("K", "\0" * 8)]
    early.each do |message|
      assert_said(message, /message "#{message[0]}" before it knew who is there/)
    end
    %w[T D C 1 2 3 G H d c A].each { |type| assert_said(Client::OK + Client.message(type, ""), /message "#{type}" while/) }
    ["HTTP/1.1 400 Bad Request\r\n\r\n", "\x15\x03\x01\0\x02\x02\x16"].each do |other|
      assert_server(ProtocolError, /what the server sends is no message|it sent a message of/,
                    after_startup { |client| client.say(other) && client.wait })
    end
  end

  def test_messages_that_never_end
    assert_said(Client::OK + (Client.message("N", "SNOTICE\0\0") * 1000), /more than 1000 messages/)
  end

  def test_what_is_not_as_it_must_be
    ["", "a", "a\0", "a\0b", "\0b\0", "a\0b\0c"].each { |body| assert_said(Client::OK + Client.message("S", body), /a setting/) }
    ["", "I\0", "X"].each { |body| assert_said(Client::OK + Client.message("Z", body), /a status/) }
    ["", "\0\0\0\7", "\0\0\0\7abc", "\0\0\0\7#{"k" * 257}"].each do |body|
      assert_said(Client::OK + Client.message("K", body), /a key for cancelling/)
    end
    key = Client.message("K", [7, 8].pack("N2"))
    assert_said(Client::OK + key + key, /a key for cancelling/)
    ["", "SFATAL"].each { |body| assert_said(Client.message("E", body), /an error/) }
  end

  def test_a_server_without_a_key
    script = after_startup { |client| client.say(Client::OK, Client::READY) && client.wait }
    on_server(script) do |where|
      with_session(**where) { |session| refute CANCEL.send(options(**where), session) }
      assert_equal 1, @clients
    end
  end

  # Its encoding is not ours yet.
  def test_an_error_in_another_encoding
    script = after_startup { |client| client.refuse("28P01", "falsches Pa\xdfwort".b) }
    assert_server(Postgres::InvalidPassword, /falsches Pa\uFFFDwort \(28P01\)/, script)
  end

  # --- versions ---

  def test_a_server_that_knows_an_older_version
    script = after_startup { |client| client.say(version(0x30000), GOOD) && client.wait }
    assert_connects(script, max_protocol_version: "3.2") { |session| assert_equal 0x30000, session.version }
    assert_server(ProtocolError, BROKEN, script)
    assert_server(Postgres::ConnectError, /older than min_protocol_version/, script, min_protocol_version: "3.2",
                                                                                     max_protocol_version: "3.2")
  end

  def test_versions_that_cannot_be
    { version(0x30000) * 2 => /a second offer/, version(0x30002) => /an offer/, version(0x30003) => /an offer/,
      version(0x30001) => /version 3.1/, version(0x20000) => /an offer/, version(0x30000, "_pq_.x") => /an offer/,
      Client.message("v", "") => /an offer/, Client.message("v", "\0\3\0\0\0\0\0\0x") => /an offer/ }.each do |said, message|
      assert_said(said, message, max_protocol_version: "3.2")
    end
    assert_said(Client::OK + version(0x30000), /message "v" while the connection began/, max_protocol_version: "3.2")
  end

  # --- who is there ---

  def test_ways_to_authenticate_that_there_are_not
    { 2 => /asks for krb5, which is not/, 7 => /asks for gss, which is not/, 9 => /asks for sspi, which is not/,
      8 => /not known \(8\)/, 99 => /not known \(99\)/ }.each do |request, message|
      assert_server(ConnectError, message, after_startup { |client| client.ask(request) && client.wait }, password: "secret")
    end
  end

  def test_requests_that_are_wrong
    { Client.message("R", "") => /not known \(nil\)/, Client.message("R", "\0\0\0\0x") => /says more than it may/,
      asked(5, "abc") => /a salt of 3 bytes/, asked(10, "SCRAM-SHA-256") => /names no mechanism/,
      asked(11, "r=x") => /answers SCRAM out of turn/, asked(12, "v=x") => /answers SCRAM out of turn/,
      asked(5, "salt") * 2 => /asks again who is there/, asked(10, "SCRAM-SHA-256\0\0") + asked(5, "salt") => /asks again/,
      asked(10, "SCRAM-SHA-256\0\0") * 2 => /asks again/, asked(10, "SCRAM-SHA-256\0\0") + asked(12, "v=x") => /out of turn/,
      asked(10, "SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0") => /offers SCRAM-SHA-256-PLUS without TLS/,
      asked(10, "X\0\0") => /offers "X"; none of them is known/ }.each do |said, message|
      on_server(after_startup { |client| client.say(said) && client.wait }) do |where|
        error = assert_raises(Postgres::Error) { session(**where, password: "secret") }
        assert_match message, error.message
        refute_includes error.message, "secret"
      end
    end
  end

  def test_a_password_in_clear_text_is_not_sent
    said = nil
    script = after_startup { |client| client.ask(3) && said = client.wait }
    message = /wants the password in clear text over a connection that all can read/
    assert_server(ConnectError, message, script, password: "secret")
    assert_empty said
    script = after_startup { |client| client.ask(3) && said = client.message and client.welcome && client.wait }
    assert_connects(script, password: "secret", allow_cleartext: true)
    assert_equal "secret\0", said
  end

  # --- SCRAM ---

  def test_scram
    scram = Scram.new("secret")
    assert_connects(salted(scram) { |client| client.welcome && client.wait }, password: "secret")
  end

  def test_a_server_that_ends_scram_before_it_has_shown_that_it_knows_the_password
    message = /ends SCRAM before it has proved that it knows the password/
    early = after_startup { |client| client.ask(10, "SCRAM-SHA-256\0\0") && client.message and client.welcome && client.wait }
    assert_server(ConnectError, message, early, password: "secret")
    late = salted(Scram.new("secret"), final: false) { |client| client.welcome && client.wait }
    assert_server(ConnectError, message, late, password: "secret")
  end

  def test_a_server_that_does_not_know_the_password
    script = salted(Scram.new("other")) { |client| client.welcome && client.wait }
    assert_server(ConnectError, /the server does not prove that it knows the password/, script, password: "secret")
  end

  def test_scram_that_takes_for_ever
    script = after_startup do |client|
      client.ask(10, "SCRAM-SHA-256\0\0")
      nonce = client.message[/r=(.*)/, 1]
      client.ask(11, "r=#{nonce}x,s=QQ==,i=2147483647")
      client.wait
    end
    assert_server(ConnectError, /asks for 2147483647 iterations, and at most 1000000 are done/, script, password: "secret")
  end

  def test_scram_with_another_nonce
    script = after_startup do |client|
      client.ask(10, "SCRAM-SHA-256\0\0")
      client.message
      client.ask(11, "r=other,s=QQ==,i=1")
      client.wait
    end
    assert_server(ProtocolError, /the server's first message is not as RFC 5802/, script, password: "secret")
  end

  # --- several hosts ---

  def test_whose_answer_counts_for_all_hosts
    [["57P03", 2], ["28P01", 1], ["28000", 1], ["3D000", 1]].each do |sqlstate, clients|
      on_server(after_startup { |client| client.refuse(sqlstate) }) do |where|
        error = assert_raises(Postgres::Error) { session(**where, host: "one,two", hostaddr: "127.0.0.1,127.0.0.1") }
        assert_equal [clients, clients == 1], [@clients, error.is_a?(Postgres::ServerError)], sqlstate
      end
    end
  end

  def test_a_host_that_closes
    script = after_startup { |client| @clients == 1 || (client.welcome && client.wait) }
    on_server(script) do |where|
      hosts = { host: %w[one two], hostaddr: %w[127.0.0.1 127.0.0.1] }
      with_session(**where, **hosts) { |session| assert_equal "two", session.host.name }
    end
  end

  def test_hosts_that_do_not_answer
    on_server(:wait.to_proc) do |where|
      hosts = { host: %w[one two], hostaddr: %w[127.0.0.1 127.0.0.1], connect_timeout: 0.01 }
      error = assert_raises(ConnectError) { session(**where, **hosts) }
      assert_match(/\Aone:\d+: no connection within 0.01 s; two:\d+: no connection within 0.01 s\z/, error.message)
    end
  end

  # Before 14 they do not say so, and nor do all poolers.
  def test_servers_that_must_be_asked_for_their_role
    { %w[f off] => %w[any read-write primary prefer-standby], %w[t on] => %w[any read-only standby prefer-standby],
      %w[f on] => %w[any read-only primary prefer-standby] }.each do |values, suited|
      %w[any read-write read-only primary standby prefer-standby].each do |wanted|
        script = after_startup { |client| client.welcome && answer_role(client, row_of(values)) }
        next assert_connects(script, target_session_attrs: wanted) if suited.include?(wanted)

        assert_server(ConnectError, /the server is not #{wanted}/, script, target_session_attrs: wanted)
      end
    end
  end

  def test_a_role_that_is_none
    ["", "\0", "\0\1\0\0\0\x09t", "\0\1\0\0\0\1tmore", "\0\1\x80\0\0\0"].each do |row|
      script = after_startup { |client| client.welcome && answer_role(client, Client.message("D", row)) }
      assert_server(ProtocolError, /what is no row/, script, target_session_attrs: "primary")
    end
    script = after_startup { |client| client.welcome && answer_role(client, Client.message("D", "\0\1\xff\xff\xff\xff".b)) }
    assert_connects(script, target_session_attrs: "primary")
  end

  def test_servers_that_say_their_role
    standby = { in_hot_standby: "on", default_transaction_read_only: "off" }
    script = after_startup { |client| client.welcome(**standby) && client.wait }
    %w[standby read-only].each { |wanted| assert_connects(script, target_session_attrs: wanted) }
    %w[primary read-write].each { |wanted| assert_server(ConnectError, /is not #{wanted}/, script, target_session_attrs: wanted) }
  end

  private

  def version(number, *options) = Client.message("v", [number, options.size].pack("N2") + options.map { |text| "#{text}\0" }.join)
  def asked(request, rest) = Client.message("R", [request].pack("N") + rest)

  # Says that and waits, so that it is what was said that ends the connection.
  def assert_said(bytes, message, **)
    error = assert_server(ProtocolError, BROKEN, after_startup { |client| client.say(bytes) && client.wait }, **)
    assert_match message, error.message
  end

  def salted(scram, final: true)
    after_startup do |client|
      client.ask(10, "SCRAM-SHA-256\0\0")
      client.ask(11, scram.first(client.message))
      last = scram.final(client.message)
      client.ask(12, last) if final
      yield client
    end
  end

  def row_of(values) = Client.message("D", [values.size].pack("n") + values.map { |text| [text.bytesize, text].pack("Na*") }.join)

  def answer_role(client, row)
    while client.stream.peek(5)&.bytesize == 5
      return client.wait unless client.stream.peek(1) == "Q"

      client.message
      client.say(row, Client.message("C", "SELECT 1\0"), Client::READY)
    end
  end
end
