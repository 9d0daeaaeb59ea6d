# frozen_string_literal: true

require "io/nonblock"
require "socket"
require "tmpdir"
require_relative "../support/strands"
require_relative "../support/tally"
require_relative "io_storm/round"

Warning[:experimental] = false # IO::Buffer is, and Ruby says so at every first use

# Random rounds of input and output with the real kernel: strands that read, write, connect, accept and wait for children, and
# are told things, time out, are cancelled and lose their descriptors meanwhile. What must hold: every byte comes once and in
# its place, an op that raises has moved nothing, and no strand, op, timer or descriptor is left. The seed draws the program;
# what the kernel and the threads make of it differs from run to run. Included by a test class, which says how many `seconds`
# a test may take.
module IOStorm
  include Strands

  # What Thread#raise throws at a round.
  Hit = Class.new(StandardError)

  OPTIONS = [{}, { file_io: :offload }, { workers_max: 1 }, { trace: true }].freeze

  # Workers that were left inside a call come back in a moment.
  SETTLE_SECONDS = 10

  def test_rounds_on_one_machine
    until_time_is_up do |seed|
      round = Round.new(seed)
      round.run(machine)
      look_back(machine, round)
    end
  end

  def test_rounds_on_machines_of_their_own
    until_time_is_up do |seed|
      round = Round.new(seed)
      on_own_machine(seed) do |machine|
        round.run(machine)
        look_back(machine, round)
      end
    end
  end

  def test_machines_closed_in_the_middle_of_a_round
    until_time_is_up do |seed|
      round = Round.new(seed)
      on_own_machine(seed) do |machine|
        strand = machine.spin { round.run(machine) }
        machine.sleep(0.02 * Random.new(seed).rand)
        machine.close
        refute_predicate strand, :alive?
      end
      assert_empty round.complaints
    end
  end

  # What is hit may lose count, so only the machine's own end is looked at.
  def test_threads_hit_in_the_middle_of_a_round
    until_time_is_up do |seed|
      round = Round.new(seed)
      begun = Thread::Queue.new
      thread = Thread.new { hit_round(round, seed, begun) }
      thread.report_on_exception = false
      sleep(0.02 * Random.new(seed).rand) if begun.pop
      thread.raise(Hit)
      assert_includes [NilClass, Hit], error_of { join_or_give_up(thread, round) }.class
      @descriptors = @descriptors_before = nil
    end
  end

  private

  def hit_round(round, seed, begun)
    mine = nil
    Thread.handle_interrupt(Hit => :never) do
      mine = own_machine(seed)
      begun << true
      Thread.handle_interrupt(Hit => :immediate) { round.run(mine) }
    ensure
      begun.close
      round.close_all
      mine&.close
    end
  end

  # Ends the process: a thread that is deaf to exceptions would keep it.
  def join_or_give_up(thread, round)
    return if thread.join(Round::LIMIT_SECONDS)

    warn "SEED=#{round.seed}: hit, and it hangs on #{round.machine.inspect}:\n#{round.machine.describe_strands}"
    exit!(false)
  end

  def after_teardown
    @descriptors_before ||= Leaks.descriptors # a test of hits has lost some
    super
  end

  # --- time ---

  def share = seconds.fdiv(IOStorm.public_instance_methods(false).grep(/\Atest_/).size)

  def until_time_is_up
    seed = first = Integer(ENV.fetch("SEED") { Random.new_seed % 1_000_000_000 })
    deadline = Minitest.clock_time + share
    while Minitest.clock_time < deadline || seed == first
      round(seed) { yield seed }
      break if ENV["SEED"]

      seed += 1
    end
  end

  # --- one round ---

  def round(seed)
    Tally.add(rounds: 1)
    yield
    check_descriptors
  rescue Minitest::Assertion, StandardError => error
    places = error.backtrace.grep(/io_storm|ringspun/).join("\n")
    flunk "SEED=#{seed} on #{machine.backend.name}: #{error.class}: #{error.message}\n#{places}"
  ensure
    Process.waitall # those of a round that had no time for them
  end

  # The first round opens what Ruby opens when it is first needed. A worker that was left inside an open closes what it got
  # when it comes back, which may be after its machine's end.
  def check_descriptors
    deadline = Minitest.clock_time + SETTLE_SECONDS
    sleep(0.001) until (left = descriptors_left).empty? || Minitest.clock_time > deadline
    assert_empty left, "descriptors outlive the round"
    @descriptors = Leaks.descriptors
  end

  def descriptors_left
    now = Leaks.descriptors
    before = @descriptors || now
    now.to_h { |target, count| [target, count - before.fetch(target, 0)] }.select { |_, count| count.positive? }
  end

  def look_back(machine, round)
    assert_empty round.complaints
    deadline = Minitest.clock_time + SETTLE_SECONDS
    machine.sleep(0.001) until machine.metrics[:ops_in_flight].zero? || Minitest.clock_time > deadline
    assert_equal [1, 0, 0, 0], machine.metrics.values_at(:strands_live, :ops_in_flight, :timers, :run_queue),
                 machine.describe_strands
  end

  def own_machine(seed) = Ringspun::Machine.new(**OPTIONS[seed % OPTIONS.size])

  def on_own_machine(seed)
    on_thread do
      machine = own_machine(seed)
      yield machine
    end
  end
end
