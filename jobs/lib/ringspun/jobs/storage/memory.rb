# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      # A storage in the memory of this process, for tests and for trying things out. Strands and threads share it. It has no
      # connections, and no part in a transaction of the caller's.
      class Memory < Storage
      end

      register(:memory) { |config| Memory.new(milliseconds: config.milliseconds, history: config.history) }
    end
  end
end

require_relative "memory/nodes"
require_relative "memory/admin"
require_relative "memory/done_jobs"
require_relative "memory/locks"
require_relative "memory/search"
require_relative "memory/limits"
require_relative "memory/crons"

module Ringspun
  module Jobs
    class Storage
      class Memory
        include Nodes
        include Admin
        include DoneJobs
        include Locks
        include Search
        include Limits
        include Crons

        # @param clock [#call, nil] answers the time in seconds since the epoch; nil: the time of day, and what is kept for some
        #   time does not care whether somebody sets that
        # @param milliseconds [Boolean] see {Config#milliseconds}
        # @param history [Numeric] see {Config#history}
        # @since 0.1.0
        def initialize(clock: nil, milliseconds: false, history: HISTORY_SECONDS)
          super()
          @clock = clock || -> { Process.clock_gettime(Process::CLOCK_REALTIME) }
          @lasting = clock || -> { Process.clock_gettime(Process::CLOCK_BOOTTIME) }
          @milliseconds = milliseconds
          @history_seconds = Seconds.limit("history", history, "a number of seconds")
          @lock = ShortLock.new
          @queues = {} # name => jobs, the one that is fetched next last
          @sets = { schedule: {}, retry: {}, dead: {} } # token => job
          @lists = {} # node => queue => jobs in flight, the oldest last
          @number = 0 # of the last token
          @priorities = {} # token of a job in a queue => its priority, unless that is 0
          @leases = {} # node => Lease
          @beaten = nil # when a lease was last extended, or looked at
          @locks = {} # token => [jid, when it ends]
          @pushed = {} # jid => when it is forgotten
          @done = {} # token => Done, the one that was done last last
          @results = {} # jid => [JSON text, when it is forgotten]
          @histories = {} # jid => [events, when they are forgotten], the one that changed last last
          @paused = {}
          @recovered = Hash.new(0)
          @trials = {} # jid => trials, and which run was counted last
          @counts = Hash.new(0)
          @wakes = nil # when somebody wakes for what is due, and who
          @due_bells = [] # of those who wait to hear of what is due earlier
          @due_unheard = false # whether something was stored that nobody has heard of
          @limits = {} # queue => its limit, as who fetches says
          @places = {} # jid of a job in the quarantine => Place
          @old_runs = {} # [node, queue, jid] => OldRun
          @losses = Hash.new(0) # node => how many jobs were taken over from it
          @hold = HOLD_SECONDS
          @gone = {} # node => since when it has neither a lease nor jobs
          @announced = {}
          @measured = {} # class => Measure
          @minutes = {} # [class, minute] => Measure
          @signals = {}
          @crons = {} # name => Cron
          @waiting = Hash.new { |all, queue| all[queue] = [] } # queue => the bells of those who wait for its jobs
          @bells = {} # of those who wait => node
        end

        # @return [nil]
        # @since 0.1.0
        def connect = nil

        # (see Storage#shared?)
        def shared? = false

        # (see Storage#identity)
        def identity = "the memory of process #{Process.pid}"

        # Ends all waits.
        #
        # @return [nil]
        # @since 0.1.0
        def close
          synchronize { [*@bells.keys, *@due_bells] }.each { |bell| bell.try_push(:enough) }
          nil
        end

        # (see Storage#push)
        def push(pushes, connection: nil)
          refuse(connection)
          outcomes = synchronize { pushes.map { |push| push_one(push) } }
          outcomes if outcomes.any?
        end

        # (see Storage#fetch)
        def fetch(node, queues, max, limits: {}, connection: nil)
          synchronize do
            register(node)
            take_from(node, queues, max, limits)
          end
        end

        # (see Storage#wait_any)
        def wait_any(node, queues, seconds, max: 1, limits: {}, connection: nil)
          return [] unless max.positive?

          bell = Channel.new(1) # its timeouts go by the machine's clock, a simulated one included
          @bells[bell] = node
          give_up = lasting + seconds
          loop do
            fetched = synchronize do
              register(node)
              queues.each { |queue| @waiting[queue] |= [bell] }
              take_from(node, queues, max, limits)
            end
            return fetched if fetched.any?

            left = give_up - lasting
            return [] unless left.positive? && bell.pop(timeout: left) == :look
          end
        ensure
          @bells.delete(bell)
          bell && synchronize { queues.each { |queue| stop_waiting(queue, bell) } }
        end

        # (see Storage#rouse)
        def rouse(node, connection: nil)
          synchronize { @bells.select { |_, waits| waits == node }.keys }.each { |bell| bell.try_push(:enough) }
          nil
        end

        # (see Storage#in_flight)
        def in_flight(node, connection: nil)
          synchronize { (@lists[node] || {}).flat_map { |queue, all| all.reverse.map { |job| fetched(queue, job) } } }
        end

        # (see Storage#begin_quarantined)
        def begin_quarantined(node, runs, isolated: false, connection: nil)
          synchronize do
            runs.map do |begun|
              fetched = begun.fetched
              next unless place_of(fetched.token, @lists.dig(node, fetched.queue))

              jid = Wire.jid(fetched.entry)
              next :later unless begin_in_place(fetched.entry, jid)

              trials, last = @trials[jid] || [Trials.new(0, 0, 0), nil]
              this = [node, begun.run, isolated]
              trials[isolated ? :isolated : :tries] += 1 unless last == this
              @trials[jid] = [trials, this]
              trials.dup
            end
          end
        end

        # (see Storage#ack)
        def ack(node, acks, connection: nil)
          refuse(connection)
          settle(node, acks) do |ack, job|
            @counts[:processed] += 1
            keep_done(node, ack, job) if ack.ran
            keep_result(ack) if ack.keep_seconds
          end
        end

        # (see Storage#fail)
        def fail(node, failures, connection: nil)
          refuse(connection)
          settle(node, failures) do |failure, job|
            put(failure, job)
            next unless %i[retry dead].include?(failure.to)

            @counts[:processed] += 1
            @counts[:failed] += 1
          end
        end

        # (see Storage#due)
        def due(limit, by: nil, connection: nil)
          synchronize do
            moved = 0
            dead = []
            sets = @sets.values_at(:retry, :schedule)
            sets.each do |set|
              ready = set.each_value.select { |job| job.at <= now }.sort_by(&:at).first(limit)
              limit -= ready.size
              ready.each do |job|
                set.delete(job.token)
                enqueue(job) ? moved += 1 : dead << bury(job)
              end
            end
            first = sets.filter_map { |set| set.each_value.map(&:at).min }.min
            [moved, (first && wakes?(first, by) ? [first - now, 0.0].max : nil), dead]
          end
        end

        # (see Storage#wait_due)
        def wait_due(seconds, connection: nil)
          bell = Channel.new(1)
          told = false
          synchronize { take_unheard ? bell.try_push(:look) : @due_bells << bell }
          told = bell.pop(timeout: seconds) == :look
        ensure
          synchronize { @due_unheard = true unless told || @due_bells.delete(bell) } # or what it was told would be lost
        end

        private

        def refuse(connection)
          return if connection.nil?

          raise UsageError, "jobs in memory have no part in a transaction on #{connection.class}; let them wait for its " \
                            "commit: after_commit: true"
        end

        def now = @clock.call

        # What is kept for some time ends by this.
        def lasting = @lasting.call

        def synchronize(&) = @lock.synchronize(&)

        def register(node) = @lists[node] ||= {}

        def in_flight_of(queue) = @lists.each_value.sum { |lists| lists[queue] ? lists[queue].size : 0 }

        def take_from(node, queues, max, limits)
          queues.each_with_object([]) do |queue, fetched|
            next if @paused[queue]

            room = max - fetched.size
            @limits.delete(queue) unless limits[queue]
            room = [room, room_of(node, queue, limits[queue])].min if limits[queue]
            room.times { fetched << (take(node, queue) || break) }
          end
        end

        # There may be a job of this queue to take: the first who waits looks. Whoever leaves without the job passes that on.
        def ring(queue) = @waiting[queue].shift&.try_push(:look)

        def stop_waiting(queue, bell)
          @waiting[queue].delete(bell)
          ring(queue) if @queues[queue]&.any?
        end

        def take(node, queue)
          job = @queues[queue]&.pop or return
          @priorities.delete(job.token)
          (@lists[node][queue] ||= []).unshift(job)
          fetched(queue, job)
        end

        def fetched(queue, job) = Fetched.new(queue, job.entry, job.token)

        # With the token of `old`, if that has the same entry.
        def job_with(entry, old = nil) = Stored.new(old && old.entry == entry ? old.token : (@number += 1).to_s, entry)

        def place_of(token, jobs) = jobs&.rindex { |job| job.token == token }

        def put_into(set, job, at)
          job.at = at.to_f
          @sets.fetch(set)[job.token] = job
          tell_due(job.at) if set != :dead && job.at - now < POLL_SECONDS
        end

        # One who waits is told, unless somebody wakes early enough.
        def tell_due(at)
          wakes_at, = @wakes
          return if wakes_at && wakes_at > now && wakes_at <= at

          bell = @due_bells.shift
          @due_unheard = true unless bell&.try_push(:look)
        end

        def take_unheard = @due_unheard.tap { @due_unheard = false }

        # Whether the caller is the one who wakes then.
        def wakes?(at, by)
          return true unless by

          wakes_at, who = @wakes
          return false if wakes_at && wakes_at > now && wakes_at <= at && who != by

          @wakes = [at, by]
          true
        end

        def push_one(push)
          at = push.at || (push.delay && now + push.delay)
          if push.lock
            return if pushed_before?(push.jid)

            holder = hold(push.lock, push.jid, push.lock_seconds + (at ? [at - now, 0].max : 0))
            return (holder if holder != push.jid) if holder

            @pushed[push.jid] = lasting + AGAIN_SECONDS
          end
          job = job_with(push.entry)
          at ? put_into(:schedule, job, at) : line_up(push.queue, job)
          nil
        end

        def pushed_before?(jid)
          @pushed.shift while @pushed.any? && @pushed.first.last <= lasting
          @pushed.key?(jid)
        end

        def line_up(queue, job, front: false)
          job.at = nil
          jobs = @queues[queue] ||= []
          priority = queue == QUARANTINE ? 0 : priority_of(job.entry)
          @priorities[job.token] = priority unless priority.zero?
          if @priorities.any?
            jobs.insert(place_in(jobs, priority, front), job)
          else
            front ? jobs.push(job) : jobs.unshift(job)
          end
          ring(queue)
        end

        # Jobs of a smaller priority are at the end, for they are fetched next.
        def place_in(jobs, priority, front)
          jobs.index do |other|
            others = @priorities.fetch(other.token, 0)
            front ? others < priority : others <= priority
          end || jobs.size
        end

        def priority_of(entry)
          return 0 unless entry.b.include?(Wire::PRIORITY)

          job = Wire.read(entry)
          job ? Wire.priority(job) : 0
        end

        # @return [Boolean] false: its entry is no job or names a queue that is reserved, so there is no queue for it
        def enqueue(stored)
          job = Wire.read(stored.entry)
          return false if job.nil? || Wire.reserved?(job["queue"])

          entry = Wire.enqueued(stored.entry, job, Wire.time(now, milliseconds: @milliseconds))
          line_up(job["queue"] || "default", job_with(entry, stored))
          true
        end

        # Puts an entry that is no job among the dead.
        def bury(stored)
          fault = Wire.fault(stored.entry)
          text = Wire.blamed(stored.entry, fault, Wire.time(now, milliseconds: @milliseconds))
          put_into(:dead, job_with(text, stored), now)
          [text, fault.message]
        end

        def settle(node, all)
          synchronize do
            all.map do |one|
              list = @lists.dig(node, one.queue)
              place = place_of(one.token, list)
              unless place
                old_run_ended(node, one.queue, one.jid)
                next false
              end

              job = list.delete_at(place)
              leave_place(one.jid || Wire.jid(job.entry), queue_after(one)) if one.queue == QUARANTINE
              yield one, job
              release(one.lock, one.jid) if one.lock
              ring(one.queue) # whose limit may allow another one now
              one.pushes&.each { |push| push_one(push) } if one.is_a?(Ack)
              note_outcome(node, one, job)
              note_end(one, job)
              true
            end
          end
        end

        def queue_after(one) = one.is_a?(Failure) && one.to == :queue ? one.new_queue || one.queue : nil

        def keep_result(ack)
          @results.delete_if { |_, (_, ends)| ends <= lasting }
          @results[ack.jid] = [ack.result, lasting + [ack.keep_seconds, RESULT_SECONDS_MAX].min]
        end

        def note_outcome(node, one, job)
          jid = one.jid || Wire.jid(job.entry)
          event = one.event || (Event.new(kind: :done) if one.is_a?(Ack) && @histories.key?(jid))
          note(jid, event, node) if event
        end

        def note(jid, event, node = nil)
          return unless jid && @history_seconds.positive?

          events, = @histories.delete(jid)
          @histories.shift while @histories.any? && @histories.first.last.last <= lasting
          event = Event.new(now, event.kind, node, event.error_class, event.error_message)
          @histories[jid] = [[*events, event].last(EVENTS_MAX), lasting + @history_seconds]
        end

        def note_end(one, job)
          queued = one.is_a?(Failure) && one.to == :queue
          return forget_runs(one.jid || (Wire.jid(job.entry) unless queued)) unless queued && one.died

          trials, = @trials[one.jid]
          trials.deaths += 1 if trials
        end

        def forget_runs(jid) = [@recovered, @trials].each { |counts| counts.delete(jid) }

        def put(failure, old)
          job = failure.new_entry ? job_with(failure.new_entry, old) : old
          case failure.to
          when :queue then line_up(failure.new_queue || failure.queue, job, front: true)
          when :dead then put_into(:dead, job, now)
          else put_into(failure.to, job, now + (failure.delay || 0))
          end
        end
      end
    end
  end
end
