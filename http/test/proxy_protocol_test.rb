# frozen_string_literal: true

require "http_helper"
require "support/plain_proxy"
require "support/random_proxy"
require "support/certificate"
require "support/seeds"

# What a proxy tells of its client.
class HTTPProxyProtocolTest < Minitest::Test
  include OnServer

  SEEDS = Seeds.of_the_day(400)
  SIGNATURE = "\r\n\r\n\0\r\nQUIT\n".b
  SEEN = %w[REMOTE_ADDR SERVER_NAME SERVER_PORT rack.url_scheme].freeze
  TELL = ->(env) { [200, { "content-type" => "text/plain" }, [env.values_at(*SEEN).join(" ")]] }

  def header(bytes, family: 0x11, kind: 0x21) = SIGNATURE + [kind, family, bytes.bytesize].pack("CCn") + bytes

  # What the program sees of a client that sends this first, or nil where it is told nothing.
  def seen(first, peers: "127.0.0.1", **)
    serving(TELL, proxy_protocol: peers, **) do |connect|
      client = connect.call
      client.send(first, "GET / HTTP/1.0\r\n\r\n")
      client.answer&.then { |answer| answer.status == 200 ? answer.body : answer.status }
    rescue Errno::ECONNRESET, Errno::EPIPE
      nil
    end
  end

  def test_both_versions
    tls = "\x20\0\5\1\0\0\0\0".b
    six = "#{"\0" * 15}\1#{"\0" * 15}\2\0\1\0\2".b
    four = [1, 2, 3, 4, 5, 6, 7, 8, 5000, 443].pack("C8n2")
    { "PROXY TCP4 1.2.3.4 5.6.7.8 5000 80\r\n" => "1.2.3.4 5.6.7.8 80 http",
      "PROXY TCP6 2001:db8::1 ::2 5000 81\r\n" => "2001:db8::1 [::2] 81 http",
      header(four) => "1.2.3.4 5.6.7.8 443 http", header(four + tls) => "1.2.3.4 5.6.7.8 443 https",
      header("#{six}\4\0\1x#{tls}".b, family: 0x21) => "::1 [::2] 2 https" }
      .each { |first, expected| assert_equal expected, seen(first), first.inspect }
  end

  # A proxy that speaks for itself, as when it asks whether we are well.
  def test_what_is_no_client
    port = nil
    ["PROXY UNKNOWN\r\n", "PROXY UNKNOWN ffff::1 any thing\r\n", header("", kind: 0x20), header("x" * 216, family: 0x31),
     header("", family: 0)].each do |first|
      serving(TELL, proxy_protocol: "127.0.0.0/8") do |connect, server|
        port = server.port
        client = connect.call
        client.send(first, "GET / HTTP/1.0\r\n\r\n")
        assert_equal "127.0.0.1 127.0.0.1 #{port} http", client.answer.body
      end
    end
  end

  def test_what_cannot_be_read_ends_the_connection_and_is_told_once
    { "GET / HTTP/1.0\r\n\r\n" => "something else than a PROXY header",
      "PROXY TCP4 1.2.3.4 5.6.7.8 1\r\n" => "that cannot be read",
      "PROXY UNKNOWN #{"x" * 100}" => "no end of a PROXY header in 107 bytes", header("", kind: 0x31) => "the version 3",
      header("", kind: 0x22) => "the command 2", header("", family: 0x44) => "the family 0x44",
      header("123") => "3 bytes of addresses, where 12 belong", header("x" * 13) => "a field without its end",
      header("x" * 5000) => "a PROXY header of 5000 bytes; 4096 are read" }.each do |first, message|
      assert_nil seen(first), first.inspect
      assert_includes @errors.string, "ringspun-http: the proxy 127.0.0.1 has sent"
      assert_includes @errors.string, message
    end
  end

  # Its client would otherwise say itself where it comes from.
  def test_a_second_header_is_a_wrong_request
    assert_equal 400, seen("PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n" * 2)
  end

  def test_only_of_peers_that_are_named
    assert_equal 400, seen("PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n", peers: ["10.0.0.0/8", "unix"])
    assert_equal "127.0.0.1", seen("", peers: ["10.0.0.0/8"])[/\S+/]
    error = assert_raises(Ringspun::UsageError) { seen("", peers: ["10.0.0.0/8", "proxy.example"]) }
    assert_match(/takes addresses, networks such as 10.0.0.0\/8, and "unix", got "proxy.example"/, error.message)
  end

  def test_one_that_does_not_come_in_time
    serving(TELL, proxy_protocol: "127.0.0.1", limits: { head: 0.01 }) do |connect| # must pass
      client = connect.call
      client.send("PROXY TCP4 1")
      assert_predicate client, :ended?
      assert_match(/the proxy 127.0.0.1 has not sent all of a PROXY header in 0.01 s/, @errors.string)
    end
  end

  # As balancers look whether somebody listens.
  def test_one_that_sends_nothing_is_told_nothing
    serving(TELL, proxy_protocol: "127.0.0.1") do |connect|
      client = connect.call
      client.close_write
      assert_predicate client, :ended?
      assert_empty @errors.string
    end
  end

  # It comes before TLS, whose bytes may come with it.
  def test_before_tls
    tls = { cert: Certificate.certificate, key: Certificate.key }
    serving(TELL, proxy_protocol: "127.0.0.1", tls:) do |_connect, server|
      ["PROXY TCP4 1.2.3.4 5.6.7.8 1 443\r\n", header([1, 2, 3, 4, 5, 6, 7, 8, 1, 443].pack("C8n2"))].each do |first|
        Ringspun.connect_tcp("127.0.0.1", server.port) do |stream|
          stream.write(first)
          stream.start_tls({ ca: Certificate.certificate }, host: "localhost")
          stream.write("GET / HTTP/1.0\r\n\r\n")
          assert_match(/^1\.2\.3\.4 5\.6\.7\.8 443 https\z/, stream.read)
        end
      end
    end
  end

  # Each is taken in pieces of another size, and nothing of what follows it.
  def test_random_headers_beside_a_second_opinion
    protocol = HTTP.const_get(:ProxyProtocol).of("unix", StringIO.new, seconds: 30)
    taken = Ringspun.run { SEEDS.count { |seed| taken?(protocol, seed) } }
    assert_operator taken, :>=, SEEDS.size / 4 if SEEDS.size > 100
    assert_operator taken, :<=, SEEDS.size * 9 / 10 if SEEDS.size > 100
  end

  private

  def taken?(protocol, seed)
    bytes = RandomProxy.new(seed).bytes
    said = "RINGSPUN_SEED=#{seed}: #{bytes.inspect}"
    env, left = read_in_pieces(protocol, bytes, 1 + (seed % 40))
    opinion = PlainProxy.read(bytes)
    assert_equal !opinion.nil?, !env.nil?, said
    return false unless opinion

    assert_equal opinion.facts || {}, env, said
    assert_equal bytes.byteslice(opinion.length..), left, said
    true
  end

  # One that writes what is refused waits for room.
  def end_of(strand)
    strand.terminate
    strand.join
  rescue Ringspun::TerminatedError
    nil
  end

  # @return [Array(Hash, String)] what was read, and what was left
  def read_in_pieces(protocol, bytes, size)
    UNIXSocket.pair do |ours, theirs|
      strand = Ringspun.spin do
        bytes.scan(/.{1,#{size}}/mn) { |piece| theirs.write(piece) }
        theirs.close_write
      rescue Errno::EPIPE # it was refused
        nil
      end
      stream = Ringspun::Stream.new(ours)
      env = protocol.read(stream)
      [env, env && stream.read]
    ensure
      stream&.close
      end_of(strand)
    end
  end
end
