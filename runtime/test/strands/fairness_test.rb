# frozen_string_literal: true

require "test_helper"
require "socket"
require "tmpdir"
require "support/on_simulation"
require "support/strands"

# Nobody is kept from running by others that always have something to do.
module FairnessTests
  include Strands

  # Enough for any poll to come round; far from what a hang would take.
  MANY = 200_000

  # Two strands that do nothing but yield until the block says so; answers how often they had to.
  def busy_until
    counts = [0, 0]
    strands = Array.new(2) do |i|
      machine.spin do
        until yield || (counts[i] += 1) > MANY
          machine.yield
        end
      end
    end
    machine.join(*strands)
    assert_operator counts.max, :<=, MANY, "starved"
    counts.max
  end

  def test_a_readable_pipe_is_not_starved_by_yielding_strands
    reader, writer = machine.pipe
    heard = false
    listener = parked { machine.read(reader, +"").then { heard = true } }
    machine.write(writer, "x")
    assert_operator busy_until { heard }, :<, 200
    listener.join
  ensure
    [reader, writer].each { |fd| machine.close(fd) }
  end

  def test_a_readable_socket_is_not_starved_by_yielding_strands
    one, other = machine.socketpair
    %i[read recv].each do |method|
      heard = false
      listener = parked { machine.__send__(method, one, +"").then { heard = true } }
      machine.send(other, "x")
      assert_operator busy_until { heard }, :<, 200
      listener.join
    end
  ensure
    [one, other].each { |fd| machine.close(fd) }
  end

  def test_a_connection_is_not_starved_by_yielding_strands
    listener, client = Array.new(2) { machine.socket(:UNIX, :STREAM) }
    address = Socket.sockaddr_un("\0ringspun-fairness-#{Process.pid}")
    machine.bind(listener, address)
    machine.listen(listener)
    peer = nil
    acceptor = parked { peer = machine.accept(listener) }
    machine.connect(client, address)
    assert_operator busy_until { peer }, :<, 200
    acceptor.join
  ensure
    [listener, client, peer].compact.each { |fd| machine.close(fd) }
  end

  def test_a_message_from_another_thread_is_not_starved_by_yielding_strands
    mine = machine
    strand = parked { machine.park }
    heard = false
    listener = machine.spin { strand.await.then { heard = true } }
    thread = Thread.new { mine.schedule(strand) }
    busy_until { Thread.pass || heard }
    machine.join(listener)
    thread.join
  end

  # --- turns that are long ---

  # Longer than any tick of the coarse clock.
  LONG = 0.03

  # A strand that wakes up by time, and is due by the end of every long turn of another that began after its last one.
  def ticking(events, &done)
    parked do
      until done.call
        machine.sleep(LONG / 4)
        events << :tick
      end
    end
  end

  # Runs the block at the end of each of four long turns of that many strands beside a ticker; answers who was when.
  def beside_a_ticker(strands)
    events = []
    left = strands
    ticker = ticking(events) { left.zero? }
    events.clear
    busy = Array.new(strands) do
      machine.spin do
        4.times do
          compute
          events << :busy
          yield
        end
      ensure
        left -= 1
      end
    end
    machine.join(*busy, ticker)
    events
  end

  # Nobody else's turn comes before the ticker's. (Of the last turns it may be told that they were.)
  def assert_alternates(events, busy)
    assert_equal busy, events.count(:busy)
    refute_includes events.each_cons(2).to_a, %i[busy busy], events.inspect
  end

  def test_a_ticker_beside_strands_that_compute_and_yield
    assert_alternates beside_a_ticker(3) { machine.yield }, 12
    assert_alternates beside_a_ticker(3) { machine.sleep(0) }, 12
  end

  # Ten begin, by the block, with a long turn beside a ticker, in their order.
  def assert_alternates_with_beginners
    events = []
    begun = []
    ticker = ticking(events) { begun.size == 10 }
    events.clear
    beginners = Array.new(10) do |i|
      yield lambda {
        compute
        events << :busy
        begun << i
      }
    end
    ticker.join
    assert_equal (0..9).to_a, begun
    assert_alternates events, 10
    beginners
  end

  def test_a_ticker_beside_strands_that_begin_with_computing
    assert_alternates_with_beginners { |long_turn| machine.spin(&long_turn) }
  end

  def test_a_ticker_beside_evaluations_that_begin_with_computing
    evaluations = assert_alternates_with_beginners do |long_turn|
      Ringspun::ConcurrentProc.new { long_turn.call }.call_detached
    end
    evaluations.each(&:await_result)
  end

  def test_a_ticker_beside_one_whose_ops_succeed_at_once
    reader, writer = machine.pipe
    assert_alternates(beside_a_ticker(1) { machine.write(writer, "x") }, 4)
    assert_alternates(beside_a_ticker(1) { machine.read(reader, +"", 1) }, 4)
  ensure
    [reader, writer].each { |fd| machine.close(fd) }
  end

  def test_a_ticker_beside_one_that_holds_a_lock
    reader, writer = machine.pipe
    mutex = Ringspun::Mutex.new
    turns = 0
    in_lock = lambda do
      turns += 1
      mutex.lock if turns == 1
      machine.write(writer, "x")
      mutex.unlock if turns == 4
    end
    assert_alternates(beside_a_ticker(1, &in_lock), 4)
  ensure
    [reader, writer].each { |fd| machine.close(fd) }
  end

  def test_a_ticker_beside_one_that_polls
    queue = Ringspun::Queue.new
    assert_alternates(beside_a_ticker(1) { Ringspun.select(queue, timeout: 0) }, 4)
    assert_alternates(beside_a_ticker(1) { queue.pop(timeout: 0) }, 4)
  end

  # All of them are due whenever one has had its turn.
  def test_a_flood_of_those_that_are_woken_starves_nobody
    flood = 5
    events = []
    left = 2
    sleepers = Array.new(flood) do
      parked do
        until left.zero?
          machine.sleep(LONG / 10)
          events << :tick
          compute(LONG / 2)
        end
      end
    end
    events.clear
    busy = Array.new(2) do
      machine.spin do
        4.times do
          events << :busy
          machine.yield
        end
        left -= 1
      end
    end
    machine.join(*busy, *sleepers)
    # Until the last of them has seen its end.
    turns = events.take(events.rindex(:busy)).slice_when { |_, after| after == :busy }.map { |turn| turn.count(:tick) }
    assert_operator turns.max, :<=, flood, events.inspect
    assert_equal 8, events.count(:busy)
  end

  # --- ops that never have to wait ---

  # Runs the block in a strand, again and again, until another one has run; answers how often.
  def inline_until_another_runs
    ran = false
    count = 0
    busy = machine.spin do
      until ran || count > MANY
        yield
        count += 1
      end
    end
    other = machine.spin { ran = true }
    machine.join(busy, other)
    assert_operator count, :>, 0
    count
  end

  def test_reads_and_writes_that_succeed_at_once
    reader, writer = machine.pipe
    bytes = +""
    count = inline_until_another_runs do
      machine.write(writer, "x")
      machine.read(reader, bytes)
    end
    assert_operator count, :<, 100
  ensure
    [reader, writer].each { |fd| machine.close(fd) }
  end

  def test_reads_and_writes_while_a_lock_is_held
    reader, writer = machine.pipe
    mutex = Ringspun::Mutex.new
    bytes = +""
    count = nil
    mutex.synchronize do
      holder = machine.spin do
        Ringspun::Mutex.new.synchronize do
          count = 0
          ran = false
          machine.spin { ran = true }
          until ran || count > MANY
            machine.write(writer, "x")
            machine.read(reader, bytes)
            count += 1
          end
        end
      end
      holder.join
    end
    assert_operator count, :<, 2000
  ensure
    [reader, writer].each { |fd| machine.close(fd) }
  end

  def test_reads_and_writes_that_succeed_at_once_notice_a_cancellation
    reader, writer = machine.pipe
    bytes = +""
    count = 0
    busy = machine.spin do
      until count > MANY
        machine.write(writer, "x")
        machine.read(reader, bytes)
        count += 1
      end
    end
    machine.yield
    machine.terminate(busy)
    assert_ends_with Ringspun::TerminatedError, busy
    assert_operator count, :<, 1000
  ensure
    [reader, writer].each { |fd| machine.close(fd) }
  end

  def test_writes_to_a_file
    path = File.join(Dir.tmpdir, "ringspun-fairness-#{Process.pid}")
    file = machine.open(path, "w")
    count = inline_until_another_runs { machine.pwrite(file, "x" * 512, 0) }
    assert_operator count, :<, 20_000
  ensure
    machine.close(file)
    FileUtils.rm_f(path)
  end
end

class FairnessTest < Minitest::Test
  include FairnessTests

  # By both clocks that the engine reads, for the coarse one stands still where a virtual machine gets no time.
  def compute(seconds = LONG)
    clocks = [Process::CLOCK_MONOTONIC, Process::CLOCK_MONOTONIC_COARSE]
    ends = clocks.to_h { |clock| [clock, Process.clock_gettime(clock) + seconds] }
    nil until ends.all? { |clock, time| Process.clock_gettime(clock) >= time }
  end

  def test_what_comes_goes_before_who_has_had_a_turn
    reader, writer = machine.pipe
    events = []
    listener = parked { 12.times { machine.read(reader, +"", 1).then { events << :tick } } }
    busy = Array.new(3) do
      machine.spin do
        4.times do
          machine.write(writer, "x")
          compute
          events << :busy
          machine.yield
        end
      end
    end
    machine.join(*busy, listener)
    assert_alternates events, 12
  ensure
    [reader, writer].each { |fd| machine.close(fd) }
  end

  # What it writes at once succeeds, however busy the computer is.
  def test_one_that_is_cancelled_loses_nothing_by_long_turns
    reader, writer = machine.pipe
    written = 0
    cancelled = parked do
      machine.sleep
    ensure
      4.times do
        compute
        machine.write(writer, "x")
        written += 1
      end
    end
    beside = parked { machine.sleep(1000) }
    machine.terminate(cancelled)
    assert_ends_with Ringspun::TerminatedError, cancelled
    assert_equal 4, written
  ensure
    machine.terminate(beside)
    machine.yield
    [reader, writer].each { |fd| machine.close(fd) }
  end

  # Whoever wants the lock would queue up at it, and every unlock would be a switch from then on (docs/decisions/03).
  def test_a_turn_ends_on_the_way_to_the_next_lock_and_not_within_one
    reader, writer = machine.pipe
    mutex = Ringspun::Mutex.new
    events = []
    holder = machine.spin do
      2.times do
        mutex.synchronize { 20.times { machine.write(writer, "x") } }
        events << :unlocked
      end
    end
    other = machine.spin { events << :other }
    machine.join(holder, other)
    assert_equal %i[unlocked other unlocked], events
  ensure
    [reader, writer].each { |fd| machine.close(fd) }
  end

  # By the hooks of the fiber scheduler.
  def test_a_ticker_beside_stock_code_that_polls
    reader, writer = IO.pipe
    polls = [-> { sleep(0) }, -> { reader.wait_readable(0) },
             -> { IO.select([reader], [], [], 0) }, -> { IO.select(nil, [], [], 0) }]
    alternations = Ringspun.run { polls.map { |poll| beside_a_ticker(1, &poll) } }
    alternations.each { |events| assert_alternates events, 4 }
  ensure
    [reader, writer].each(&:close)
  end

  # Virtual time passes only while nobody can run, so what is due at a time is a matter of real machines.

  def test_a_timer_is_not_starved_by_yielding_strands
    woken = false
    sleeper = machine.spin { machine.sleep(0.01).then { woken = true } }
    busy_until { woken }
    sleeper.join
  end

  def test_a_deadline_is_not_starved_by_yielding_strands
    expired = false
    waiting = machine.spin do
      machine.timeout(0.01) { machine.sleep }
    rescue Ringspun::TimeoutError
      expired = true
    end
    busy_until { expired }
    waiting.join
  end

  def test_the_timeout_of_one_that_only_yields
    turns = 0
    assert_raises(Ringspun::TimeoutError) do
      machine.timeout(0.005) do
        loop do
          machine.yield
          flunk "the timeout never came" if (turns += 1) > 5_000_000
        end
      end
    end
  end

  def test_a_chain_of_new_strands_starves_nobody
    woken = false
    sleeper = machine.spin { machine.sleep(0.005).then { woken = true } }
    count = 0
    link = -> { machine.spin(&link) unless woken || (count += 1) > MANY }
    link.call
    sleeper.join
    yield_until { machine.metrics[:strands_live] == 1 }
    assert_operator count, :<=, MANY, "starved"
  end

  def test_strands_that_pass_each_other_items_starve_nobody
    woken = false
    sleeper = machine.spin { machine.sleep(0.005).then { woken = true } }
    there, back = Array.new(2) { Ringspun::Queue.new }
    echo = machine.spin { (item = there.pop) && back.push(item) until there.closed? }
    rounds = 0
    until woken || (rounds += 1) > MANY
      there.push(rounds)
      back.pop
    end
    there.close
    machine.join(echo, sleeper)
    assert_operator rounds, :<=, MANY, "starved"
  end
end

class SimulatedFairnessTest < Minitest::Test
  include FairnessTests
  include OnSimulation

  # A delay takes virtual time as well.
  def faults = false

  def compute(seconds = LONG) = machine.__send__(:sim_advance, seconds)
end
