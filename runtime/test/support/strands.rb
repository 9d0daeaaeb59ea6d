# frozen_string_literal: true

require_relative "patience"

# What tests of strands share.
module Strands
  # How often a strand may yield, and for how many seconds, before a test calls that "never": a process that is to start may
  # need the time, and a strand on a virtual clock the turns.
  TURNS_MAX = 100_000
  SECONDS_MAX = 20

  Failure = Class.new(StandardError)

  def machine = Ringspun::Machine.current

  # Lets others run until every one of these strands waits; answers them.
  def until_parked(*strands)
    strands.each { |strand| yield_until("it waits", strand) { strand.state == :parked } }
    strands.size == 1 ? strands.first : strands
  end

  # A strand that waits by now.
  def parked(&block) = until_parked(machine.spin(&block))

  # One that has ended with a Failure, and that nobody has joined.
  def failed(message)
    strand = machine.spin { raise Failure, message }
    yield_until { !strand.alive? }
    strand
  end

  def yield_until(what = "that", strand = nil)
    patience = nil
    turns = 0
    until yield
      turns += 1
      patience ||= Patience.new(SECONDS_MAX) if turns >= TURNS_MAX
      flunk ["#{what}: still not so after #{turns} turns", strand&.inspect].compact.join(": ") if patience&.over?
      machine.yield
    end
  end

  # What the block raises, or nil.
  def error_of
    yield
    nil
  rescue Exception => error
    raise if error.is_a?(Minitest::Assertion)

    error
  end

  # Like assert_raises for what a strand ended with.
  def assert_ends_with(expected, strand, pattern = //)
    error = error_of { strand.join }
    assert_kind_of expected, error
    assert_match pattern, error.message
    error
  end

  # Runs the block on a thread of its own, closes that thread's machine, and answers the block's value.
  def on_thread(&block)
    thread = Thread.new do
      block.call
    ensure
      Ringspun::Machine.current.close
    end
    thread.report_on_exception = false
    thread.value
  end

  # Runs the block on a machine without faults whose clock jumps, and answers what Simulation.run does.
  def simulate(**options, &block) = Ringspun::Simulation.run(faults: false, **options, &block)

  # Ruby code that a child process runs after `require "ringspun"`, with `machine` at hand.
  def child(code, *arguments, **options)
    ruby_child("require 'ringspun'\n$stdout.sync = true\ndef machine = Ringspun::Machine.current\n#{code}", *arguments, **options)
  end

  # The child's output, which must be all that it says, and it must end well.
  def assert_child(expected, code, *arguments, **options)
    answer = child(code, *arguments, **options)
    assert_equal [expected, ""], [answer.out, answer.err]
    assert_predicate answer.status, :success?
  end
end
