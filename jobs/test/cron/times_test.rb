# frozen_string_literal: true

require "jobs_helper"
require "support/seeds"

# When the ticks of a schedule are, above all where clocks are put forward and back.
class CronTimesTest < Minitest::Test
  include AnyBackend

  Jobs = Ringspun::Jobs
  Times = Jobs.const_get(:Cron)::Times

  # Ticks of a schedule of whole minutes, found minute by minute: no arithmetic with zones, and none of fugit's. What a clock on
  # the wall shows, the C library says.
  class Oracle
    def initialize(zone, minutes:, hours: nil, weekdays: nil)
      @zone = zone
      @minutes = minutes
      @hours = hours
      @weekdays = weekdays
    end

    # From minute to minute the clock shows one reading after the other. One that it leaves out counts when it does, and one
    # that it has shown before does not count, unless the schedule is of every hour.
    def ticks(from, til)
      before = ENV.fetch("TZ", nil)
      ENV["TZ"] = @zone
      latest = reading(from - 60)
      (from..til).step(60).select do |time|
        now = reading(time)
        next match?(now) unless @hours

        shown = ((latest + 1)..now).any? { |each| match?(each) }
        latest = [latest, now].max
        shown
      end
    ensure
      ENV["TZ"] = before
    end

    private

    # Minutes since the epoch as the wall shows them.
    def reading(time) = Time.at(time).then { |at| Time.utc(at.year, at.month, at.day, at.hour, at.min).to_i / 60 }

    def match?(reading)
      time = Time.at(reading * 60).utc
      @minutes.include?(time.min) && (@hours.nil? || @hours.include?(time.hour)) &&
        (@weekdays.nil? || @weekdays.include?(time.wday))
    end
  end

  # Zones, and a day on which each changes its clock, by the half hour or by a day.
  CHANGES = { "Europe/Berlin" => %w[2026-03-29 2026-10-25], "America/New_York" => %w[2026-03-08 2026-11-01],
              "Australia/Lord_Howe" => %w[2026-04-05 2026-10-04], "America/Sao_Paulo" => %w[2017-10-15 2018-02-18],
              "Pacific/Apia" => %w[2011-12-30], "Africa/Casablanca" => %w[2026-02-15 2026-03-22],
              "Asia/Kathmandu" => %w[1986-01-01], "UTC" => %w[2026-03-29] }.freeze

  def epoch(text) = Time.new(text).to_i

  def shown(*ticks) = ticks.map { |tick| Time.at(tick).utc.strftime("%FT%TZ") }

  # The ticks after a time.
  def after(times, from, count)
    Array.new(count) { from = times.after(from) }
  end

  def refused(...) = assert_raises(Jobs::ConfigError) { Times.new(...) }.message

  def test_a_time_that_does_not_exist_is_when_the_clock_is_put_forward
    berlin = Times.new("30 2 * * *", "Europe/Berlin")
    assert_equal %w[2026-03-28T01:30:00Z 2026-03-29T01:00:00Z 2026-03-30T00:30:00Z],
                 shown(*after(berlin, epoch("2026-03-28T00:00:00Z"), 3))
    assert_equal "2026-03-29T01:00:00Z", shown(berlin.until(epoch("2026-03-29T22:00:00Z"))).first
    at_midnight = Times.new("0 0 * * *", "America/Sao_Paulo")
    assert_equal %w[2017-10-14T03:00:00Z 2017-10-15T03:00:00Z 2017-10-16T02:00:00Z],
                 shown(*after(at_midnight, epoch("2017-10-14T00:00:00Z"), 3))
  end

  def test_of_a_time_that_comes_twice_the_first_counts
    berlin = Times.new("every day at 2:30", "Europe/Berlin")
    assert_equal %w[2026-10-24T00:30:00Z 2026-10-25T00:30:00Z 2026-10-26T01:30:00Z],
                 shown(*after(berlin, epoch("2026-10-24T00:00:00Z"), 3))
    ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-25T01:30:01Z"].each do |now|
      assert_equal "2026-10-25T00:30:00Z", shown(berlin.until(epoch(now))).first
    end
  end

  # An hour that comes twice has twice as many, and one that does not come has none.
  def test_each_half_hour_goes_on_as_hours_do
    berlin = Times.new("every 30 minutes", "Europe/Berlin")
    %w[2026-03-29T00:00:00Z 2026-10-24T23:00:00Z].each do |from|
      ticks = after(berlin, epoch(from), 10)
      assert_equal [1800], ticks.each_cons(2).map { |one, other| other - one }.uniq
    end
  end

  def test_seconds
    assert_equal [15, 30, 45, 60], after(Times.new("every 15 seconds"), 0, 4)
    assert_equal [30, 45], [Times.new("*/15 * * * * *").until(44), Times.new("*/15 * * * * *").until(45.9)]
  end

  def test_zones
    assert_equal %w[UTC 02:00], [Times.new("0 2 * * *").zone, shown(Times.new("0 2 * * *").after(0)).first[11, 5]]
    { "0 2 * * * Asia/Tokyo" => nil, "every day at 2am in Asia/Tokyo" => nil, "0 2 * * *" => "Asia/Tokyo" }.each do |text, zone|
      one = Times.new(text, zone)
      assert_equal ["Asia/Tokyo", "0 2 * * *", 17 * 3600], [one.zone, one.cron, one.after(0)]
    end
    assert_equal "Europe/Berlin", Times.new("0 2 * * *", default: "Europe/Berlin").zone
    assert_match(/no time zone "Mars\/X"; write one such as "Europe\/Berlin"/, refused("0 2 * * *", "Mars/X"))
    assert_match(/no time zone ""/, refused("0 2 * * *", ""))
    assert_match(/has a zone, and so has zone: "UTC"; leave one of them out/, refused("0 2 * * * Asia/Tokyo", "UTC"))
  end

  def test_what_is_no_schedule_is_refused_with_what_to_do
    ["every blue moon", "61 * * * *", "", "* * * * * * *", "@reboot", "2030-01-01", "0 4 * * * Mars/X", "0 0 30 2 *",
     "every 2 weeks", "x" * 5000, "0 4 * * * UTC+3", "every day at 4am UTC+3", "0 0 * * mon%0"].each do |text|
      assert_match(/is no schedule, or names a time that never comes or a zone that is not: write "every day at 4am" or/,
                   refused(text), text)
    end
    assert_match(/"1h" is no schedule.*it is a duration; write "every hour"/, refused("1h"))
    assert_match(/must be a text such as "every day at 4am", got 5/, refused(5))
  end

  def test_a_schedule_that_never_comes
    ["0 0 31 2,4 *", "0 0 30 2 *"].each { |text| assert_match(/never comes/, refused(text)) }
  end

  # They would be hourly, at 0 and 45, daily, and twice a month.
  def test_what_cron_cannot_say_evenly_is_refused
    ["every 90 minutes", "every 45 minutes", "every 36 hours", "every 7 seconds", "every 10 days", "every 5 months",
     "every 0 minutes"].each do |text|
      assert_match(/has no even times: .*write the times as crontab has them/, refused(text))
    end
    assert_match(/hours may be 1, 2, 3, 4, 6, 8, 12; or/, refused("every 5h"))
    ["every 20 minutes", "every 6 hours", "every 2 months", "every 1 day", "*/45 * * * *"].each { |text| Times.new(text) }
  end

  def test_a_text_of_several_schedules_is_refused_with_each
    assert_match(/is several: give each an entry of its own: "15 9 \* \* \*", "30 17 \* \* \*"/,
                 refused("every day at 9:15 and 17:30"))
    assert_equal "0 9,17 * * *", Times.new("every day at 9 and 17").cron
  end

  # Beside the oracle, in the days around a change of the clock.
  def test_random_schedules_as_the_oracle_finds_them
    Seeds.of_the_day(25).each { |seed| try(Random.new(seed), "RINGSPUN_SEED=#{seed} bin/test jobs/test/cron/times_test.rb") }
  end

  private

  def try(random, again)
    zone = CHANGES.keys.sample(random: random)
    day = Time.new("#{CHANGES[zone].sample(random: random)}T00:00:00Z").to_i
    minutes = Array.new(random.rand(1..3)) { [0, 15, 30, 45, random.rand(60)].sample(random: random) }.uniq.sort
    hours = [nil, Array.new(random.rand(1..4)) { random.rand(5) }.uniq.sort, [random.rand(24)]].sample(random: random)
    weekdays = [nil, nil, Array.new(4) { random.rand(7) }.uniq.sort].sample(random: random)
    text = "#{minutes.join(",")} #{hours&.join(",") || "*"} * * #{weekdays&.join(",") || "*"}"
    from = day - 90_000 - (random.rand(60) * 60)
    til = day + 180_000
    expected = Oracle.new(zone, minutes:, hours:, weekdays:).ticks(from, til)
    compare(Times.new(text, zone), from, til, expected, "#{text} #{zone}, #{again}")
  end

  def compare(times, from, til, expected, what)
    found = []
    tick = from - 1
    found << tick while (tick = times.after(tick)) <= til
    assert_equal shown(*expected), shown(*found), what
    return if expected.empty?

    expected.each_cons(2) do |one, other|
      assert_equal [one, one, other], [times.until(one), times.until(other - 1), times.until(other)], what
    end
  end
end
