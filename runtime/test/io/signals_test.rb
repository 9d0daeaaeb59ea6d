# frozen_string_literal: true

require_relative "io_case"
require "support/keeper"

# Ringspun.signals: signals that come to strands.
class SignalsTest < IOCase
  def test_they_come_in_order
    on_machine do
      signals = Ringspun.signals(:USR1, "SIGUSR2", Signal.list["HUP"])
      %i[USR1 HUP USR2].each do |name|
        strand = waiting(/read/) { signals.next_signal }
        send_signal(name)
        assert_equal name, strand.await
      end
      signals.close
    end
  end

  def test_each_one_counts
    on_machine do
      signals = Ringspun.signals(:USR1)
      5.times { send_signal(:USR1) }
      assert_equal [:USR1] * 5, Array.new(5) { signals.next_signal }
      assert_raises(Ringspun::TimeoutError) { signals.next_signal(timeout: 0.01) }
      signals.close
    end
  end

  def test_the_block_breaks_and_what_was_there_is_there_again
    seen = []
    before = trap("USR1") { seen << :before }
    on_machine do
      strand = waiting(/read/) { Ringspun.signals(:USR1) { |name| break [name] } }
      send_signal(:USR1)
      assert_equal [:USR1], strand.await
      send_signal(:USR1)
      assert_equal [:before], seen
    end
  ensure
    trap("USR1", before)
  end

  def test_a_cancelled_wait_has_lost_none
    on_machine do |machine|
      signals = Ringspun.signals(:USR1)
      strand = waiting(/read/) { signals.next_signal }
      machine.terminate(strand)
      send_signal(:USR1)
      assert_equal :USR1, error_of { strand.join } ? signals.next_signal : strand.await
      signals.close
    end
  end

  # Which is no exception.
  def test_a_fiber_that_is_killed_as_it_begins_to_wait_for_them
    Ringspun::Signals.define_singleton_method(:trap) { |name, handler| super(name, handler).tap { Fiber.current.kill } }
    before = trap("USR1") { nil }
    on_machine do
      fiber = Fiber.schedule { Ringspun.signals(:USR1) }
      refute_predicate fiber, :alive?
    end
  ensure
    Ringspun::Signals.singleton_class.remove_method(:trap)
    trap("USR1", before)
  end

  # The handler would stay for good.
  def test_a_cancelled_strand_that_closes_them_while_a_thread_has_the_lock
    mine = proc {}
    before = trap("USR1", mine)
    on_machine do |machine|
      machine.scope do |scope|
        signals = Ringspun.signals(:USR1)
        scope.cancel
        Keeper.hold(Ringspun::Signals)
      ensure
        signals.close
      end
    end
    assert_same mine, trap("USR1", before || "DEFAULT")
  end

  def test_several_get_the_same
    default = trap("USR1", "DEFAULT").tap { |before| trap("USR1", before) }
    on_machine do
      one, other = Array.new(2) { Ringspun.signals(:USR1) }
      send_signal(:USR1)
      assert_equal %i[USR1 USR1], [one, other].map(&:next_signal)
      one.close
      send_signal(:USR1)
      assert_equal :USR1, other.next_signal
      other.close
    end
    assert_equal default, trap("USR1", default || "DEFAULT")
  end

  def test_a_handler_that_the_program_has_put_there_since_stays
    mine = proc {}
    on_machine do
      signals = Ringspun.signals(:USR2)
      trap("USR2", mine)
      signals.close
    end
    assert_same mine, trap("USR2", "DEFAULT")
  end

  # It does not cancel the run, and afterwards it does again.
  def test_those_that_end_a_run
    answer = ruby_child(<<~RUBY)
      require "ringspun"
      Ringspun.run do |machine|
        strand = machine.spin { Ringspun.signals(:TERM) { |name| break name } }
        machine.yield
        Process.kill(:TERM, Process.pid)
        puts strand.await
        begin
          Process.kill(:TERM, Process.pid)
          machine.sleep(1000)
        ensure
          puts "cancelled"
        end
      end
    RUBY
    assert_equal "TERM\ncancelled\n", answer.out
    assert_equal Signal.list["TERM"], answer.status.termsig
  end

  def test_several_strands_wait
    on_machine do |machine|
      signals = Ringspun.signals(:USR1, :USR2)
      strands = [waiting(/read/) { signals.next_signal }, waiting(/mutex/i) { signals.next_signal }]
      %i[USR1 USR2].each { |name| send_signal(name) }
      assert_equal %i[USR1 USR2], machine.await(*strands).sort
      signals.close
    end
  end

  def test_closed_while_several_wait
    on_machine do
      signals = Ringspun.signals(:USR1)
      strands = [waiting(/read/) { signals.next_signal }, waiting(/mutex/i) { signals.next_signal }]
      signals.close
      strands.each { |strand| assert_raises(Ringspun::ClosedError) { strand.await } }
    end
  end

  def test_closed_meanwhile
    on_machine do
      signals = Ringspun.signals(:USR1)
      strand = waiting(/read/) { signals.next_signal }
      signals.close
      assert_raises(Ringspun::ClosedError) { strand.await }
      assert_raises(Ringspun::ClosedError) { signals.next_signal }
      assert_nil signals.close
      assert_match(/closed/, signals.inspect)
    end
  end

  # Who waits has stayed behind, so there the signal does what it did before.
  def test_a_forked_child
    on_machine do |machine|
      signals = Ringspun.signals(:USR1)
      pid = fork do
        exit!(1) unless signals.closed?
        Process.kill(:USR1, Process.pid)
        sleep
      end
      assert_equal Signal.list["USR1"], machine.waitid(pid).termsig
      send_signal(:USR1)
      assert_equal :USR1, signals.next_signal
      signals.close
    end
  end

  def test_a_machine_on_another_thread
    reader, writer = IO.pipe
    thread = Thread.new do
      Ringspun.run do
        signals = Ringspun.signals(:USR1)
        writer.write("!")
        signals.next_signal.tap { signals.close }
      end
    ensure
      Ringspun::Machine.current.close
    end
    reader.read(1)
    send_signal(:USR1)
    assert_equal :USR1, thread.value
    [reader, writer].each(&:close)
  end

  def test_bad_input
    on_machine do
      [:KILL, :STOP, :VTALRM, "SIGSEGV", :EXIT, 0, :NONE, nil, 1000, -1, 2**70].each do |name|
        assert_raises(Ringspun::UsageError, name.inspect) { Ringspun.signals(name) { flunk } }
      end
      assert_raises(Ringspun::UsageError) { Ringspun.signals { flunk } }
      assert_raises(Ringspun::UsageError) { Ringspun.signals(:USR1, :KILL) }
      assert_equal "DEFAULT", trap("USR1", "DEFAULT")
    end
  end

  private

  # Its handler has run when this returns.
  def send_signal(name) = Process.kill(name, Process.pid)
end

class SimulatedSignalsTest < IOCase
  include Simulated

  def test_there_are_none
    on_machine(faults: false) { assert_raises(Ringspun::UnsupportedError) { Ringspun.signals(:USR1) { flunk } } }
  end
end

# Processes by descriptors.
class PidfdTest < IOCase
  def test_a_child
    on_machine do |machine|
      pid = spawn("read line; exit 3", in: (reader, writer = IO.pipe).first)
      pidfd = keep(machine.pidfd_open(pid)).first
      assert_predicate IO.for_fd(pidfd, autoclose: false), :close_on_exec?
      strand = waiting(/poll/) { machine.poll(pidfd, :readable) }
      writer.puts
      assert_equal IO::READABLE, strand.await
      assert_equal 3, machine.waitid(pid).exitstatus
      assert_raises(Errno::ESRCH) { machine.pidfd_send_signal(pidfd, :TERM) }
      [reader, writer].each(&:close)
    end
  end

  def test_a_signal
    on_machine do |machine|
      [:TERM, "SIGTERM", 15].each do |signal|
        pid = spawn("sleep 1000")
        pidfd = keep(machine.pidfd_open(pid)).first
        assert_nil machine.pidfd_send_signal(pidfd, signal)
        assert_equal 15, machine.waitid(pid).termsig
      end
    end
  end

  def test_wait_process
    on_machine do |machine|
      pid = spawn("sleep 1000")
      error = assert_raises(Ringspun::TimeoutError) { Ringspun.wait_process(pid, timeout: 0.01) }
      assert_match(/#{pid} has not ended within 0.01 s/, error.message)
      strand = waiting(/poll/) { Ringspun.wait_process(pid) }
      Process.kill(:KILL, pid)
      assert_equal Signal.list["KILL"], strand.await.termsig
      assert_raises(Errno::ESRCH) { Ringspun.wait_process(pid) }
      assert_nothing_in_flight
      assert_equal 1, machine.strands.size - 1
    end
  end

  # A grandchild, which init or whoever stands in for it reaps.
  def test_a_process_of_somebody_else_s
    on_machine do
      reader, writer = IO.pipe
      child = fork do
        reader.close
        grandchild = fork { writer.close && sleep }
        writer.puts(grandchild)
        writer.close
        sleep
      end
      writer.close
      grandchild = reader.gets.to_i
      strand = waiting(/poll/) { Ringspun.wait_process(grandchild) }
      Process.kill(:KILL, grandchild)
      assert_nil strand.await
      Process.kill(:KILL, child)
      assert_equal 9, Ringspun.wait_process(child).termsig
      reader.close
    end
  end

  def test_bad_input
    on_machine do |machine|
      reader, = make_pipe
      [0, -1, nil, "1"].each { |pid| assert_raises(Ringspun::UsageError) { machine.pidfd_open(pid) } }
      assert_raises(Ringspun::UsageError) { machine.pidfd_send_signal(reader, :TERM) }
      assert_raises(Ringspun::ClosedError) { machine.pidfd_send_signal(999_999, :TERM) }
      assert_raises(Ringspun::UsageError) { machine.pidfd_send_signal(reader, :NONE) }
    end
  end
end
