# frozen_string_literal: true

require_relative "../support/strands"
require_relative "../support/tally"

# Threads, machines and strands that push and pop at random, and are cancelled, killed and timed out meanwhile. Every value
# arrives exactly once; at one consumer those of each producer arrive in their order. Included by a test class, which says how
# many `seconds` a test may take.
module ChannelStorm
  include Strands

  KINDS = %i[plain strands select].freeze

  def test_many_producers_and_consumers
    storm(capacity: 3) { |one| consumers(one, 2) }
  end

  def test_a_channel_for_one_value
    storm(capacity: 1) { |one| consumers(one, 1) }
  end

  def test_consumers_that_are_cancelled_and_killed_all_the_time
    storm(capacity: 2) { |one| [*consumers(one, 1), canceller(one), killer(one)] }
  end

  def test_order_of_each_producer_at_a_single_consumer
    KINDS.each do |kind|
      storm(capacity: 4, seconds: share / 3) { |one| [__send__("consume_#{kind}", one)] }
      @received.each_value { |numbers| assert_equal numbers.sort, numbers, "seed #{@seed}" }
    end
  end

  private

  def share = seconds.fdiv(ChannelStorm.public_instance_methods(false).grep(/\Atest_/).size)

  def random = Random.new(@seed + (@random += 1))

  def storm(capacity:, seconds: share)
    @seed, @random = Random.new_seed, 0
    @lock, @received = Thread::Mutex.new, Hash.new { |hash, producer| hash[producer] = [] }
    @end = Minitest.clock_time + seconds
    one = Ringspun::Channel.new(capacity)
    takers = yield one
    sent = producers(one).map(&:value).reduce(:merge)
    one.close
    takers.each(&:value)
    check(one, sent)
  end

  def check(one, sent)
    assert_equal [0, 0], [one.size, one.num_waiting], "seed #{@seed}"
    assert_operator sent.values.sum, :>, 0
    sent.each { |producer, count| assert_equal count, @received[producer].size, "producer #{producer}, seed #{@seed}" }
    @received.each_value { |numbers| assert_equal Array.new(numbers.size) { |i| i }, numbers.sort, "seed #{@seed}" }
    Tally.add(channel_values: sent.values.sum)
  end

  def got(value) = @lock.synchronize { @received[value[0]] << value[1] }

  def time_left? = Minitest.clock_time < @end

  def with_machine(&block)
    Thread.new do
      Ringspun.run { |machine| block.call(machine) }
    ensure
      Ringspun::Machine.current.close
    end
  end

  # --- producers: each answers how many it has sent ---

  def producers(one)
    [Thread.new { produce(:plain, random) { |value| one.push(value) } },
     Thread.new { produce(:impatient, random) { |value| nil until one.push(value, timeout: 0.000_1) } },
     with_machine { produce(:root, random) { |value| Ringspun.select { |on| on.push(one, value) } } },
     with_machine do |machine|
       strands = Array.new(3) { |i| machine.spin { produce([:strand, i], random) { |value| one.push(value) } } }
       machine.await(*strands).reduce(:merge)
     end]
  end

  def produce(name, random)
    count = 0
    loop do
      random.rand(1..30).times { yield([name, count]).then { count += 1 } }
      break unless time_left? # which may have passed before it could begin

      random.rand < 0.3 ? sleep(0.000_05 * random.rand(4)) : Thread.pass
    end
    { name => count }
  end

  # --- consumers ---

  def consumers(one, each) = Array.new(each) { KINDS.map { |kind| __send__("consume_#{kind}", one) } }.flatten

  def consume_plain(one) = Thread.new { one.each { |value| got(value) } }

  def consume_strands(one)
    alone = one.capacity == 4
    with_machine do |machine|
      strands = Array.new(alone ? 1 : 4) { machine.spin { one.each { |value| got(value) } } }
      machine.join(*strands)
    end
  end

  def consume_select(one)
    with_machine do
      selector = Ringspun::Selector.new { |on| on.pop(one) }
      while (value = selector.wait(timeout: 0.000_5)) || !one.closed? || one.size.positive?
        got(value) if value
      end
      selector.close
    end
  end

  # Strands that are ended wherever they are, also between the hand-over and their next step.
  def canceller(one)
    random = self.random
    with_machine do |machine|
      while time_left?
        strands = Array.new(5) { machine.spin { 3.times { (value = one.pop) && got(value) } } }
        random.rand(5).times { machine.yield }
        machine.sleep(0.000_1 * random.rand(3))
        strands.each { |strand| machine.terminate(strand) }
        strands.each { |strand| error_of { strand.join } }
      end
    end
  end

  # A value that the thread has been given when it is killed is its own, or somebody else's.
  def killer(one)
    random = self.random
    Thread.new do
      while time_left?
        victims = Array.new(3) { Thread.new { Thread.handle_interrupt(Object => :on_blocking) { take_some(one) } } }
        sleep(0.000_1 * random.rand(5))
        victims.each { |victim| victim.kill.join }
      end
    end
  end

  def take_some(one)
    5.times do
      value = one.pop
      Thread.handle_interrupt(Object => :never) { got(value) } if value
    end
  end
end
