# frozen_string_literal: true

require_relative "maintenance"

module Ringspun
  module Jobs
    class Worker
      # Pushes the jobs of a schedule when they are due. Every worker does so, and the storage takes each tick once, see
      # {Storage#cron_push}. Times are by the storage's clock; it is asked at each round, so that a clock that was set is noticed.
      #
      # @api private
      class Ticker < Maintenance
        # Seconds from round to round at least, and twice that at most: a tick is so late at most after a clock was put forward.
        ROUND_SECONDS = 15.0
        # And without any entries: then only those of before are to be forgotten.
        IDLE_SECONDS = 300.0
        # The shortest pause, and how long after a tick it looks: the storage's clock differs from this one.
        LEAST_SECONDS = 0.001

        # What a storage calls the program. Of several that share it, each needs a tag, or is an application of Rails.
        #
        # @param config [Config]
        # @return [String]
        def self.source(config)
          app = ::Rails.application if defined?(::Rails.application) && !config.given?(:tag)
          app ? app.class.name : config.tag
        end

        # @param source [String] the program, by which the storage tells its entries from others
        def initialize(*, source:, **)
          super(*, **)
          @source = source
          @crons = {} # name => what the storage keeps of an entry
          @firsts = {} # name => the last tick, and the one after it
          @failures = Hash.new(0) # name => how many times in a row its job could not be pushed
          @told = {} # name => of what the log has been told
        end

        # Never waits.
        def look
          @woken = true
          @changed.broadcast
        end

        private

        def round
          @woken = false
          entries = @backoff.attempt(:cron) { @config.cron_entries } or return LEAST_SECONDS
          return idle if entries.empty?

          fresh = entries != @defined
          renew(entries) if fresh
          began = now
          time, ticks = define(fresh)
          return LEAST_SECONDS unless time

          @defined = entries
          dues = entries.values_at(*@crons.keys).zip(ticks).map do |entry, last|
            last ? tick(entry, last, time) : taken(entry, time)
          end
          [*dues.map { |due| due - time - (now - began) + LEAST_SECONDS }, jittered(ROUND_SECONDS)].min.clamp(LEAST_SECONDS..)
        end

        # It may have been told while it looked.
        def nap(seconds) = @woken || super

        def now = Machine.current.now

        # The first time there is nothing to forget: a worker of before may still run.
        def idle
          @crons.clear
          @defined = nil
          define(true) if @idle
          @idle = true
          jittered(IDLE_SECONDS)
        end

        def define(fresh) = @backoff.attempt(:cron_define) { @storage.cron_define(@source, @crons.values, fresh: fresh) }

        def renew(entries)
          @crons = entries.each_value.filter_map { |entry| described(entry) }.to_h { |cron| [cron.name, cron] }
          [@firsts, @failures, @told].each(&:clear)
          @log.event(:info, "the schedule has #{Words.count(@crons.size, "entry", "entries")}", names: @crons.keys.join(","))
        end

        # One that cannot be described does not hold up the others.
        def described(entry)
          tell_of_class(entry)
          Storage::Cron.new(name: entry.name, schedule: entry.key(zone), text: entry.to_text(zone))
        rescue StandardError => error
          @log.event(:error, "a cron entry is left out: #{error.message}", name: entry.name, error: error.class.name)
          nil
        end

        def zone = @config.cron_zone

        def tell_of_class(entry)
          return unless Cron::Classes.named(entry.job_class).is_a?(String)

          @log.event(:warn, "this program has no class #{entry.class_name}: jobs of the cron entry are enqueued by its name",
                     name: entry.name)
        end

        # @return [Numeric] when the next is due
        def tick(entry, last, time)
          times = entry.times(zone)
          first = first_after(entry, times, last)
          return first if first > time

          due = entry.due(zone, last, time)
          tell_of_missed(entry, first) if due.missed
          return time + pause(entry) unless due.ticks.all? { |tick| push(entry, tick) }

          @failures.delete(entry.name)
          times.after(time)
        end

        # Longer each time, for what is wrong with an entry may need a person.
        def pause(entry)
          @failures[entry.name] += 1
          [2**(@failures[entry.name] - 2), ROUND_SECONDS].min
        end

        def first_after(entry, times, last)
          known, first = @firsts[entry.name]
          return first if known == last

          times.after(last).tap { |tick| @firsts[entry.name] = [last, tick] }
        end

        # @return [Boolean] false: try again
        def push(entry, tick)
          jid = nil
          answer = @backoff.attempt(:"cron entry #{entry.name}") do
            made = made(entry)
            jid = made&.jid
            @storage.cron_push(entry.name, tick, made)
          end
          @defined = nil if answer == :unknown
          note(entry, tick, jid, answer) if %i[pushed held].include?(answer)
          !answer.nil? && answer != :unknown
        end

        # As around a job: it may load classes, and middleware may ask the database.
        def made(entry)
          return Cron::Making.push(entry) unless @config.reloader

          made = nil
          @config.reloader.call { made = Cron::Making.push(entry) }
          made
        end

        def note(entry, tick, jid, answer)
          if jid && answer == :pushed
            @log.event(:info, "cron: enqueued", name: entry.name, tick: stamp(tick), jid: jid)
          else
            why = answer == :held ? "another job holds its lock" : "a middleware has stopped it"
            @log.event(:info, "cron: not enqueued, for #{why}", name: entry.name, tick: stamp(tick))
          end
        end

        def stamp(time) = Time.at(time).utc.strftime("%FT%TZ")

        def tell_of_missed(entry, first)
          return if @told[entry.name] == first

          @told[entry.name] = first
          @log.event(:warn, "cron: ticks were missed, and #{entry.made_up} made up for", name: entry.name,
                                                                                         since: stamp(first))
        end

        def taken(entry, time)
          unless @told[entry.name] == :taken
            @told[entry.name] = :taken
            @log.event(:error, "another program has a cron entry of that name in this storage, so this one pushes nothing: " \
                               "give it another name, and each program a tag", name: entry.name)
          end
          time + ROUND_SECONDS
        end
      end
      private_constant :Ticker
    end
  end
end
