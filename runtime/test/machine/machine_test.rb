# frozen_string_literal: true

require "test_helper"
require "socket"
require "timeout"
require "support/strands"

class MachineTest < Minitest::Test
  include Strands

  # --- one per thread ---

  def test_a_thread_has_one_machine
    assert_same Ringspun::Machine.current, Ringspun::Machine.current
    assert_same machine, Ringspun.run { |running| running }
  end

  def test_every_thread_has_its_own
    refute_same machine, on_thread { machine }
  end

  def test_a_second_machine_on_a_thread_is_refused
    error = assert_raises(Ringspun::UsageError) { Ringspun::Machine.new }
    assert_match(/Machine\.current/, error.message)
  end

  def test_one_that_was_never_opened
    assert_child "Ringspun::ClosedError\n", <<~RUBY
      require "objspace"
      Ringspun::Machine.current
      begin
        Ringspun::Machine.new
      rescue Ringspun::UsageError
        ObjectSpace.memsize_of_all
      end
      begin
        Ringspun::Machine.allocate.metrics
      rescue Ringspun::Error => error
        puts error.class
      end
    RUBY
  end

  def test_after_close_there_can_be_a_new_one
    on_thread do
      first = Ringspun::Machine.new
      first.close
      second = Ringspun::Machine.current
      refute_same first, second
      assert_equal 3, second.spin { 3 }.await
    end
  end

  def test_initialize_again_is_refused
    assert_raises(Ringspun::UsageError) { machine.__send__(:initialize) }
    assert_equal 1, machine.spin { 1 }.await
  end

  # No collector is waited for.
  def test_the_descriptors_of_a_machine_go_with_its_thread
    GC.disable
    before = Leaks.descriptors
    reader, writer = IO.pipe
    { "ends" => -> {}, "raises" => -> { raise "of the thread" }, "kills" => -> { Thread.current.kill } }.each do |name, ending|
      20.times do
        thread = Thread.new do
          Thread.current.report_on_exception = false
          machine.spin { machine.read(reader, +"") }
          machine.sleep(0).then(&ending)
        end
        yield_until(name) { !thread.alive? }
      end
    end
    [reader, writer].each(&:close)
    assert_equal before, Leaks.descriptors
  ensure
    GC.enable
  end

  # The kernel may have accepted some for it ahead.
  def test_the_connections_of_a_machine_go_with_its_thread
    server = TCPServer.new("127.0.0.1", 0)
    clients = []
    Thread.new do
      acceptor = machine.spin do
        machine.accept_each(server, ahead: 4) { |connection| machine.close(connection).then { machine.park } }
      end
      machine.sleep(0)
      clients.concat(Array.new(3) { TCPSocket.new("127.0.0.1", server.local_address.ip_port) })
      yield_until { acceptor.state == :parked }
    end.join
    server.close
    clients.each { |client| assert_empty ended(client) }
  ensure
    clients.each(&:close)
  end

  # What it says before it ends, or is cut.
  def ended(client)
    Timeout.timeout(10) { client.read }
  rescue Errno::ECONNRESET
    ""
  end

  # A thread in the middle of a sleep, where it is killed, and one at whose channel others are.
  def test_a_thread_that_is_killed_while_its_machine_sleeps
    before = Leaks.descriptors
    channel = Ringspun::Channel.new(1)
    thread = Thread.new { channel.pop }
    yield_until("it sleeps") { thread.status == "sleep" }
    thread.kill.join
    assert_equal before, Leaks.descriptors
    sender = Thread.new { channel.push(1) }
    assert_equal 1, channel.pop
    sender.join
  end

  # --- options ---

  # As if each wait ended soon, which short ones do.
  def test_busy_poll
    [[0.01, false], [false, true], [0, true]].each do |seconds, never|
      on_thread do
        Ringspun::Machine.new(busy_poll: seconds)
        to, from = Array.new(2) { Ringspun::Channel.new(1) }
        answering = Thread.new { to.each { |value| from.push(value) } }
        500.times { |number| to.push(number) && assert_equal(number, from.pop) }
        to.close
        answering.join
        assert_equal never, machine.metrics[:busy_polls].zero?, seconds.inspect
      end
    end
  end

  def test_options_out_of_range
    [{ strands_max: 0 }, { strands_max: -1 }, { strands_max: (1 << 24) + 1 }, { workers_max: 0 }, { file_io: :other },
     { backend: :nothing }, { backend: :sim, faults: 1 }, { backend: :sim, faults: { short_transfer: 1.1 } },
     { backend: :sim, faults: { short_transfer: -0.1 } }, { backend: :sim, faults: { nonsense: 1 } },
     { backend: :sim, faults: { delay_max: -1 } }, { busy_poll: -1 }, { busy_poll: 0.02 }, { busy_poll: "long" },
     { backend: :sim, busy_poll: 0.00001 }].each do |options|
      error = on_thread { error_of { Ringspun::Machine.new(**options) } }
      assert_instance_of Ringspun::UsageError, error, options.inspect
    end
  end

  def test_options_of_the_wrong_type
    [{ strands_max: "1" }, { strands_max: 1.5 }, { workers_max: [] }, { backend: 1 }, { backend: :sim, seed: "1" },
     { backend: :sim, seed: -1 }, { backend: :sim, seed: 1.5 }, { seed: 1 }, { faults: true },
     { backend: :sim, faults: { delay: "1" } }, { backend: :sim, faults: { 1 => 1 } }].each do |options|
      assert_kind_of Ringspun::UsageError, on_thread { error_of { Ringspun::Machine.new(**options) } }, options.inspect
    end
  end

  def test_a_machine_has_no_copies
    [:dup, :clone].each { |copy| assert_raises(Ringspun::UsageError) { machine.public_send(copy) } }
  end

  def test_close_raises_what_waited_for_the_next_wait
    error = assert_raises(Failure) do
      on_thread do
        machine.schedule(machine.running, Failure.new("late"))
        machine.close
      end
    end
    assert_equal "late", error.message
  end

  def test_an_unknown_option_is_named_beside_the_known_ones
    error = on_thread { error_of { Ringspun::Machine.new(strand_max: 1, backend: :epoll) } }
    assert_instance_of Ringspun::UsageError, error
    assert_match(/:strand_max;.*:strands_max/, error.message)
  end

  def test_a_refused_machine_leaves_the_thread_without_one
    on_thread do
      assert_raises(Ringspun::UsageError) { Ringspun::Machine.new(backend: :nothing) }
      assert_predicate Ringspun::Machine.new(backend: :epoll), :backend
    end
  end

  # --- the backend ---

  def test_backend_says_which_and_why
    assert_includes %i[epoll uring sim], machine.backend.name
    refute_empty machine.backend.reason
    assert_equal "#{machine.backend.name} (#{machine.backend.reason})", machine.backend.to_s
    assert_equal machine.backend, Ringspun.backend
    assert_predicate machine.backend, :frozen?
  end

  def test_unasked_the_backend_is_the_best_that_opens
    answer = child("puts Ringspun.backend.name, Ringspun.backend.reason", env: { "RINGSPUN_BACKEND" => nil })
    name, reason = answer.out.lines(chomp: true)
    assert_match({ "uring" => /the best that opens/, "epoll" => /no io_uring: / }.fetch(name), reason, answer.err)
  end

  def test_a_backend_can_be_asked_for
    %i[epoll uring sim].each do |name|
      backend = on_thread { Ringspun::Machine.new(backend: name).backend }
      assert_equal name, backend.name
      assert_match(/asked for/, backend.reason)
    end
  end

  def test_the_environment_chooses_the_backend
    { "epoll" => :epoll, "uring" => :uring, "sim" => :sim }.each do |value, name|
      assert_child "#{name}\n", "puts Ringspun.backend.name", env: { "RINGSPUN_BACKEND" => value }
    end
  end

  def test_an_empty_environment_variable_chooses_nothing
    unset, empty = [nil, ""].map { |value| child("puts Ringspun.backend", env: { "RINGSPUN_BACKEND" => value }) }
    assert_equal [unset.out, unset.err], [empty.out, empty.err]
    refute_empty unset.out
  end

  def test_the_option_goes_before_the_environment
    assert_child "epoll\n", "puts Ringspun::Machine.new(backend: :epoll).backend.name", env: { "RINGSPUN_BACKEND" => "sim" }
  end

  def test_an_unknown_backend_in_the_environment
    answer = child("Ringspun.backend", env: { "RINGSPUN_BACKEND" => "kqueue" })
    assert_match(/unknown backend kqueue.*UsageError/m, answer.err)
    refute_predicate answer.status, :success?
  end

  # --- close ---

  def test_close_twice
    on_thread do
      only = machine
      assert_nil only.close
      assert_nil only.close
      assert_predicate only, :closed?
    end
  end

  def test_close_ends_the_strands_that_are_left
    seen = []
    on_thread do
      sleeper = machine.spin do
        machine.sleep
      ensure
        seen << :unwound
      end
      late = nil
      starter = machine.spin { late = machine.spin { seen << :ran } }
      until_parked(sleeper)
      starter.join
      machine.close
      assert_equal %i[done done], [sleeper.state, late.state]
    end
    assert_equal [:unwound], seen
  end

  def test_close_reports_an_error_that_comes_while_strands_unwind
    _, reported = capture_io do
      on_thread do
        parked do
          machine.sleep
        ensure
          raise Failure, "on the way out"
        end
        machine.close
      end
    end
    assert_equal 1, reported.scan("on the way out").size, reported
  end

  # Tells this strand's machine's root something while it is waited for, and takes a while to unwind after that.
  def slow_to_unwind(root, *told)
    parked do
      machine.sleep
    ensure
      told.each { |error| machine.schedule(root, error) }
      Ringspun.shield { 3.times { machine.yield } }
    end
  end

  def test_close_raises_what_was_meant_for_the_root_when_all_have_ended
    first, second = Failure.new("first"), Failure.new("second")
    on_thread do
      strands = [slow_to_unwind(machine.running, first), slow_to_unwind(machine.running), slow_to_unwind(machine.running, second)]
      closed = machine
      assert_same first, error_of { closed.close }
      assert_equal [second], Ringspun.suppressed(first)
      assert_predicate closed, :closed?
      refute strands.any?(&:alive?)
    end
  end

  def test_close_raises_an_exit_that_comes_while_strands_unwind
    on_thread do
      parked do
        machine.sleep
      ensure
        exit(3)
      end
      slow_to_unwind(machine.running)
      closed = machine
      assert_equal 3, assert_raises(SystemExit) { closed.close }.status
      assert_predicate closed, :closed?
    end
  end

  def test_close_reports_errors_that_nobody_has_joined
    _, reported = capture_io do
      on_thread do
        failing = machine.spin { raise Failure, "left alone" }
        yield_until { !failing.alive? }
        machine.close
      end
    end
    assert_match(/left alone/, reported)
  end

  def test_close_names_the_strands_that_do_not_end
    gate = stubborn = nil
    on_thread do
      Ringspun::Machine.new(backend: :sim) # its clock jumps, so the grace costs no time
      gate = Ringspun::Queue.new
      stubborn = parked { Ringspun.shield { gate.pop } }
      error = assert_raises(Ringspun::UsageError) { machine.close }
      assert_match(/did not end within/, error.message)
      assert_includes error.message, stubborn.inspect
      refute_predicate machine, :closed?
      gate.push(nil)
      machine.close
      refute_predicate stubborn, :alive?
    end
  end

  def test_close_from_a_strand_is_refused_and_harms_nobody
    on_thread do
      other = parked { machine.sleep }
      assert_ends_with Ringspun::UsageError, machine.spin { machine.close }, /closed by the strand that made it/
      assert_equal :parked, other.state
      machine.yield # the root is not cancelled either
    end
  end

  def test_close_inside_a_scope_is_refused
    on_thread do
      strand = machine.spin { 1 }
      assert_raises(Ringspun::UsageError) { machine.scope { machine.close } }
      assert_raises(Ringspun::UsageError) { machine.timeout(1) { machine.close } }
      assert_equal 1, strand.await
      machine.close
    end
  end

  # --- use after close, and from elsewhere ---

  OWN_THREAD_ONLY = {
    sleep: ->(m, _) { m.sleep(0) }, yield: ->(m, _) { m.yield }, spin: ->(m, _) { m.spin {} }, scope: ->(m, _) { m.scope {} },
    timeout: ->(m, _) { m.timeout(1) {} }, park: ->(m, _) { m.park(0) }, await: ->(m, strand) { m.await(strand) },
    join: ->(m, strand) { m.join(strand) }, running: ->(m, _) { m.running }, now: ->(m, _) { m.now }, pipe: ->(m, _) { m.pipe },
    "Strand#await": ->(_, strand) { strand.await }, "Strand#join": ->(_, strand) { strand.join }
  }.freeze

  def test_after_close_everything_says_so
    on_thread do
      closed = machine
      strand = closed.spin { 1 }
      closed.close
      OWN_THREAD_ONLY.each do |name, use|
        assert_instance_of Ringspun::ClosedError, error_of { use.call(closed, strand) }, name
      end
    end
  end

  def test_from_another_thread_everything_says_so
    strand = machine.spin { 1 }
    mine = machine
    on_thread do
      OWN_THREAD_ONLY.each do |name, use|
        assert_instance_of Ringspun::WrongThreadError, error_of { use.call(mine, strand) }, name
      end
      assert_instance_of Ringspun::WrongThreadError, error_of { mine.close }
    end
    strand.join
  end

  def test_what_merely_looks_is_allowed_from_another_thread
    strand = parked { machine.park }
    mine = machine
    looked = Thread.new do
      [mine.closed?, mine.metrics[:strands_live], mine.strands.include?(strand), mine.backend.name, strand.state,
       strand.alive?, strand.error, strand.waits_for, strand.machine, mine.inspect, mine.describe_strands]
    end.value
    assert_equal [false, 2, true, mine.backend.name, :parked, true, nil, "Machine#schedule", mine], looked.first(9)
    assert_equal mine.inspect, looked[9]
    assert_includes looked[10], strand.inspect
    machine.schedule(strand)
    strand.join
  end

  def test_after_close_one_can_still_look
    on_thread do
      closed = machine
      strand = closed.spin { 1 }
      strand.join
      closed.close
      assert_equal [0, []], [closed.metrics[:strands_live], closed.strands]
      assert_equal [false, :done], [strand.alive?, strand.state]
      assert_match(/closed/, closed.inspect)
      assert_nil closed.backend.name
    end
  end

  def test_schedule_and_terminate_for_a_closed_machine
    on_thread do
      closed = machine
      strand = closed.spin { 1 }
      strand.join
      closed.close
      assert_equal [false, false], [closed.schedule(strand), closed.terminate(strand)]
    end
  end

  # --- what it tells of itself ---

  def test_inspect
    assert_match(/\A#<Ringspun::Machine \w+ strands=1>\z/, machine.inspect)
    strand = machine.spin {}
    assert_match(/strands=2/, machine.inspect)
    strand.join
  end

  def test_metrics_count
    before = machine.metrics
    strands = Array.new(3) { machine.spin { machine.sleep(0.000_1) } }
    during = machine.metrics
    assert_equal 3, during[:strands_spawned] - before[:strands_spawned]
    assert_equal [4, 3], during.values_at(:strands_live, :run_queue)
    until_parked(strands.last)
    assert_operator machine.metrics[:timers], :>=, 1
    machine.join(*strands)
    after = machine.metrics
    assert_equal [1, 0, 0], after.values_at(:strands_live, :run_queue, :timers)
    assert_equal 3, after[:timers_fired] - before[:timers_fired]
    assert_operator after[:resumes] - before[:resumes], :>=, 6
    assert_operator after[:run_queue_max], :>=, 3
    assert_empty(after.reject { |name, value| name.is_a?(Symbol) && value.is_a?(Integer) && value >= 0 })
  end

  def test_strands_lists_who_lives
    strand = parked { machine.park }
    assert_equal [machine.running, strand], machine.strands
    assert_equal machine.running, machine.strands.first
    machine.schedule(strand)
    strand.join
    assert_equal [machine.running], machine.strands
  end

  def test_running_is_the_strand_that_runs
    strand = machine.spin { machine.running }
    assert_same strand, strand.await
    refute_same strand, machine.running
  end

  def test_locate_names_a_place_of_the_program_and_not_of_the_library
    machine.locate = true
    strands = []
    Ringspun.run do |machine|
      strands << machine.running << Ringspun.spin {} << Ringspun.scope { |scope| scope.spin {} }
    end
    line = __LINE__ - 3
    assert_equal [line, line + 1, line + 1], (strands.map { |strand| strand.spawned_at.lineno })
    assert_equal [__FILE__], strands.map { |strand| strand.spawned_at.path }.uniq
  ensure
    machine.locate = false
  end

  def test_locate_notes_where_strands_are_spun
    machine.locate = true
    located = machine.spin {}
    line = __LINE__ - 1
    machine.locate = false
    unlocated = machine.spin {}
    assert_equal [__FILE__, line], [located.spawned_at.path, located.spawned_at.lineno]
    assert_nil unlocated.spawned_at
    assert_match(/spun at .*machine_test.rb:#{line}/, machine.describe_strands)
    machine.join(located, unlocated)
  ensure
    machine.locate = false
  end
end
