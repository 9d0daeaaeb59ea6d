# frozen_string_literal: true

require_relative "child_exit"
require_relative "slot"
require_relative "traps"

module Ringspun
  module Cluster
    # The parent of the workers: a loop that waits for signals and for bytes from workers, starts workers and enforces deadlines.
    # It has no machine, so that none is open when it forks, and starts no thread.
    #
    # A slot has one process, and during a reload a second one, its successor. `@leaving` are processes that have lost their slot
    # and drain. The parent waits only for its workers, by pid: other children belong to the program.
    #
    # @api private
    class Supervisor
      # The longest wait of the loop, so that it notices when the parent itself was stopped.
      LOOK_SECONDS = 1

      # After a longer time between two rounds of the loop, the workers were perhaps stopped as well, as by Ctrl-Z: that time does
      # not count for their deadlines.
      STANDSTILL_SECONDS = 2

      def initialize(settings, sockets, block)
        @settings = settings
        @sockets = sockets
        @block = block
        @log = settings.log
        @slots = Array.new(settings.workers) { |index| Slot.new(index, settings.backoff) }
        @leaving = []
        @bad_ends = Hash.new(0)
        @stopping = false
        @looked = now
      end

      def run
        Traps.open do |traps|
          log_start
          supervise_with(traps)
        end
        log_end
      end

      private

      def log_start
        addresses = @sockets.addresses.map { |name, address| [name, address.inspect_sockaddr].compact.join(":") }
        @log.info(:starting, pid: Process.pid, workers: @slots.size, listen: addresses.join(","))
        others = Thread.list.size - 1
        @log.warn(:threads, count: others, note: "workers are forked without them") if others.positive?
      end

      def log_end
        @bad_ends["never came up"] += @slots.count(&:never_came_up?)
        fates = @bad_ends.reject { |_, count| count.zero? }.map { |fate, count| "#{count} worker(s) #{fate}" }
        @log.info(:ended, clean: fates.empty?)
        raise ClusterError, "not a clean end: #{fates.join(", ")}" unless fates.empty?
      end

      def supervise_with(traps)
        @traps = traps
        @slots.each { |slot| slot.restart(now) }
        supervise
      rescue Exception => error
        @log.error(:failed, error:)
        dismiss_all
        supervise
        raise
      ensure
        processes.each(&:destroy)
      end

      # Returns after a signal to end, when all workers have ended.
      def supervise
        loop do
          @traps.taken.each { |signal| obey(signal) }
          bury_dead
          tend unless @stopping
          return if @stopping && processes.empty?

          wait
        end
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

      def processes = @slots.flat_map { |slot| [slot.process, slot.successor] }.compact + @leaving

      # --- signals ---

      def obey(signal)
        if signal == "HUP" && !@traps.hung_up? then @reload_wanted = true
        elsif @stopping then kill_all(signal)
        else
          @log.info(:stopping, signal:, drain: @settings.drain)
          dismiss_all
        end
      end

      # Closes the sockets first: the parent accepts nothing, and clients would wait in the backlog.
      def dismiss_all
        @stopping = true
        @sockets.close
        processes.each { |process| process.dismiss(now) }
      end

      def kill_all(signal)
        @log.warn(:killing, signal:, workers: processes.size)
        processes.each { |process| process.kill(:signal) }
      end

      # --- starts and reloads ---

      def tend
        @slots.each { |slot| slot.process = start(slot) if slot.due?(now) }
        begin_reload if @reload_wanted && !@reload
        reload(@reload.first) if @reload
      end

      def start(slot)
        slot.count_start
        @settings.before_fork&.call(slot.index)
        process = @traps.forking { WorkerProcess.new(@settings, slot, now) { |*pipes| become_worker(slot, *pipes) } }
        @log.info(:started, worker: slot.index, pid: process.pid)
        process
      rescue StandardError => error
        @log.error(:not_started, worker: slot.index, error:) if slot.failed(now)
        nil
      end

      # Runs in the child. exit keeps it from ever going on with the parent's code, even after an exception: nothing is around the
      # block of a fork.
      def become_worker(slot, *pipes)
        ChildExit.take_over
        processes.each(&:close)
        signals = @traps.end_in_child
        worker = Worker.new(slot.index, slot.starts - 1, @settings, @sockets, pipes)
        status = worker.__send__(:work, signals, &@block)
      ensure
        [$stdout, $stderr].each { |io| io.flush rescue nil }
        exit(status || 1)
      end

      def begin_reload
        @reload_wanted = false
        @settings.on_reload&.call
        @log.info(:reloading, workers: @slots.size)
        @reload = @slots.dup
      rescue StandardError => error
        @log.error(:not_reloaded, error:)
      end

      # Reloads one slot at a time. The old worker leaves when the new one is ready, so that connections are always accepted.
      def reload(slot)
        if slot.successor.nil?
          slot.successor = start(slot)
          give_up_reload(slot) unless slot.successor
        elsif slot.successor.ready?
          slot.process&.then { |process| leave(process) }
          slot.promote
          give_slot_away(slot.process) if slot.process.leaving?
          @reload.shift
        end
        return unless @reload == []

        @reload = nil
        @log.info(:reloaded)
      end

      def give_up_reload(slot)
        @reload = nil
        @log.error(:reload_failed, worker: slot.index, note: "workers that were not replaced go on; HUP tries again")
      end

      def leave(process)
        process.dismiss(now)
        @leaving << process
      end

      # --- ends ---

      def bury_dead
        processes.each { |process| bury(process) if process.reap }
      end

      def bury(process)
        hear(process) if process.status # reads what it wrote before it ended
        process.close
        slot = process.slot
        if @leaving.delete(process) then log_end_of(process)
        elsif slot.successor.equal?(process) then bury_successor(slot, process)
        else
          slot.process = nil
          @stopping ? log_end_of(process) : replace(slot, process)
        end
        count_bad(process) if @stopping
        call_hook(:on_worker_end, process.index, process.pid, process.exit_status)
      end

      def count_bad(process)
        if !process.success? then @bad_ends[process.reason ? "had to be killed" : "failed at the end"] += 1
        elsif process.cut? then @bad_ends["cut what was left"] += 1
        end
      end

      def bury_successor(slot, process)
        slot.successor = nil
        log_end_of(process)
        give_up_reload(slot) if @reload
        slot.failed(now) unless slot.process || @stopping
      end

      # Repeated failures are logged only when the pause gets longer.
      def replace(slot, process)
        if well?(process)
          slot.restart(now)
          log_end_of(process, restart_in: 0)
        elsif slot.failed(now)
          log_end_of(process, restart_in: slot.pause)
        end
      end

      def well?(process) = process.ready? && process.age(now) >= @settings.settle

      def log_end_of(process, **more)
        more = { killed_for: process.reason, **more } if process.reason
        @log.info(:gone, worker: process.index, pid: process.pid, status: process.fate, lived: process.age(now), **more)
      end

      def call_hook(name, *)
        @settings.public_send(name)&.call(*)
      rescue StandardError => error
        @log.error(:hook_failed, hook: name, error:)
      end

      # --- time ---

      # Reads what the workers have written before it enforces deadlines: a beat may have come while the loop waited.
      def wait
        heard = @traps.wait(processes.filter_map(&:status), [next_time - now, 0].max)
        time = now
        stood = time - @looked
        @looked = time
        processes.each { |process| process.forgive(stood, time) } if stood > STANDSTILL_SECONDS
        processes.each { |process| hear(process) if heard.include?(process.status) }
        enforce_deadlines(time)
      end

      def enforce_deadlines(time)
        processes.each do |process|
          reason = process.enforce(time)
          @log.warn(:killing, worker: process.index, pid: process.pid, reason: process.reason) if reason
        end
      end

      def next_time
        times = [@looked + LOOK_SECONDS, *processes.map(&:deadline)]
        times.concat(@slots.map(&:next_start)) unless @stopping
        times << @looked if !@stopping && (@reload_wanted || @reload) && reload_goes_on?
        times.compact.min
      end

      def reload_goes_on? = @reload.nil? || @reload.first.successor.nil? || @reload.first.successor.ready?

      def hear(process)
        ready, leaving = process.ready?, process.leaving?
        process.hear(now)
        if process.ready? && !ready
          process.slot.came_up
          @log.info(:ready, worker: process.index, pid: process.pid)
        end
        give_slot_away(process) if process.leaving? && !leaving
      end

      # Called for a worker that drains although the parent has not asked it to: it got a TERM from elsewhere.
      def give_slot_away(process)
        slot = process.slot
        return unless slot.process.equal?(process)

        slot.process = nil
        process.ready? ? slot.restart(now) : slot.failed(now)
        @leaving << process
      end
    end
  end
end
