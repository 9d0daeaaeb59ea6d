# frozen_string_literal: true

require_relative "../support/strands"
require_relative "../support/tally"

# Threads and strands that tell each other things at random, for a while. What must hold is counted: every value arrives
# exactly once, each sender's in order; a lock has one holder; what went into a queue comes out of it or is still there.
# Included by a test class, which says how many `seconds` a test may take.
module WakeStorm
  include Strands

  SENDERS = 3
  RECEIVERS = 8

  # How far the senders may be ahead, or they would fill the memory.
  AHEAD_MAX = 2_000

  END_OF_STREAM = :end

  # How many values one sender has sent to each receiver.
  Sender = Data.define(:index, :random, :counts)

  def test_threads_wake_parked_strands
    storm { machine.park }
  end

  def test_threads_wake_parked_strands_beside_one_that_computes
    computing { storm { machine.park } }
  end

  # A value that comes in the moment of the timeout is there for the next park.
  def test_threads_wake_strands_whose_parks_time_out
    storm { |random| park_for_a_moment(random) }
  end

  # The receivers run all the time, so that values find them parked, ready and running.
  def test_threads_wake_strands_that_also_yield_and_sleep
    storm do |random|
      random.rand < 0.3 ? machine.yield : machine.sleep(0.000_05 * random.rand(3))
      machine.park
    end
  end

  def test_strands_come_and_are_terminated_from_threads
    seed = Random.new_seed
    random = Random.new(seed)
    mine = machine
    victims = Thread::Queue.new
    threads = Array.new(SENDERS) { Thread.new { while (strand = victims.pop) do mine.terminate(strand) end } }
    unwound = started = 0
    until_time_is_up do
      strands = Array.new(20) do
        machine.spin do
          started += 1
          machine.sleep(random.rand < 0.5 ? 0.000_1 * random.rand : nil)
          machine.park
        ensure
          unwound += 1
        end
      end
      machine.yield if random.rand < 0.7
      strands.shuffle(random: random).each { |strand| victims << strand }
      strands.each { |strand| assert_kind_of Ringspun::TerminatedError, error_of { strand.join }, "seed #{seed}" }
    end
    Tally.add(terminated: started)
    assert_operator started, :>, 0
    assert_equal started, unwound, "seed #{seed}"
    assert_equal [1, 0], machine.metrics.values_at(:strands_live, :timers), "seed #{seed}"
  ensure
    victims&.close
    threads&.each(&:join)
  end

  def test_terminated_strands_leave_queues_and_locks_as_they_must_be
    @random = Random.new(seed = Random.new_seed)
    @mutex = Ringspun::Mutex.new
    @queue = Ringspun::SizedQueue.new(5)
    @holders = @pushed = 0
    @popped = []
    until_time_is_up { churn }
    refute_predicate @mutex, :locked?, "seed #{seed}"
    assert_equal [0, 0], [@mutex.waiting, @queue.num_waiting], "seed #{seed}"
    @popped << @queue.pop until @queue.empty?
    Tally.add(items: @pushed)
    assert_operator @pushed, :>, 0
    assert_equal [@pushed, @pushed], [@popped.size, @popped.uniq.size], "seed #{seed}"
    assert_equal [1, 0], machine.metrics.values_at(:strands_live, :timers), "seed #{seed}"
  end

  private

  # --- time ---

  # Each test has its share.
  def share = seconds.fdiv(WakeStorm.public_instance_methods(false).grep(/\Atest_/).size)

  def until_time_is_up
    deadline = Minitest.clock_time + share
    yield while Minitest.clock_time < deadline
  end

  # --- values from threads ---

  # The block waits for a value, in a receiver, and answers it.
  def storm(&wait)
    @seed = Random.new_seed
    @sent = @received = 0
    receivers = Array.new(RECEIVERS) { |i| machine.spin { receive(Random.new(@seed + i), &wait) } }
    senders = senders_to(receivers)
    received = receivers.map(&:await)
    sent = senders.map(&:value)
    Tally.add(values: @received)
    assert_operator sent.flatten.sum, :>, 0
    assert_equal sent.transpose, received, "seed #{@seed}"
    assert_equal [1, 0], machine.metrics.values_at(:strands_live, :timers), "seed #{@seed}"
  end

  def senders_to(receivers)
    mine = machine
    Array.new(SENDERS) do |i|
      Thread.new { send_to(mine, receivers, Sender.new(i, Random.new(@seed - i), Array.new(RECEIVERS, 0))) }
    end
  end

  # Answers how many values each receiver was sent.
  def send_to(machine, receivers, sender)
    index, random, counts = sender.index, sender.random, sender.counts
    until_time_is_up do
      random.rand(1..50).times do
        to = random.rand(RECEIVERS)
        machine.schedule(receivers[to], [index, counts[to]])
        counts[to] += 1
      end
      # Mostly the machine is to fall asleep in between.
      sleep(0.000_1 * random.rand(5)) if random.rand < 0.7 || counts.sum - @received > AHEAD_MAX
    end
    receivers.each { |receiver| machine.schedule(receiver, [index, END_OF_STREAM]) }
    counts
  end

  # Answers how many values came from each sender.
  def receive(random)
    counts = Array.new(SENDERS, 0)
    ended = 0
    while ended < SENDERS
      sender, number = yield(random)
      next ended += 1 if number == END_OF_STREAM

      assert_equal counts[sender], number, "from sender #{sender}, seed #{@seed}"
      counts[sender] += 1
      @received += 1
    end
    counts
  end

  def park_for_a_moment(random)
    machine.park(0.000_1 * random.rand(4))
  rescue Ringspun::TimeoutError
    retry
  end

  def computing
    done = false
    thread = Thread.new { 1 + 1 until done }
    yield
  ensure
    done = true
    thread.join
  end

  # --- strands that are terminated wherever they are ---

  def churn
    strands = Array.new(12) { machine.spin { work } }
    @random.rand(4).times { machine.yield }
    strands.shuffle(random: @random).each do |strand|
      machine.terminate(strand)
      machine.yield if @random.rand < 0.2
    end
    strands.each { |strand| assert_includes [NilClass, Ringspun::TerminatedError], error_of { strand.join }.class }
  end

  def work
    5.times do
      case @random.rand(4)
      when 0 then hold_the_lock
      when 1 then push
      when 2 then @popped << @queue.pop
      else machine.yield
      end
    end
  end

  def hold_the_lock
    @mutex.synchronize do
      @holders += 1
      assert_equal 1, @holders
      machine.yield
    ensure
      @holders -= 1
    end
  end

  # A push that has handed its item over returns, even when it was terminated meanwhile.
  def push
    item = Object.new
    @queue.push(item)
    @pushed += 1
  end
end
