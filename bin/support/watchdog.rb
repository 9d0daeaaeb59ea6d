# frozen_string_literal: true

require_relative "process_times"

# Says when a test is to be ended: when it computes without an end, when it waits for what never comes, or when it takes too long
# in any case. It counts seconds of the processor: on a machine with much other work, or that stood still, no test is late.
class Watchdog
  # cpu: seconds that a test and its children may use. quiet: seconds after which a test is stuck that has used next to nothing
  # and has not waited for a processor either. wall: seconds after which a test is ended whatever it does.
  Limits = Data.define(:cpu, :quiet, :wall) do
    # @param seconds [String, nil] of RINGSPUN_TEST_LIMIT_SECONDS: for tests that take longer than others
    def self.of(seconds)
      seconds ? new(Float(seconds), Float(seconds), [600, 2 * Float(seconds)].max) : new(90, 60, 600)
    end
  end

  NEXT_TO_NOTHING = 0.05 # seconds

  # The most seconds between two looks that count.
  LOOK_SECONDS_MAX = 2

  # @param limits [Limits]
  # @yieldreturn [ProcessTimes::Sample, nil] what the tests' process has used until now
  def initialize(limits, &sample)
    @limits = limits
    @sample = sample
    begin_test(nil)
  end

  # Another test begins. What it uses counts from the next look on.
  #
  # @param name [String, nil] nil: none runs
  # @param now [Float] seconds
  def begin_test(name, now = 0)
    @name = name
    @looked = now
    @seconds = @last_active_at = 0
    @first = @last_active = nil
  end

  # To be called about each second.
  #
  # @param now [Float] seconds
  # @return [String, nil] why the test is to be ended
  def look(now)
    @seconds += [now - @looked, LOOK_SECONDS_MAX].min
    @looked = now
    return unless @name && (sample = @sample.call)

    note(sample)
    reason(sample)
  end

  private

  # It is less than before when a child has ended: for how long that one had waited for a processor is known no more.
  def note(sample)
    @first ||= sample
    return if @last_active && (sample.active - @last_active).abs < NEXT_TO_NOTHING

    @last_active = sample.active
    @last_active_at = @seconds
  end

  def reason(sample)
    used = sample.cpu - @first.cpu
    if used > @limits.cpu then format("it has used %<used>.0f s of CPU", used:)
    elsif @seconds - @last_active_at >= @limits.quiet
      format("it waits, and has done nothing for %<quiet>.0f s", quiet: @seconds - @last_active_at)
    elsif @seconds >= @limits.wall then format("it has run for %<seconds>.0f s", seconds: @seconds)
    end
  end
end
