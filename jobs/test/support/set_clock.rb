# frozen_string_literal: true

require_relative "../../../runtime/test/support/preloaded"

# The time of day as other programs have it, which is wrong by a number of seconds.
class SetClock
  # @return [String] the library, for LD_PRELOAD
  def self.library = Preloaded.library(File.expand_path("set_clock.c", __dir__))

  # @return [Hash{String => String}] the environment of programs whose clock is always wrong by the same
  def self.wrong_by(seconds) = { "LD_PRELOAD" => library, "CLOCK_SHIFT_SECONDS" => seconds.to_s }

  # @param path [String] of a file that the programs can read as long as they run
  def initialize(path)
    @path = path
    set(0)
  end

  # @param stands [Boolean] the time of day goes on by {#set} alone
  # @return [Hash{String => String}] the environment of programs that have this clock
  def env(stands: false)
    { "LD_PRELOAD" => SetClock.library, "CLOCK_SHIFT_FILE" => @path, "CLOCK_STANDS" => ("1" if stands) }.compact
  end

  # @param seconds [Integer]
  def set(seconds) = File.binwrite(@path, [seconds].pack("q"), mode: File.exist?(@path) ? "r+" : "w")
end
