# frozen_string_literal: true

require "test_helper"
require "support/strands"

# What a TracePoint raises while a fiber for a strand is made, or as it begins: the strand has that error, or one that says so.
# Nothing else of CRuby raises there, but for the lack of memory and of stacks.
class TracedFibersTest < Minitest::Test
  include AnyBackend
  include Strands

  class Traced < StandardError; end

  def test_in_the_making_of_a_fiber
    error = failed_by(:c_call) { |at| at.method_id == :new && at.self == Fiber }
    assert_instance_of Traced, error
  end

  # CRuby raises that in the root, and so it ends the run.
  def test_as_a_fiber_begins
    known = {}.compare_by_identity
    error = nil
    assert_raises(Traced) { error = failed_by(:fiber_switch) { known.key?(Fiber.current) ? false : known[Fiber.current] = true } }
    assert_nil error
  end

  private

  # The error of the strand for which a new fiber is made, while others wait in those that there are.
  def failed_by(event, &matches)
    on_thread do
      Ringspun.run(on_error: ->(*) {}) do |machine|
        gate = Ringspun::Queue.new
        waiting = Array.new(3) { machine.spin { gate.pop } }
        machine.yield
        trace = TracePoint.new(event) { |at| matches.call(at) && trace.disable && raise(Traced, "traced") }
        trace.enable(target_thread: Thread.current)
        begin
          machine.spin { :value }.await
        rescue StandardError => error
          error
        ensure
          trace.disable
          waiting.each { |_| gate.push(true) }
          assert_equal [true] * 3, waiting.map(&:await)
          assert_equal :another, machine.spin { :another }.await
        end
      end
    end
  end
end
