# frozen_string_literal: true

require_relative "hook_case"
require "support/scheduled"

# Name look-ups: by getaddrinfo(3), on another thread.
class SchedulerNamesTest < HookCase
  include Scheduled

  ERROR = defined?(Socket::ResolutionError) ? Socket::ResolutionError : SocketError

  def test_localhost_as_without_a_scheduler
    expected = Addrinfo.getaddrinfo("localhost", 80, nil, :STREAM).map(&:ip_address)
    Ringspun.run do
      assert_equal expected, Addrinfo.getaddrinfo("localhost", 80, nil, :STREAM).map(&:ip_address)
      assert_equal expected, Fiber.scheduler.address_resolve("localhost")
    end
    assert_nothing_in_flight
  end

  def test_others_go_on
    Ringspun.run do
      turns = 0
      others = machine.spin { (turns += 1) && machine.yield while turns }
      look_ups = [-> { Addrinfo.getaddrinfo("localhost", 80) }, -> { Socket.getaddrinfo("localhost", 80) }] * 5
      strands = look_ups.map do |look_up|
        machine.spin do
          before = turns
          # One whose answer has come goes before those that have had their turn, but not always.
          looked_up = Array.new(100) { turns == before && look_up.call }
          refute_includes looked_up, []
          assert_operator turns, :>, before
        end
      end
      strands.each(&:await)
      machine.terminate(others)
      error_of { others.join }
    end
  end

  def test_numbers_need_no_look_up
    Ringspun.run do
      before = machine.metrics[:ops_offloaded]
      %w[127.0.0.1 ::1 1.2.3.4].each do |address|
        assert_equal [address], Addrinfo.getaddrinfo(address, 80, nil, :STREAM).map(&:ip_address)
      end
      assert_equal before, machine.metrics[:ops_offloaded]
      assert_equal ["127.0.0.1"], Fiber.scheduler.address_resolve("127.0.0.1")
    end
  end

  # Nor does no host, nor what CRuby has a meaning of its own for.
  def test_no_host_needs_no_look_up
    answers = {
      [nil, 80, :AF_INET, :STREAM] => ["127.0.0.1"],
      [nil, 80, :AF_INET, :STREAM, nil, Socket::AI_PASSIVE] => ["0.0.0.0"], ["", 80, :AF_INET, :STREAM] => ["0.0.0.0"],
      ["<any>", 80, :AF_INET, :STREAM] => ["0.0.0.0"], ["<broadcast>", 80, :AF_INET, :DGRAM] => ["255.255.255.255"]
    }
    Ringspun.run do
      before = machine.metrics[:ops_offloaded]
      answers.each do |arguments, addresses|
        assert_equal addresses, Addrinfo.getaddrinfo(*arguments).map(&:ip_address)
      end
      assert_equal "0.0.0.0", IPSocket.getaddress("<any>")
      TCPServer.open("", 0) { |server| assert_operator server.addr[1], :>, 0 }
      assert_equal before, machine.metrics[:ops_offloaded]
    end
  end

  # A program may know better, or say that there is none.
  def test_a_scheduler_that_says_what_a_name_means
    asked = []
    scheduler = Class.new(Ringspun::Scheduler) do
      define_method(:address_resolve) { |name| (asked << name) && (name == "mine" ? super("127.0.0.1") + ["::1"] : nil) }
    end
    in_fiber(scheduler.new) do
      assert_equal ["127.0.0.1", "::1"], Addrinfo.getaddrinfo("mine", 80, nil, :STREAM).map(&:ip_address)
      assert_raises(ERROR) { Addrinfo.getaddrinfo("localhost", 80) }
      assert_equal ["127.0.0.1"], Addrinfo.getaddrinfo("127.0.0.1", 80, nil, :STREAM).map(&:ip_address)
    end
    assert_equal %w[mine localhost], asked
  end

  def test_an_unknown_host
    Ringspun.run do
      assert_raises(ERROR) { Addrinfo.getaddrinfo("no-such-host.invalid", 80) }
      assert_raises(ERROR) { TCPSocket.new("no-such-host.invalid", 80) }
      assert_nil Fiber.scheduler.address_resolve("no-such-host.invalid")
      assert_nil Fiber.scheduler.address_resolve("x" * 5000)
      assert_raises(ArgumentError) { Fiber.scheduler.address_resolve("with\0nul") }
      assert_raises(TypeError) { Fiber.scheduler.address_resolve(nil) }
    end
    assert_nothing_in_flight
  end

  def test_given_up
    Ringspun.run do
      amount(50).times do
        strand = machine.spin { Addrinfo.getaddrinfo("localhost", 80) }
        machine.spin { machine.terminate(strand) } # runs when the first waits, which may have its answer by then
        assert_includes [NilClass, Ringspun::TerminatedError], error_of { strand.join }.class
      end
      refute_empty Addrinfo.getaddrinfo("localhost", 80)
      machine.sleep(0.001) until machine.metrics[:ops_in_flight].zero? # a worker may still be at one that was given up
    end
  end

  # When a row of calls has lasted long enough, others run before the next.
  def test_a_name_that_grows_while_others_run
    Ringspun.run do
      _, writer = pipe
      (25..40).each do |calls|
        name = +"localhost"
        strand = machine.spin do
          calls.times { writer.syswrite("x") }
          Fiber.scheduler.address_resolve(name)
        end
        machine.spin { name << (".x" * 100_000) }
        assert_includes [nil, Array], strand.await&.class
      end
    end
  end
end
