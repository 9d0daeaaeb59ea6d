# frozen_string_literal: true

require_relative "hook_case"

# Name look-ups: by getaddrinfo(3), on another thread.
class SchedulerNamesTest < HookCase
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
          refute_empty look_up.call
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

  def test_an_unknown_host
    error = defined?(Socket::ResolutionError) ? Socket::ResolutionError : SocketError
    Ringspun.run do
      assert_raises(error) { Addrinfo.getaddrinfo("no-such-host.invalid", 80) }
      assert_raises(error) { TCPSocket.new("no-such-host.invalid", 80) }
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
