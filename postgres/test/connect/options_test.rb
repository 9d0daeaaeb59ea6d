# frozen_string_literal: true

require "postgres_helper"
require "pp"
require "support/certificate"
require "tmpdir"

# Where to connect, by a URI, keywords, the environment and files. Nothing is connected to.
class OptionsTest < Minitest::Test
  include AnyBackend

  OPTIONS = Ringspun::Postgres.const_get(:Options)

  def setup
    @home = Dir.mktmpdir
    @env = { "HOME" => @home, "PGSYSCONFDIR" => @home }
  end

  def teardown = FileUtils.rm_rf(@home)

  # --- a URI ---

  def test_a_uri
    options = options("postgres://me:s%40crt@db.example:6000/shop?connect_timeout=2.5&application_name=a%20b+c")
    assert_equal %w[db.example:6000], places(options)
    assert_equal ["me", "shop", "s@crt", "a b+c", 2.5],
                 [options.user, options.database, options["password"], options["application_name"], options.connect_timeout]
  end

  def test_parts_of_a_uri_that_are_left_out
    assert_equal %w[db:5432], places(options("postgresql://db", user: "me"))
    assert_equal "me", options("postgresql://me@db").database
    assert_equal %w[/sockets/.s.PGSQL.5432], places(options("postgres:///shop?host=/sockets&user=me"))
    assert_equal %w[/sockets/.s.PGSQL.7], places(options("postgres://%2Fsockets:7/shop?user=me"))
    assert_equal Etc.getpwuid(Process.euid).name, options("postgres://").user
  end

  def test_hosts_of_a_uri
    assert_equal %w[one:1 two:5432 [::1]:3], places(options("postgres://one:1,two,[::1]:3/"))
    assert_equal %w[one:7 two:7], places(options("postgres://one,two/?port=7"))
  end

  def test_tls_as_jdbc_has_it
    assert_equal "require", options("postgres://db?ssl=true").encryption.mode
  end

  def test_no_uri
    ["mysql://db", "db", "", "postgres://db%2", "postgres://db%zz/", "postgres://[::1/", "postgres://a:b:c/", 5,
     "postgres://\xff", "postgres://a@b@c/"].each do |source|
      error = assert_wrong(/no URI of Postgres/) { options(source) }
      refute_includes error.message, "db"
    end
    assert_wrong(/option sslmode: expected sslmode=value/) { options("postgres://db?sslmode") }
  end

  def test_a_password_that_is_not_encoded_is_not_shown
    ["hu/sh", "hu?sh", "hu@sh", "hu:sh", "hu#sh", "hu%sh", "hu[sh", "hu&sh", "12/sh", "12?sh", "12?sh&x=1"].each do |password|
      ["db/shop", "db", "one,two/shop"].each do |rest|
        shown = begin
          options("postgres://me:#{password}@#{rest}").inspect
        rescue Ringspun::UsageError => error
          error.message
        end
        refute_match(/hu|sh(?!op)|12/, shown)
      end
    end
  end

  # --- keywords ---

  def test_keywords
    options = options(nil, host: %w[one /sockets], port: [1, 2], dbname: :shop, user: "me", connect_timeout: 0,
                           allow_cleartext: true)
    assert_equal %w[one:1 /sockets/.s.PGSQL.2], places(options)
    assert_equal "shop", options.database
    assert_nil options.connect_timeout
    assert_predicate options, :allow_cleartext?
  end

  def test_what_counts_of_several
    File.write("#{@home}/.pg_service.conf", "[shop]\nhost=of-service\nport=2\ndbname=of-service\n")
    env("PGHOST" => "of-env", "PGPORT" => "1", "PGDATABASE" => "of-env", "PGAPPNAME" => "of-env", "PGSERVICE" => "shop")
    options = options("postgres:///of-uri?host=of-uri", host: "keyword")
    assert_equal %w[keyword:2], places(options)
    assert_equal %w[of-uri of-env], [options.database, options["application_name"]]
  end

  def test_an_option_that_is_nil_or_empty_is_as_if_left_out
    env("PGHOST" => "of-env")
    assert_equal %w[of-env:5432], places(options(nil, host: nil, port: ""))
  end

  def test_an_unknown_option
    assert_wrong(/there is no option hots, did you mean host\?\z/) { options(nil, hots: "db") }
    assert_wrong(/there is no option zzz; there are host, hostaddr, .*servicefile\z/) { options("postgres://db?zzz=1") }
    message = /lanes is an option of Pool.new, and is given there, or as pool_lanes in the URI\z/
    assert_wrong(message) { options("postgres://db?lanes=1") }
    assert_wrong(/there is no option lane, did you mean lanes\?/) { options(nil, lane: 1) }
    assert_wrong(/option sslkeylogfile is not supported/) { options(nil, sslkeylogfile: "keys") }
  end

  def test_a_wrong_value
    { sslmode: "on", sslnegotiation: "indirect", target_session_attrs: "slave", channel_binding: "yes",
      min_protocol_version: "2.0", max_protocol_version: "3.1", sslcertmode: "require", sslsni: "0", sslcompression: "zlib",
      load_balance_hosts: "yes", connect_timeout: "soon", client_encoding: "LATIN1", gssencmode: "require", keepalives: "maybe",
      keepalives_idle: "-1", keepalives_count: "1_0", port: "65536", hostaddr: "db", require_auth: "md5,!password",
      allow_cleartext: "maybe",
      ssl_min_protocol_version: "TLSv1", user: "me\0database\0template1", host: { a: 1 }, dbname: %w[a b] }.each do |name, value|
      assert_wrong(/\A#{name}: expected .*, got /) { options(nil, name => value) }
    end
  end

  def test_a_wrong_secret_is_not_shown
    [{ password: "hush\0" }, { password: ["hush"] }, { sslpassword: "hush\xff" }].each do |keywords|
      refute_includes assert_wrong(/\A(ssl)?password: expected/) { options(nil, **keywords) }.message, "hush"
    end
  end

  def test_a_password_is_never_shown
    options = options("postgres://me:hush@db/", sslpassword: "hush")
    [options.inspect, options.to_s, PP.pp(options, +"")].each do |text|
      assert_includes text, "db:5432 user=me dbname=me sslmode=prefer"
      refute_includes text, "hush"
    end
  end

  # --- what libpq has by its variables ---

  def test_variables
    { "PGSSLCERTMODE" => "sslcertmode", "PGMAXPROTOCOLVERSION" => "max_protocol_version", "PGGSSENCMODE" => "gssencmode",
      "PGSSLSNI" => "sslsni" }.each do |variable, name|
      error = assert_wrong(/\A#{name}: expected/) { OPTIONS.new("postgres://db", env: @env.merge(variable => "nonsense")) }
      refute_includes error.message, "no option"
    end
  end

  def test_tls_as_it_was_asked_for_of_old
    env("PGREQUIRESSL" => "1")
    assert_equal "require", options("postgres://db").encryption.mode
    assert_equal "disable", options("postgres://db?sslmode=disable").encryption.mode
    env("PGREQUIRESSL" => "0")
    assert_equal "prefer", options("postgres://db").encryption.mode
  end

  def test_settings_that_each_session_begins_with
    assert_empty options("postgres://db").session_settings
    env("PGDATESTYLE" => "German, DMY", "PGTZ" => "Asia/Tokyo", "PGGEQO" => "off")
    assert_equal({ "DateStyle" => "ISO, DMY", "TimeZone" => "Asia/Tokyo", "geqo" => "off" },
                 options("postgres://db").session_settings)
    env("PGDATESTYLE" => "SQL", "PGTZ" => "default", "PGGEQO" => "")
    assert_empty options("postgres://db").session_settings
  end

  def test_versions_of_the_protocol
    { {} => [0x30000, 0x30000], { max_protocol_version: "3.2" } => [0x30000, 0x30002],
      { min_protocol_version: "3.2", max_protocol_version: "latest" } => [0x30002, 0x30002] }.each do |keywords, versions|
      assert_equal versions, options(nil, **keywords).then { |options| [options.min_version, options.max_version] }
    end
    assert_wrong(/min_protocol_version: expected no more than max_protocol_version, which is 3.0 unless told, got 3.2/) do
      options(nil, min_protocol_version: "3.2")
    end
  end

  # --- hosts ---

  def test_lists_of_unlike_length
    assert_wrong(/port: expected as many as there are hosts \(2\), got 3/) { options(nil, host: "a,b", port: "1,2,3") }
    assert_wrong(/hostaddr: expected as many as there are hosts \(1\), got 2/) { options(nil, host: "a", hostaddr: "::1,::2") }
  end

  def test_addresses_in_place_of_names
    hosts = options(nil, host: "one,", hostaddr: "10.0.0.1,fe80::1%eth0").hosts
    assert_equal [["one", "10.0.0.1"], ["fe80::1%eth0"] * 2], hosts.map { |host| [host.name, host.address] }
    assert_equal %w[10.0.0.1:5432], places(options(nil, hostaddr: "10.0.0.1"))
  end

  def test_sockets_that_are_no_files
    host = options(nil, host: "@here").hosts.first
    assert_equal ["\0here/.s.PGSQL.5432", "@here/.s.PGSQL.5432"], [host.path, host.to_s]
    assert_wrong(/host: the path of the socket may have 107 bytes/) { options(nil, host: "/#{"a" * 100}") }
  end

  # --- passwords ---

  def test_a_password_of_the_file
    passwords(<<~'FILE')
      # db:5432:shop:me:no
      other:*:*:*:no
      db:5433:*:*:no
      db:5432:shop:m\:e:o\\f:file
      *:*:*:me:any
      localhost:*:*:*:socket
    FILE
    assert_equal 'o\f:file', password("postgres://m%3Ae@db/shop")
    assert_equal "any", password("postgres://me@db/shop")
    assert_nil password("postgres://you@db/shop")
    assert_equal "socket", password("postgres://you@%2Ftmp/shop")
    assert_nil password("postgres://you@%2Fsockets/shop")
    assert_equal "given", password("postgres://me:given@db/shop")
    assert_equal "of env", password("postgres://me@db/shop", "PGPASSWORD" => "of env")
  end

  def test_another_file_of_passwords
    File.write("#{@home}/other", "*:*:*:*:other\r\n", perm: 0o600)
    assert_equal "other", password("postgres://me@db/shop", "PGPASSFILE" => "#{@home}/other")
    assert_equal "other", password("postgres://me@db/shop?passfile=#{@home}/other")
  end

  def test_a_file_of_passwords_that_others_can_read
    passwords("*:*:*:*:any", 0o640)
    _, said = capture_io { assert_nil password("postgres://me@db/shop") }
    assert_match(/pgpass is not used.*chmod 0600/, said)
  end

  # --- services ---

  def test_a_service
    File.write("#{@home}/.pg_service.conf", <<~FILE)
      # of the user
      [other]
      host=other
      [shop]
      host = db
      password=a=b
      [next]
      host=next
    FILE
    File.write("#{@home}/pg_service.conf", "[system]\nhost=system\n")
    assert_equal %w[db:5432], places(options(nil, service: "shop"))
    assert_equal "a=b", options("postgres://?service=shop")["password"]
    assert_equal %w[system:5432], places(options(nil, service: "system"))
  end

  def test_a_service_that_is_wrong
    assert_wrong(/service: there is no \[shop\] in any file/) { options(nil, service: "shop") }
    assert_wrong(/servicefile: .*nowhere is not there/) { options(nil, service: "shop", servicefile: "#{@home}/nowhere") }
    { "hots=db" => /the service shop: there is no option hots, did you mean host/, "host" => /conf:2: expected option=value/,
      "service=shop" => /conf:2: a service cannot name a service/ }.each do |line, message|
      File.write("#{@home}/.pg_service.conf", "[shop]\n#{line}\n")
      assert_wrong(message) { options(nil, service: "shop") }
    end
  end

  # --- TLS ---

  def test_what_is_tried
    { "disable" => [false], "allow" => [false, true], "prefer" => [true, false], "require" => [true] }.each do |sslmode, attempts|
      options = options(nil, host: "db,/sockets", sslmode:)
      assert_equal [attempts, [false]], options.hosts.map { |host| options.encryption.attempts(host) }
    end
  end

  def test_whom_to_trust
    assert_wrong(/sslrootcert: .*root.crt is not there, and sslmode=verify-ca/) { options(nil, sslmode: "verify-ca") }
    assert_wrong(/sslrootcert: system goes with sslmode verify-full/) { options(nil, sslrootcert: "system", sslmode: "require") }
    assert_equal "verify-full", options(nil, sslrootcert: "system").encryption.mode
    refute_predicate context, :verify_hostname

    FileUtils.mkdir("#{@home}/.postgresql")
    File.write("#{@home}/.postgresql/root.crt", Certificate.certificate.to_pem)
    assert_equal [OpenSSL::SSL::VERIFY_PEER, false], [context.verify_mode, context.verify_hostname]
    assert_equal [OpenSSL::SSL::VERIFY_PEER, true], context(sslmode: "verify-full").then { |one| [one.verify_mode, one.verify_hostname] }
    File.write("#{@home}/.postgresql/root.crt", "nothing")
    assert_wrong(/sslrootcert: .*root.crt cannot be read/) { context }
  end

  def test_a_certificate_of_our_own
    Dir.mkdir("#{@home}/.postgresql")
    File.write("#{@home}/.postgresql/postgresql.crt", Certificate.certificate.to_pem)
    assert_wrong(/sslkey: there is none for the certificate/) { context }
    File.write("#{@home}/.postgresql/postgresql.key", Certificate.key.to_pem, perm: 0o644)
    assert_wrong(/sslkey: others may read/) { context }
    File.chmod(0o600, "#{@home}/.postgresql/postgresql.key")
    context
    File.write("#{@home}/locked", Certificate.key.private_to_pem(OpenSSL::Cipher.new("aes-128-cbc"), "hush"), perm: 0o600)
    context(sslkey: "#{@home}/locked", sslpassword: "hush")
    assert_wrong(/sslkey: .*locked cannot be read/) { context(sslkey: "#{@home}/locked", sslpassword: "no") }
    assert_wrong(/sslcert: nowhere.crt cannot be read \(No such file or directory/) { context(sslcert: "nowhere.crt") }
  end

  def test_a_certificate_that_is_not_shown
    context = context(sslcert: "nowhere.crt", sslcertmode: "disable")
    assert_nil context.cert
  end

  def test_what_is_revoked_is_only_known_of_whom_somebody_trusts
    assert_wrong(/sslcrl: goes with sslrootcert/) { options(nil, sslcrl: "root.crl") }
    File.write("#{@home}/root.crt", Certificate.certificate.to_pem)
    assert_wrong(/sslcrldir: .*nowhere is no folder/) { options(nil, sslrootcert: "#{@home}/root.crt", sslcrldir: "nowhere") }
    assert_wrong(/sslcrl: nowhere cannot be read/) { context(sslrootcert: "#{@home}/root.crt", sslcrl: "nowhere") }
  end

  def test_what_does_not_go_with_each_other
    assert_wrong(/sslnegotiation: direct goes with/) { options(nil, sslnegotiation: "direct") }
    versions = { ssl_min_protocol_version: "TLSv1.3", ssl_max_protocol_version: "TLSv1.2" }
    assert_wrong(/ssl_max_protocol_version/) { options(nil, **versions) }
  end

  private

  def options(source, **) = OPTIONS.new(source, env: @env, **)
  def env(variables) = @env.update(variables)
  def places(options) = options.hosts.map(&:to_s)
  def context(**) = options(nil, host: "db", **).encryption.context

  def password(source, variables = {})
    options = OPTIONS.new(source, env: @env.merge(variables))
    options.password(options.hosts.first)
  end

  def passwords(text, perm = 0o600) = File.write("#{@home}/.pgpass", text, perm:)

  def assert_wrong(message, &)
    error = assert_raises(Ringspun::UsageError, &)
    assert_match message, error.message
    error
  end
end
