# frozen_string_literal: true

require "test_helper"
require "io/nonblock"
require "io/wait"
require "timeout"
require "support/strands"

# Ringspun::Simulation: one seed is one run, time is virtual, and what goes wrong can be chosen.
class SimulationTest < Minitest::Test
  include Strands

  def simulation = Ringspun::Simulation

  # What depends on the kernel: how much is moved, how long it takes, who is first.
  TALK = lambda do |machine|
    one, other = machine.socketpair
    writers = Array.new(3) { |i| machine.spin { machine.send(one, i.to_s * 20_000) } }
    reads = []
    reads << machine.recv(other, +"", 65_536) while reads.sum < 60_000
    machine.join(*writers)
    [one, other].each { |socket| machine.close(socket) }
    reads
  end

  # --- a run ---

  def test_the_block_has_a_simulated_machine_which_is_current
    seen = simulation.run { |given| [given.equal?(machine), given.backend.name, given.closed?] }.value
    assert_equal [true, :sim, false], seen
  end

  def test_the_machine_is_closed_afterwards
    used = simulation.run(&:itself).value
    assert_predicate used, :closed?
    assert_raises(Failure) { simulation.run { |given| (used = given) && raise(Failure) } }
    assert_predicate used, :closed?
  end

  def test_it_leaves_the_callers_machine_alone
    mine = machine
    simulation.run { refute_same mine, machine }
    assert_same mine, machine
    value = machine.spin { simulation.run { |given| given.sleep(1).then { :inner } }.value }.await
    assert_equal :inner, value
  end

  def test_a_run_inside_a_run
    result = simulation.run { |outer| [simulation.run { |inner| inner.sleep(100) }.elapsed, outer.sleep(1)] }
    assert_equal [100, 1], result.value
    assert_in_delta 1, result.elapsed, 1e-6
  end

  def test_the_value_and_the_seed
    result = simulation.run(seed: 42) { :value }
    assert_equal [:value, 42], [result.value, result.seed]
    assert_equal [nil, 0], simulation.run {}.to_h.values_at(:value, :seed)
    assert_equal(2**64 - 1, simulation.run(seed: 2**64 - 1) {}.seed)
  end

  def test_it_waits_for_strands_that_were_spun
    ended = false
    result = simulate do
      machine.spin { machine.sleep(5).then { ended = true } }
      nil
    end
    assert ended
    assert_in_delta 5, result.elapsed, 1e-6
  end

  def test_what_the_block_raises
    error = assert_raises(Failure) { simulation.run { raise Failure, "as it was" } }
    assert_equal "as it was", error.message
    assert_match(/simulation_test\.rb/, error.backtrace.first)
    assert_raises(Minitest::Assertion) { simulation.run { flunk } }
    assert_raises(Ringspun::TimeoutError) { simulation.run { |machine| machine.timeout(1) { machine.sleep } } }
  end

  def test_a_run_needs_a_block
    assert_match(/\ASimulation.run needs a block/, assert_raises(Ringspun::UsageError) { simulation.run }.message)
    assert_match(/\ASimulation.explore needs a block/, assert_raises(Ringspun::UsageError) { simulation.explore(3) }.message)
    assert_raises(Ringspun::UsageError) { simulation.explore(0) }
    assert_raises(ArgumentError) { simulation.run(sed: 1) {} }
  end

  def test_seeds_that_are_none
    [:seed, nil, -1, 1.5, 2**64].each { |seed| assert_raises(Ringspun::UsageError) { simulation.run(seed: seed) {} } }
    assert_equal (2**64) - 1, simulation.run(seed: (2**64) - 1) {}.seed
    assert_raises(Ringspun::UsageError) { simulation.run(faults: nil) {} }
    [nil, -5, 1.5].each { |count| assert_raises(Ringspun::UsageError) { simulation.explore(count) {} } }
    assert_raises(Ringspun::UsageError) { simulation.explore(1, from: nil) {} }
  end

  # --- one seed is one run ---

  def test_the_same_seed_is_the_same_run
    [true, false, { delay: 1.0 }].each do |faults|
      one, other = Array.new(2) { simulation.run(seed: 7, faults: faults, &TALK) }
      assert_equal one, other
    end
  end

  def test_other_seeds_are_other_runs
    results = Array.new(20) { |seed| simulation.run(seed: seed, &TALK) }
    assert_equal 20, results.map(&:trace_hash).uniq.size
    assert_operator results.map(&:value).uniq.size, :>, 1
  end

  def test_another_program_is_another_run
    hashes = [1, 2].map { |turns| simulation.run(seed: 7) { |machine| turns.times { machine.yield } }.trace_hash }
    refute_equal(*hashes)
  end

  def test_the_trace
    trace = simulate { |machine| machine.sleep(3) }.trace
    trace.each { |event| assert_pattern { event => [Float, Symbol, Integer, Integer] } }
    times = trace.map(&:first)
    assert_equal times.sort, times
    assert_in_delta 3, times.last - times.first, 1e-6
    assert_equal 1024, simulate { |machine| 2000.times { machine.yield } }.trace.size
  end

  # --- virtual time ---

  def test_a_day_passes_at_once
    before = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    result = simulate do |machine|
      started = machine.now
      machine.sleep(86_400)
      (machine.now - started).round(6)
    end
    assert_equal [86_400, 86_400], [result.value, result.elapsed.round(6)]
    assert_operator Process.clock_gettime(Process::CLOCK_MONOTONIC) - before, :<, 3600
  end

  def test_time_stands_still_while_strands_run
    elapsed = simulate { |machine| 100.times { machine.yield } }.elapsed
    assert_equal 0, elapsed
  end

  def test_what_is_due_first_happens_first
    order = []
    simulate do |machine|
      machine.join(*[3, 1, 2].map { |days| machine.spin { machine.sleep(days * 86_400).then { order << days } } })
    end
    assert_equal [1, 2, 3], order
  end

  def test_a_timeout_in_virtual_time
    result = simulate do |machine|
      error_of { machine.timeout(3600) { machine.park } }.class
    end
    assert_equal [Ringspun::TimeoutError, 3600], [result.value, result.elapsed.round(6)]
  end

  # Both of the readers leave at once, and no op is left behind which anybody waits.
  def test_time_goes_on_when_the_last_reads_are_cancelled
    result = simulate(faults: false) do |machine|
      reader, writer = machine.pipe
      readers = Array.new(2) { machine.spin { error_of { machine.timeout(1) { machine.read(reader, +"", 1) } }.class } }
      machine.await(*readers).tap { machine.sleep(10) && [reader, writer].each { |fd| machine.close(fd) } }
    end
    assert_equal [[Ringspun::TimeoutError] * 2, 11], [result.value, result.elapsed.round]
  end

  # A virtual second passes in no time, and a thread takes its own.
  def test_no_time_passes_while_a_thread_is_joined
    gate = Thread::Queue.new
    opener = Thread.new { Thread.pass until gate.num_waiting == 1 && gate << :go }
    results = Array.new(2) do |i|
      simulate { Thread.new { i.zero? ? gate.pop : Thread.pass }.join.alive? }
    end
    assert_equal [[false, 0.0]], results.map { |result| [result.value, result.elapsed] }.uniq
  ensure
    opener.join
  end

  def test_the_limit_of_a_join_is_no_virtual_time
    error = simulate do
      thread = Thread.new { sleep }
      error_of { thread.join(1) }
    ensure
      thread.kill.join
    end.value
    assert_kind_of Ringspun::UnsupportedError, error
    assert_match(/join without a limit/, error.message)
    assert_kind_of(Thread, simulate { Thread.new {}.tap(&:join).join(1) }.value)
  end

  def test_a_select_of_nothing_takes_virtual_time
    result = simulate { IO.select([], nil, [], 3600) }
    assert_equal [nil, 3600], [result.value, result.elapsed.round]
    assert_nil(simulate { IO.select(nil, nil, nil, 0) }.value)
  end

  # A limit on an IO of the system would be real time, which is none here.
  def test_limits_on_what_is_outside
    reader, writer = IO.pipe
    waits = [-> { reader.wait_readable(1) }, -> { IO.select([reader], nil, nil, 1) },
             -> { (reader.timeout = 1) && reader.read(1) }]
    waits.each do |wait|
      error = simulate { error_of(&wait) }.value
      assert_kind_of Ringspun::UnsupportedError, error
      assert_match(/its own is virtual/, error.message)
    end
    assert_nil(simulate { reader.wait_readable(0) || IO.select([reader], nil, nil, 0) }.value)
    writer << "x"
    assert_equal([[[reader], [], []], reader], simulate { [IO.select([reader], nil, nil, 1), reader.wait_readable(1)] }.value)
  ensure
    [reader, writer].each(&:close)
  end

  # What waits for the real world, where nothing comes by itself; the child's end closes the pipe, and so the commands end.
  OUTSIDE = {
    read: ->(reader) { reader.read(1) },
    blocking_read: ->(reader) { (reader.nonblock = false) || reader.read(1) },
    wait_readable: lambda(&:wait_readable),
    select: ->(reader) { IO.select([reader]) },
    process_wait: ->(reader) { Process.wait(spawn("read line; :", in: reader)) },
    system: ->(reader) { system("read line; :", in: reader) }
  }.freeze

  OUTSIDE.each do |name, wait|
    { machine_timeout: [Ringspun::TimeoutError, ->(machine, &block) { machine.timeout(1, &block) }],
      stock_timeout: [Timeout::Error, ->(_, &block) { Timeout.timeout(1, &block) }] }.each do |limit, (error, limited)|
      define_method(:"test_a_#{limit}_ends_a_#{name}_outside") do
        assert_predicate(in_child do
          reader, = pipe = IO.pipe
          result = simulate { |machine| error_of { limited.call(machine) { wait.call(reader) } } }
          assert_instance_of error, result.value
          assert_in_delta 1, result.elapsed
          pipe.each(&:close)
        end, :success?)
      end
    end
  end

  # The reader goes on when the byte is there, and not when nothing else is left to do.
  %i[read blocking_read wait_readable select].each do |name|
    define_method(:"test_strands_go_on_beside_a_#{name}_outside") do
      assert_predicate(in_child do
        reader, writer = IO.pipe
        trace = Array.new(2) do
          result = simulate do |machine|
            machine.spin { machine.sleep(1) && writer.write("x") }
            later = machine.spin { machine.sleep(100) }
            began = machine.now
            machine.timeout(5) { OUTSIDE.fetch(name).call(reader) }
            (machine.now - began).tap { reader.read_nonblock(1, exception: false) && later.join }
          end
          assert_in_delta 1, result.value
          result.trace_hash
        end
        assert_equal 1, trace.uniq.size
      end, :success?)
    end
  end

  def test_a_strand_that_ticks_for_ever_does_not_keep_a_child_waiting
    assert_predicate(in_child do
      value = simulate do |machine|
        done = false
        machine.spin { machine.sleep(1) until done }
        `echo done`.tap { done = true }
      end.value
      assert_equal "done\n", value
    end, :success?)
  end

  def test_two_strands_share_what_comes_from_outside
    reader, writer = IO.pipe.each { |io| io.nonblock = false }
    bytes = simulate do |machine|
      readers = Array.new(2) { machine.spin { reader.read(1) } }
      "ab".each_char { |byte| machine.sleep(1) && writer.write(byte) }
      machine.await(*readers)
    end.value
    assert_equal %w[a b], bytes.sort
  ensure
    [reader, writer].each(&:close)
  end

  def test_a_blocking_write_outside_lets_the_reader_run
    assert_predicate(in_child do
      reader, writer = IO.pipe.each { |io| io.nonblock = false }
      simulate do |machine|
        machine.spin { writer.write("x" * 200_000).then { writer.close } }
        assert_equal 200_000, reader.read.size
      end
    end, :success?)
  end

  # --- faults ---

  def test_without_faults_the_kernel_is_kind
    reads = Array.new(10) do |seed|
      simulation.run(seed: seed, faults: false) do |machine|
        one, other = machine.socketpair
        machine.send(one, "x" * 1000)
        machine.recv(other, +"", 1000).tap { [one, other].each { |socket| machine.close(socket) } }
      end.to_h.values_at(:value, :elapsed)
    end
    assert_equal [[1000, 0.0]], reads.uniq
  end

  def read_with(faults, seed)
    simulation.run(seed: seed, faults: faults) do |machine|
      one, other = machine.socketpair
      machine.spin { machine.send(one, "x" * 1000) }
      machine.recv(other, +"", 1000).tap { [one, other].each { |socket| machine.close(socket) } }
    rescue Errno::EPIPE
      nil
    end
  end

  def test_true_is_a_mix_and_what_a_run_has_unless_told
    seeds = 0...30
    reads = seeds.map { |seed| read_with(true, seed).value }
    assert_operator reads.uniq.size, :>, 1
    assert_equal(seeds.map { |seed| simulation.run(seed: seed, &TALK) },
                 seeds.map { |seed| simulation.run(seed: seed, faults: true, &TALK) })
  end

  def test_the_mix_is_what_every_correct_program_stands
    simulation.explore(100) do |machine|
      assert_equal 60_000, TALK.call(machine).sum
      descriptor = machine.open("/file", "w")
      machine.close(descriptor)
    end
  end

  def test_a_hash_chooses
    opened = lambda do |probability|
      simulation.run(faults: { open_failure: probability }) do |machine|
        Array.new(40) { machine.close(machine.open("/data", "w")).then { :opened } rescue :refused }.tally
      end.value
    end
    assert_equal({ opened: 40 }, opened[0])
    assert_equal({ refused: 40 }, opened[1.0])
    assert_equal 2, opened[0.5].size
  end

  def test_names_of_faults_may_be_strings
    error = assert_raises(SystemCallError) do
      simulation.run(faults: { "open_failure" => 1 }) { |machine| machine.open("/data", "w") }
    end
    assert_includes [Errno::EMFILE, Errno::ENFILE], error.class
  end

  def test_the_length_of_a_delay
    elapsed = Array.new(20) { |seed| read_with({ delay: 1.0, delay_max: 100 }, seed).elapsed }
    assert_operator elapsed.max, :>, 10
    assert_operator elapsed.max, :<=, 400 # two sockets, one write, one read, two closes
    assert_operator Array.new(20) { |seed| read_with({ delay: 1.0 }, seed).elapsed }.max, :<, 0.01
  end

  def test_every_fault_that_is_listed_is_known
    assert_predicate simulation::FAULTS, :frozen?
    simulation::FAULTS.each { |fault| assert_equal 1, simulation.run(faults: { fault => 0.5 }) { 1 }.value }
    assert_includes simulation::FAULTS, :short_transfer
  end

  def test_bad_faults
    { { nope: 1 } => /unknown fault nope.*FAULTS/, { delay: 1.1 } => /delay must lie between 0.0 and 1.0, got 1.1/,
      { delay: -0.1 } => /between/, { delay: Float::NAN } => /between/, { delay_max: -1 } => /delay_max/,
      { delay_max: "1" } => /delay_max/, :all => /true, false or a Hash/, 1 => /true, false or a Hash/ }.each do |faults, text|
      ran = false
      error = assert_raises(Ringspun::UsageError) { simulation.run(faults: faults) { ran = true } }
      assert_match text, error.message
      refute ran
    end
  end

  # An op that its strand has left is still in flight when its machine is closed.
  def test_the_end_of_a_run_whose_last_op_was_given_up
    { waitid: [-1], open: %w[/file w], statx: ["/file"], unlink: ["/file"], rename: %w[/file /other],
      copy_file: %w[/file /other] }.each do |name, arguments|
      ended = Array.new(100) do |seed|
        run = Ringspun::Simulation.run(seed:) do |machine|
          error_of { machine.timeout(0.000_01) { machine.__send__(name, *arguments) } }
        end
        run.value
      end
      assert_operator ended.grep(Ringspun::TimeoutError).size, :>, 0, name
    end
  end

  # --- explore ---

  # Fails when the two strands meet in the unlucky order: a read and a write of one variable with a wait in between.
  RACE = lambda do |machine|
    count = 0
    adders = Array.new(2) do
      machine.spin do
        one, other = machine.pipe
        before = count
        machine.spin { machine.write(other, "x") }
        machine.read(one, +"", 1)
        count = before + 1
        [one, other].each { |descriptor| machine.close(descriptor) }
      end
      .tap { machine.sleep(0.000_5) }
    end
    machine.join(*adders)
    raise Failure, "counted #{count}" unless count == 2
  end

  def test_it_answers_how_many_were_run
    seeds = []
    assert_equal 5, simulation.explore(5, from: 10) { |machine| seeds << machine.__send__(:sim_random) }
    expected = (10..14).map { |seed| simulation.run(seed: seed) { |machine| machine.__send__(:sim_random) }.value }
    assert_equal expected, seeds
    assert_equal 0, simulation.explore(0) { flunk }
  end

  def test_it_stops_at_the_first_seed_that_fails
    runs = 0
    error = assert_raises(Failure) { simulation.explore(50, from: 100) { (runs += 1) == 3 && raise(Failure, "why") } }
    assert_equal ["seed 102: why", 3], [error.message, runs]
    assert_match(/simulation_test\.rb/, error.backtrace.first)
  end

  def test_it_finds_a_race_and_the_seed_shows_it_again
    simulation.run(faults: false, &RACE) # by hand it works
    errors = Array.new(2) { assert_raises(Failure) { simulation.explore(500, &RACE) } }
    assert_equal 1, errors.map(&:message).uniq.size
    seed = Integer(errors.first.message[/\Aseed (\d+): counted 1\z/, 1])
    3.times { assert_equal("counted 1", assert_raises(Failure) { simulation.run(seed: seed, &RACE) }.message) }
    assert_equal seed, simulation.explore(seed, &RACE)
  end

  def test_faults_are_handed_on
    assert_equal 50, simulation.explore(50, faults: false, &RACE)
    error = assert_raises(SystemCallError) do
      simulation.explore(1, faults: { open_failure: 1 }) { |machine| machine.open("/data", "w") }
    end
    assert_match(/seed 0: /, error.message)
  end

  class Stubborn < StandardError
    def initialize(_one, _two) = super()
    def message = "its own"
  end

  def test_every_kind_of_error_names_the_seed
    {
      -> { raise Failure, "why" } => "why", -> { flunk "why" } => "why", -> { raise Failure.new("why").freeze } => "why",
      -> { raise Stubborn.new(1, 2) } => "its own", -> { {}.fetch(:key) } => "key not found: :key",
      -> { raise NotImplementedError } => "NotImplementedError"
    }.each do |failing, why|
      message = "seed 3: #{why}"
      error = error_and_assertion_of { simulation.explore(1, from: 3) { failing.call } }
      assert_equal message, error.message
      assert_includes error.full_message(highlight: false), message
    end
  end

  def error_and_assertion_of
    yield
  rescue Exception => e
    e
  end

  def test_the_cause_stays
    error = assert_raises(Failure) do
      simulation.explore(1) do
        raise "first"
      rescue RuntimeError
        raise Failure, "second"
      end
    end
    assert_equal ["seed 0: second", "first"], [error.message, error.cause.message]
    assert_nil assert_raises(Failure) { simulation.explore(1) { raise Failure } }.cause
  end

  def test_who_wants_to_exit_exits
    error = error_and_assertion_of { simulation.explore(5) { exit(3) } }
    assert_equal [SystemExit, 3, "exit"], [error.class, error.status, error.message]
  end

  # --- deadlocks ---

  def test_a_deadlock_names_every_strand_and_what_it_waits_for_and_where_it_was_spun
    lines = []
    error = assert_raises(Ringspun::DeadlockError) do
      simulation.run do |machine|
        one, other = machine.pipe
        [-> { Ringspun::Queue.new.pop }, -> { machine.park }, -> { machine.read(one, +"", 1) }].each do |wait|
          machine.spin(&wait).then { lines << __LINE__ }
        end
        machine.spin { Ringspun::Mutex.new.synchronize { Ringspun::Condition.new.wait } } and lines << __LINE__
        other
      end
    end
    assert_equal(["an item of a Queue", "Machine#schedule", "read on descriptor", "a Condition"].zip(lines),
                 reported(error.message))
    assert_match(/\Anothing runs and nothing can wake anybody:\n/, error.message)
  end

  # What the strands of this file wait for, and the lines where they were spun.
  def reported(message)
    message.scan(/^ {4}#<Ringspun::Strand:0x\h+ parked> spun at \S*simulation_test\.rb:(\d+):.*: waits for (.*?)(?: \d+)?, for /)
           .map { |line, what| [what, Integer(line)] }
  end

  def test_two_locks_in_the_wrong_order
    error = assert_raises(Ringspun::DeadlockError) do
      simulation.run do |machine|
        locks = Array.new(2) { Ringspun::Mutex.new }
        [locks, locks.reverse].each do |first, second|
          machine.spin { first.synchronize { machine.yield.then { second.lock } } }
        end
      end
    end
    assert_equal ["a Mutex"] * 2, reported(error.message).map(&:first)
  end

  def test_strands_are_unwound_after_a_deadlock
    unwound = false
    assert_raises(Ringspun::DeadlockError) do
      simulation.run do |machine|
        machine.spin do
          machine.park
        ensure
          unwound = true
        end
      end
    end
    assert unwound
  end

  def test_who_waits_for_a_time_is_no_deadlock
    result = simulate { |machine| machine.spin { machine.park(1e6) rescue :late }.await }
    assert_equal [:late, 1_000_000], [result.value, result.elapsed.round]
  end

  def test_a_deadlock_that_explore_finds_names_its_seed
    error = assert_raises(Ringspun::DeadlockError) { simulation.explore(5, from: 9, &:park) }
    assert_match(/\Aseed 9: nothing runs/, error.message)
  end

  # --- descriptors ---

  def test_open_descriptors
    assert_equal 0, simulate { |machine| machine.pipe.each { |descriptor| machine.close(descriptor) } }.open_descriptors
    assert_equal 2, simulate(&:pipe).open_descriptors
    assert_equal(3, simulate { |machine| machine.socketpair && machine.open("/data", "w") }.open_descriptors)
  end

  def test_nothing_real_is_touched
    before = Leaks.descriptors
    simulate do |machine|
      machine.socketpair
      machine.write(machine.open("/ringspun-simulated", "w"), "x")
      assert_equal before, Leaks.descriptors
    end
    refute_path_exists "/ringspun-simulated"
  end
end
