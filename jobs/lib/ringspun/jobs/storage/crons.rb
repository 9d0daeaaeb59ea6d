# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      # What is kept of an entry of a schedule, so that each of its ticks is pushed once, by whichever process.
      #
      # - `name`; and `source`, the program that has it
      # - `schedule`: a text that is another one when its ticks are others
      # - `text`: what the program needs to know of it; no storage reads it
      # - `tick`: the last one that was pushed or passed, seconds since the epoch; at first when the entry came
      # - `seen`: when a worker has last said that it has it
      # - `paused`: true or false
      # - `runs`: the last {CRON_RUNS_MAX}, the newest first
      Cron = Struct.new(:name, :source, :schedule, :text, :tick, :seen, :paused, :runs)

      # A run of an entry. `tick`: nil if a person has asked for it; `at`: when it was pushed; `jid`: the job's, nil when there is
      # none, for another one holds its lock or a middleware has stopped it.
      CronRun = Struct.new(:tick, :at, :jid)

      # The number of runs that are kept of each entry.
      CRON_RUNS_MAX = 20

      # The seconds after which an entry that no worker has had is forgotten when its program comes without it. Workers say every
      # 30 what they have.
      CRON_STALE_SECONDS = 180

      # The seconds after which it is forgotten whatever its program does, a month: that may never come again.
      CRON_FORGET_SECONDS = 30 * 86_400

      # The seconds, a day, by which a tick may be later than now. One that is later still was pushed while the clock was wrong,
      # and does not count.
      CRON_AHEAD_SECONDS = 86_400

      # @!group Schedules

      # Says which entries a program has: all of them. One that is new has now as its last tick, and so has one whose schedule has
      # changed. Others of that program are forgotten unless a worker has had them lately: one that is older, or runs another
      # part of the program.
      #
      # A name that another program has, and had lately, stays that one's.
      #
      # @param source [String] the program
      # @param crons [Array<Cron>] with name, schedule and text
      # @param fresh [Boolean] false: those that are there stay as they are, for the caller has said before what they are
      # @param stale [Numeric] seconds: what "lately" means
      # @return [Array(Float, Array<Float, nil>)] now, by the storage's clock; and the last tick of each, nil: it is another
      #   program's
      # @since 0.1.0
      def cron_define(source, crons, fresh: true, stale: CRON_STALE_SECONDS, connection: nil) = missing(:cron_define)

      # Pushes the job of a tick, and notes the tick, in one step. So a tick is pushed once, and none after a later one.
      #
      # @param name [String] of an entry
      # @param tick [Numeric, nil] seconds since the epoch; nil: a person wants a run now, and no tick is noted
      # @param push [Push, nil] which is due at once; nil: the tick passes without a job
      # @return [Symbol] :pushed; :held, the tick has passed without a job, for another one holds its lock; or what keeps it from
      #   being pushed: :passed, that tick or a later one was; :paused; :unknown, there is no such entry
      # @raise [StorageError] the storage has refused the job, and the tick is not noted
      # @raise [UnknownOutcomeError] it may be pushed or not; with a tick, call it again
      # @since 0.1.0
      def cron_push(name, tick, push, connection: nil) = missing(:cron_push)

      # @return [Array<Cron>] in the order of their names
      # @since 0.1.0
      def crons(connection: nil) = missing(:crons)

      # Has an entry push nothing until further notice, or go on. Its ticks meanwhile count as missed.
      #
      # @param name [String]
      # @param paused [Boolean]
      # @return [Boolean, nil] whether that is a change; nil: there is no such entry
      # @since 0.1.0
      def cron_pause(name, paused, connection: nil) = missing(:cron_pause)
    end
  end
end
