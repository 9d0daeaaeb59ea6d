# frozen_string_literal: true

require "support/strands"

# What Queue and SizedQueue have in common. Where Thread::Queue has an answer, it is the same, but for the errors' classes.
class QueueCase < Minitest::Test
  include Strands

  # How many random runs of each kind.
  ROUNDS = GCStress::WANTED ? 1 : 50

  # Operations that do not wait.
  OPERATIONS = [
    ->(q) { q.push(1) }, ->(q) { q << 2 }, ->(q) { q.pop(true) }, ->(q) { q.pop(timeout: 0) }, ->(q) { q.shift(true) },
    ->(q) { q.size }, ->(q) { q.empty? }, ->(q) { q.num_waiting }, ->(q) { q.closed? }, ->(q) { q.clear },
    ->(q) { q.pop(1, 2) }, ->(q) { q.pop(no: 1) }
  ].freeze

  # On the machine of this thread, on a simulated one, and on one where much goes wrong.
  def on_both(&block)
    Ringspun.run(&block)
    simulate(&block)
    Ringspun::Simulation.run(seed: 1, &block)
  end

  def cancel(strand)
    machine.terminate(strand)
    assert_ends_with Ringspun::TerminatedError, strand
  end

  def elapsed_of
    before = machine.now
    yield
    (machine.now - before).round(6)
  end

  # What an operation answers or raises, in words that fit the stock classes and ours.
  def outcome_of(queue)
    answer = yield queue
    answer.equal?(queue) ? :self : answer
  rescue ThreadError, Ringspun::UsageError
    :would_wait
  rescue ClosedQueueError, Ringspun::ClosedError
    :closed
  rescue ArgumentError
    :wrong_arguments
  end

  def assert_same_as_stock(ours, stock, what = nil, &operation)
    assert_equal [outcome_of(stock, &operation)], [outcome_of(ours, &operation)], what
  end
end
