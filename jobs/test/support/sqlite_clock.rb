# frozen_string_literal: true

require "ringspun/jobs/storage/sqlite"

# The clocks of a storage in a file, as a test has them: somebody sets the time of day, and time passes.
module SqliteClock
  @step = @passed = 0

  class << self
    # @return [Numeric] seconds by which the time of day was set
    attr_accessor :step

    # @return [Numeric] seconds that have passed
    attr_accessor :passed

    def reset = @step = @passed = 0
  end

  def now = super + SqliteClock.step + SqliteClock.passed

  private

  def steady = super + SqliteClock.passed
  def since_boot = super + SqliteClock.passed

  Ringspun::Jobs::Storage::Sqlite.const_get(:Tables).prepend(self)
end
