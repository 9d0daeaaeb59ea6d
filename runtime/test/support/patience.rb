# frozen_string_literal: true

require_relative "../../../bin/support/process_times"

# How long a test waits for what must come. Seconds for which this process, or one that is waited for, had no processor do not
# count: on a computer with much other work nobody is late.
class Patience
  # Asks until the answer is true, or it has taken too long.
  #
  # @param seconds [Numeric]
  # @param pause [Numeric] seconds between two questions
  # @return [Object, nil] the answer
  def self.poll(seconds, pause: 0.01) = new(seconds).until_true { yield || (sleep(pause) && nil) }

  # @param seconds [Numeric]
  # @param pids [Array<Integer>] processes that are waited for and are no children of this one
  def initialize(seconds, *pids)
    @seconds = seconds
    @times = [Process.pid, *pids].map { |pid| ProcessTimes.new(pid) }
    @began = now
    @waited_before = waited
  end

  # @return [Float] seconds that are left at least; 0 or less: it has taken too long
  def left
    left = @seconds - (now - @began)
    left.positive? ? left : left + [waited - @waited_before, 0].max
  end

  def over? = !left.positive?

  # Asks until the answer is true, or it has taken too long.
  #
  # @yieldparam left [Float] seconds for which the block may wait
  # @return [Object, nil] the answer
  def until_true
    answer = nil
    until answer
      left = self.left
      return unless left.positive?

      answer = yield left
    end
    answer
  end

  private

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def waited = @times.sum(&:waited)
end
