# frozen_string_literal: true

require "test_helper"
require "support/preloaded"
require "support/signals"

# Name look-ups, by a resolver whose answers the tests know: it stands before the C library's in processes of their own.
class SchedulerResolverTest < Minitest::Test
  include Signals

  SOURCE = File.expand_path("resolver.c", __dir__)

  def setup = GC.stress = false # what runs here runs in other processes

  def env = Preloaded.env(SOURCE)

  def assert_looked_up(expected, code) = assert_child(expected, "require 'socket'\n#{code}", env:)

  def test_every_look_up_asks_the_resolver
    assert_looked_up "192.0.2.1\n192.0.2.2\n192.0.2.3\n192.0.2.4 192.0.2.5\n", <<~'RUBY'
      Ringspun.run do
        2.times { puts Addrinfo.getaddrinfo("one.ringspun.test", 80, nil, :STREAM).map(&:ip_address) }
        puts Fiber.scheduler.address_resolve("one.ringspun.test")
        strands = Array.new(2) { machine.spin { Addrinfo.tcp("one.ringspun.test", 80).ip_address } }
        puts strands.map(&:await).sort.join(" ")
      end
    RUBY
  end

  def test_the_order_is_the_resolver_s
    assert_looked_up "192.0.2.9 2001:db8::7 192.0.2.1 192.0.2.200 2001:db8::1\n" * 2, <<~'RUBY'
      Ringspun.run do
        puts Fiber.scheduler.address_resolve("many.ringspun.test").join(" ")
        puts Addrinfo.getaddrinfo("many.ringspun.test", 80, nil, :STREAM).map(&:ip_address).join(" ")
      end
    RUBY
  end

  # Every method that takes a name, each printing what it has made of both addresses.
  METHODS = {
    "Addrinfo.getaddrinfo(NAME, 80, :AF_INET, :STREAM)" => ["1.2.3.4 80 INET STREAM"],
    "Addrinfo.getaddrinfo(NAME, 80, :AF_INET6, :STREAM)" => ["1234::1 80 INET6 STREAM"],
    "Addrinfo.getaddrinfo(NAME, 80, :PF_UNSPEC, :STREAM)" => ["1.2.3.4 80 INET STREAM", "1234::1 80 INET6 STREAM"],
    "Addrinfo.getaddrinfo(NAME, 80)" =>
      ["1.2.3.4 80 INET", "1234::1 80 INET6"].product(%w[STREAM DGRAM RAW]).map { |words| words.join(" ") },
    "Addrinfo.ip(NAME)" => ["1.2.3.4 0 INET 0"],
    "Addrinfo.tcp(NAME, 80)" => ["1.2.3.4 80 INET STREAM"],
    "Addrinfo.udp(NAME, 80)" => ["1.2.3.4 80 INET DGRAM"],
    "IPSocket.getaddress(NAME)" => ["1.2.3.4"],
    "Socket.getaddrinfo(NAME, 80, nil, :STREAM).map { |answer| answer[3] }" => ["1.2.3.4", "1234::1"],
    "Socket.getnameinfo(['AF_INET', 80, NAME], Socket::NI_NUMERICSERV | Socket::NI_NUMERICHOST)" => %w[1.2.3.4 80],
    "Socket.unpack_sockaddr_in(Socket.sockaddr_in(80, NAME)).reverse" => %w[1.2.3.4 80]
  }.freeze

  def test_all_methods_that_take_a_name
    calls = METHODS.keys.map { |call| "-> { #{call} }" }.join(", ")
    assert_looked_up "#{METHODS.values.flatten.join("\n")}\n", <<~'RUBY'.sub("METHODS", calls)
      NAME = "both.ringspun.test"

      def name_of(prefix, number) = Socket.constants.grep(/\A#{prefix}_/).find { |name| Socket.const_get(name) == number }&.[](/_(.*)/, 1)

      def text_of(answer)
        return answer unless answer.is_a?(Addrinfo)

        [*answer.ip_unpack, name_of("AF", answer.afamily), name_of("SOCK", answer.socktype) || 0].join(" ")
      end

      Ringspun.run do
        [METHODS].each do |look_up|
          before = machine.metrics[:ops_offloaded]
          puts [*look_up.call].map { |answer| text_of(answer) }
          abort "#{look_up} has not waited" if machine.metrics[:ops_offloaded] == before
        end
      end
    RUBY
  end

  # The resolver answers when another strand of the thread has written to it.
  def test_others_go_on_while_the_resolver_does_not_answer
    assert_looked_up "meanwhile\n[\"192.0.2.1\", \"192.0.2.2\"]\n", <<~'RUBY'
      reader, writer = IO.pipe
      ENV["HELD_BY"] = reader.fileno.to_s
      Ringspun.run do
        strands = [-> { IPSocket.getaddress("held.ringspun.test") },
                   -> { Socket.getaddrinfo("held.ringspun.test", 80, nil, :STREAM).first[3] }].map { |look_up| machine.spin(&look_up) }
        machine.yield until strands.all? { |strand| strand.state == :parked }
        puts "meanwhile"
        writer.write("x")
        p strands.map(&:await).sort
      end
    RUBY
  end

  # On Ruby 3.4 it tells no scheduler unless it is to try one address after the other.
  def test_others_go_on_while_a_socket_is_opened_by_name
    assert_looked_up "meanwhile\nconnected\n", <<~'RUBY'
      Socket.tcp_fast_fallback = false if Socket.respond_to?(:tcp_fast_fallback=)
      reader, writer = IO.pipe
      ENV["HELD_BY"] = reader.fileno.to_s
      server = TCPServer.new("127.0.0.1", 0)
      Ringspun.run do
        strand = machine.spin { TCPSocket.open("held.local.ringspun.test", server.addr[1]) { puts "connected" } }
        machine.yield until strand.state == :parked
        puts "meanwhile"
        writer.write("x")
        strand.join
      end
    RUBY
  end

  # The thread that waits for the resolver cannot be called back, and nobody waits for it.
  def test_ctrl_c_while_the_resolver_does_not_answer
    assert_equal %w[strand block], ended_by("INT", <<~'RUBY', env:)
      require "socket"
      reader, writer = IO.pipe # the other end as well: one that is collected lets the resolver go on
      ENV["HELD_BY"] = reader.fileno.to_s
      Ringspun.run do
        Fiber.schedule do
          Addrinfo.tcp("held.ringspun.test", 80)
          puts "never"
        ensure
          puts "strand"
        end
        kill_when_asleep("INT")
        sleep
      ensure
        puts "block"
      end
      puts "never"
    RUBY
  end
end
