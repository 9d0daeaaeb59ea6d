# frozen_string_literal: true

require "securerandom"
require "socket"

module Ringspun
  module Jobs
    class CLI
      # Moves all jobs from one storage to another while workers of both run and clients enqueue into either.
      #
      # A job of a queue is fetched by a node of the relocation's own, so that no worker has it; then it is stored at the target,
      # and then acknowledged at the source. Nothing can fetch a job of a set or of a paused queue, so that one is stored at the
      # target and then removed at the source. A job that is due within {SOON_SECONDS} would be fetched in between: it is left
      # until it is in its queue.
      #
      # So a kill between two steps leaves some jobs in both storages, {PAGE} at most, and no job in none. The next relocation
      # knows them by their jids, what they run, and when they were made. It stores them no second time unless they have run
      # meanwhile.
      #
      # @api private
      class Relocation
        # Jobs in one call of the storages, and so the most that a kill leaves in both.
        PAGE = 100
        # Seconds for which the source's other nodes leave alone what is being moved.
        LEASE_SECONDS = 12
        # Seconds from one look at a source that had nothing to move to the next.
        LOOK_SECONDS = 1
        # A job that is due so soon may be fetched while it is moved.
        SOON_SECONDS = 10
        # As the workers of the source say when they recover, or each would change what the other has said.
        HOLD_LEASES = 3
        # The most jobs that are due and are put into their queues in one call.
        DUE_MAX = 1000
        # How the nodes of relocations end, and no worker's does.
        NODE = /:move\h+\z/
        private_constant :HOLD_LEASES, :DUE_MAX, :NODE

        # How many jobs were moved; were at the target already; and had gone from the source when they were at the target.
        Counts = Struct.new(:moved, :there, :gone)

        # @return [Counts] so far
        attr_reader :counts

        # @param source [Storage]
        # @param target [Storage]
        # @param page [Integer]
        def initialize(source, target, page: PAGE)
          @source = source
          @target = target
          @page = page
          @node = "#{Socket.gethostname}:#{Process.pid}:move#{SecureRandom.hex(6)}"
          @counts = Counts.new(0, 0, 0)
          @returning = {} # jid of a job that a relocation had in flight when it was killed => its queue
        end

        # Whether both are the same place, by whatever names.
        #
        # @return [Boolean]
        def same?
          token = "ringspun-#{@node}"
          @source.lock(token, "source", LEASE_SECONDS)
          !@target.lock(token, "target", LEASE_SECONDS).nil?
        ensure
          @source.unlock(token, "source")
          @target.unlock(token, "target")
        end

        # Moves what can be moved now, and yields after each round in which it has looked at all of the source.
        #
        # @param each_page [#call] called after each page of jobs
        # @yieldparam left [Hash{Symbol => Object}] see {Storage#stats}: what the source has then
        # @yieldreturn [Boolean] whether to look again
        # @return [nil]
        # @raise [Error] of one of the storages
        def run(each_page = -> {})
          @each_page = each_page
          take_over_pauses
          @there = Arrivals.new(@target)
          loop do
            before = @counts.dup
            round
            return unless yield @source.stats

            sleep(LOOK_SECONDS) if @counts == before
          end
        ensure
          @source.leave(@node) if @extended_at
        end

        private

        def take_over_pauses
          @paused = []
          take_over_paused
          known = @target.crons.map(&:name)
          paused = @source.crons.select { |cron| cron.paused && !known.include?(cron.name) }
          paused.group_by(&:source).each do |source, crons|
            @target.cron_define(source, crons, fresh: false, stale: Storage::CRON_FORGET_SECONDS)
            crons.each { |cron| @target.cron_pause(cron.name, true) }
          end
        end

        # Jobs of a queue that is paused meanwhile must not run at the target, either.
        #
        # @return [Array<String>] the queues that are paused
        def take_over_paused
          paused = @source.paused
          (paused - @paused).each { |queue| @target.pause(queue) }
          @paused |= paused
          paused
        end

        def round
          recover
          Storage::SETS.each { |set| move_set(set) }
          extend_lease
          nil while @source.due(DUE_MAX).first == DUE_MAX
          paused = take_over_paused
          @source.stats[:queues].each do |queue, size|
            paused.include?(queue) ? move_paused(queue, size) : move_queue(queue, size)
          end
        end

        # What a relocation that was killed had in flight goes to the queues where it was, for it has ended no process.
        def recover
          loop do
            recovered = @source.recover(@page, hold: HOLD_LEASES * Jobs.config.lease)
            recovered.each do |one|
              jid = Wire.jid(one.entry) if one.to == :quarantine && one.node.match?(NODE)
              @returning[jid] = one.queue if jid
            end
            return if recovered.size < @page
          end
        end

        # As many as there were, for others may come as fast as these go.
        def move_queue(queue, size)
          while size.positive? && (jobs = @source.fetch(@node, [queue], @page)).any?
            size -= jobs.size
            jobs = @source.in_flight(@node) unless lasts?
            jobs.group_by { |job| queue_at_target(job) }.each { |place, some| store(place, some) }
            note_gone(@source.ack(@node, jobs.map { |job| ack_of(job) }))
            @each_page.call
          end
        end

        def queue_at_target(fetched)
          return fetched.queue unless fetched.queue == Storage::QUARANTINE

          @returning.delete(Wire.jid(fetched.entry)) || fetched.queue
        end

        # The lock is the target's by now.
        def ack_of(fetched)
          job = Wire.read(fetched.entry)
          lock = job["unique_token"] if job && job["unique_until"] != "expiry"
          Storage::Ack.new(fetched.queue, fetched.token, job && job["jid"], (lock if lock.is_a?(String)))
        end

        def move_paused(queue, size)
          while size.positive? && (jobs = @source.list(queue, 0, @page)).any?
            size -= jobs.size
            store_and_remove(queue, jobs)
          end
        end

        def move_set(set)
          from = 0
          until (page = @source.scan(set, from, @page)).empty?
            jobs = set == :dead ? page : page.select { |job| job.at > @source.time + SOON_SECONDS }
            store_and_remove(set, jobs) if jobs.any?
            from += page.size - jobs.size
          end
        end

        def store_and_remove(place, jobs)
          store(place, jobs)
          note_gone(@source.remove(place, jobs.map(&:token)))
          @each_page.call
        end

        # One that was taken away runs, or will run, at the source as well.
        def note_gone(answers) = @counts.gone += answers.count(false)

        # @param jobs [Array<Storage::Fetched, Storage::Stored>]
        def store(place, jobs)
          fresh = jobs.reject { |job| @there.include?(job.entry) }
          fresh.each { |job| take_over_lock(place, job) }
          stored = fresh.map { |job| Storage::Stored.new(nil, job.entry, (time_of(job) if place.is_a?(Symbol))) }
          moved = stored.empty? ? 0 : @target.restore(place, stored).count(true)
          @counts.moved += moved
          @counts.there += jobs.size - moved
        end

        # Others may have written any time.
        def time_of(stored) = stored.at.clamp(-Float::MAX, Float::MAX)

        # If another job has the lock there, this one runs all the same: it was accepted.
        def take_over_lock(place, stored)
          return if place == :dead || !stored.entry.b.include?("unique_token")

          job = Wire.read(stored.entry) or return
          token, lasts = job.values_at("unique_token", "unique_for")
          return if !token.is_a?(String) || !lasts.is_a?(Numeric) || (place == :retry && job["unique_until"] == "start")

          since = (stored.at if place == :schedule) || Wire.seconds(job["enqueued_at"] || job["created_at"])
          left = since ? since + lasts - @target.time : lasts
          @target.lock(token, job["jid"], left) if left.positive? && left.finite?
        end

        # Not at each call: it writes.
        def extend_lease
          return if @extended_at && now - @extended_at < LEASE_SECONDS / 4.0

          asked_at = now
          @source.extend([@node], LEASE_SECONDS)
          @extended_at = asked_at
        end

        # @return [Boolean] false: it may have run out since the last call, and is extended now
        def lasts?
          lasted = now - @extended_at < LEASE_SECONDS / 2.0
          extend_lease
          lasted
        end

        # A lease also runs out while the computer is suspended.
        def now = Process.clock_gettime(Process::CLOCK_BOOTTIME)
      end
      private_constant :Relocation
    end
  end
end

require_relative "relocation/arrivals"
