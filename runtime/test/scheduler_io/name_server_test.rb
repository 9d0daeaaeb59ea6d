# frozen_string_literal: true

require "test_helper"
require "rbconfig"
require "tmpdir"

# Name look-ups by the C library and a name server that does not answer, in a network of the tests' own.
class NameServerTest < Minitest::Test
  SERVER = File.expand_path("name_server", __dir__)

  # For longer than the tests last.
  RESOLVER = "nameserver 127.0.0.1\noptions timeout:30 attempts:1\n"
  ORDER = "hosts: files dns\n"

  OWN_NETWORK = ["unshare", *("--map-root-user" unless Process.uid.zero?), "--net", "--mount"].freeze
  SET_UP = <<~'SH'
    ip link set lo up
    mount --bind "$1" /etc/resolv.conf
    test ! -e /etc/nsswitch.conf || mount --bind "$2" /etc/nsswitch.conf
    shift 2
    exec "$@"
  SH

  PRELUDE = <<~RUBY
    $stdout.sync = true
    require "ringspun"
    require #{SERVER.inspect}
    server = NameServer.new
    def look_up(name) = Addrinfo.getaddrinfo(name, 80, nil, :STREAM).map(&:ip_address)
  RUBY

  def setup
    GC.stress = false # what runs here runs in other processes
    allowed = system(*OWN_NETWORK, "ip", "link", "set", "lo", "up", %i[out err] => IO::NULL)
    skip "no network of its own is allowed here" unless allowed
  end

  def assert_with_names(expected, code)
    Dir.mktmpdir do |folder|
      files = { "resolv.conf" => RESOLVER, "nsswitch.conf" => ORDER }.map do |name, text|
        File.join(folder, name).tap { |path| File.write(path, text) }
      end
      command = [*OWN_NETWORK, "sh", "-ec", SET_UP, "sh", *files, RbConfig.ruby, *Zygote::OPTIONS, "-e", PRELUDE + code]
      answer = ruby_child("exec(*ARGV)", *command)
      assert_equal [expected, ""], [answer.out, answer.err]
      assert_predicate answer.status, :success?
    end
  end

  # A zone that is never answered has half of the threads, by which others are looked up.
  def test_a_name_beside_a_hundred_that_are_never_answered
    assert_with_names <<~TEXT, <<~'RUBY'
      ["127.0.0.1"]
      connected by Ringspun
      connected by Ruby
      100 wait, 68 of them for a thread
      given up: Ringspun::TerminatedError 100
      ["127.0.0.1"]
    TEXT
      Socket.tcp_fast_fallback = false if Socket.respond_to?(:tcp_fast_fallback=)
      listener = TCPServer.new("127.0.0.1", 0)
      port = listener.addr[1]
      Ringspun.run do |machine|
        dead = Array.new(100) { |number| machine.spin { look_up("n#{number}.dead.test") } }
        server.await_asked(32, "dead.test")
        p look_up("good.example.test")
        Ringspun.connect_tcp("good.example.test", port) { puts "connected by Ringspun" }
        TCPSocket.open("good.example.test", port) { puts "connected by Ruby" }
        puts "#{dead.count { |strand| strand.state == :parked }} wait, #{machine.metrics[:look_ups_waiting]} of them for a thread"
        dead.each { |strand| machine.terminate(strand) }
        errors = dead.map { |strand| strand.join && nil rescue $!.class }
        puts "given up: #{errors.tally.flatten.join(" ")}"
        p look_up("good.example.test")
      end
    RUBY
  end

  def test_names_that_are_answered_late_wait_together
    assert_with_names "all are asked for\n{[\"127.0.0.1\"]=>20}\n", <<~'RUBY'
      Ringspun.run do |machine|
        strands = Array.new(20) { |number| machine.spin { look_up("n#{number}.late.test") } }
        server.await_asked(20, "late.test")
        puts "all are asked for"
        server.let_go
        puts strands.map(&:await).tally.inspect.gsub(" => ", "=>")
      end
    RUBY
  end
end
