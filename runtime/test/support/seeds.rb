# frozen_string_literal: true

# The seeds of random programs. RINGSPUN_SEED names a single one, to run it again. RINGSPUN_SEEDS says how many there are to be.
# Otherwise a test takes as many as it asks for, times RINGSPUN_SEEDS_TIMES: more by night, and a part where another pass runs the
# whole. They begin anew each day, so that every day tries others.
module Seeds
  SECONDS_A_DAY = 24 * 60 * 60
  SEEDS_A_DAY = 1_000_000

  # @param count [Integer] how many, where the environment does not say
  # @return [Array<Integer>]
  def self.of_the_day(count, env: ENV, now: Time.now)
    return [number("RINGSPUN_SEED", env:)] if env["RINGSPUN_SEED"]

    first = day(now) * SEEDS_A_DAY
    count = env["RINGSPUN_SEEDS"] ? number("RINGSPUN_SEEDS", env:) : part(count, env:)
    Array.new(count) { |index| first + index }
  end

  # @param now [Time]
  # @return [Integer] the number of the day
  def self.day(now = Time.now) = now.to_i / SECONDS_A_DAY

  # @param name [String] of a variable that is set
  # @return [Integer]
  def self.number(name, env: ENV)
    Integer(env[name])
  rescue ArgumentError
    raise ArgumentError, "#{name}=#{env[name]} is no number"
  end

  # @param count [Integer] how often a test tries its luck
  # @return [Integer] times RINGSPUN_SEEDS_TIMES
  def self.part(count, env: ENV) = (count * Rational(env.fetch("RINGSPUN_SEEDS_TIMES", 1))).ceil
end
