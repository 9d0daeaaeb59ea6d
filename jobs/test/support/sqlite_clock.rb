# frozen_string_literal: true

require "ringspun/jobs/storage/sqlite"

# The clocks of a storage in a file, as a test has them: somebody sets the time of day, and time passes by the hand of the test
# alone, however long that is held up.
module SqliteClock
  @step = @passed = 0
  @began = {}

  class << self
    # @return [Numeric] seconds by which the time of day was set
    attr_accessor :step

    # @return [Numeric] seconds that have passed
    attr_accessor :passed

    # From now on the clocks stand still.
    def stop = @began = { now: Process::CLOCK_REALTIME, steady: Process::CLOCK_MONOTONIC, since_boot: Process::CLOCK_BOOTTIME }
                        .transform_values { |clock| Process.clock_gettime(clock) }

    # They go on by themselves.
    def reset
      @step = @passed = 0
      @began = {}
    end

    # @return [Float, nil] when the clock was stopped
    def began(clock) = @began[clock]
  end

  def now = (SqliteClock.began(:now) || super) + SqliteClock.step + SqliteClock.passed

  private

  def steady = (SqliteClock.began(:steady) || super) + SqliteClock.passed
  def since_boot = (SqliteClock.began(:since_boot) || super) + SqliteClock.passed

  Ringspun::Jobs::Storage::Sqlite.const_get(:Tables).prepend(self)
end
