# frozen_string_literal: true

module Ringspun
  module Cluster
    # A worker as its parent sees it: a process and two pipes.
    #
    # The parent writes a byte into `control` to have the worker drain; the end of that pipe tells the worker that the parent has
    # died. The worker writes a byte into `status` when it is ready, for each beat, when it drains, and when that cut something.
    #
    # A child that has ended keeps its pid until it is waited for (wait(2)), so the parent may signal it by its pid.
    #
    # @api private
    class WorkerProcess
      READY = "r"
      BEAT = "b"
      DRAINING = "d"
      CUT = "c"

      # The time that a hung worker has, after the ABRT, to write its backtrace.
      ABORT_SECONDS = 2

      # @return [Process::Status, nil] nil while it runs, and if other code has waited for it
      attr_reader :exit_status

      # @return [Symbol, nil] why it was killed
      attr_reader :reason

      attr_reader :slot, :pid, :status

      # @param settings [Settings]
      # @yield in the child, with the other ends of the pipes
      def initialize(settings, slot, now)
        @settings = settings
        @slot = slot
        @born = @heard = now
        parent = Process.pid
        control, @control = IO.pipe
        @status, status = IO.pipe
        @pid = fork do
          close # the parent's ends: with these open, the worker would never read the end of `control`, see pipe(7)
          yield control, status
        end
      rescue Exception => error
        Process.pid == parent ? raise : give_up_child(error)
      ensure
        [control, status].each { |io| io&.close }
        close unless @pid
      end

      def index = @slot.index
      def ready? = @ready
      def leaving? = @leaving
      def cut? = @cut
      def success? = @exit_status.nil? || @exit_status.success?
      def age(now) = now - @born

      # Called in the parent when it has ended, and in every worker forked later.
      def close = [@control, @status].each { |io| io&.close }

      # Reads what the worker has written.
      def hear(now)
        said = @status.read_nonblock(4096, exception: false)
        return end_of_status if said.nil?
        return true if said == :wait_readable

        @heard = now
        @ready ||= said.include?(READY)
        @cut ||= said.include?(CUT)
        expect_end(now) if said.include?(DRAINING)
        true
      end

      # Asks the worker to drain.
      def dismiss(now)
        return if @leaving

        expect_end(now)
        @control.write_nonblock("s")
      rescue Errno::EPIPE
        nil # the worker has ended
      end

      # Moves the deadlines by these seconds, in which the parent did not run, and perhaps no process did.
      def forgive(seconds, now)
        @heard = [@heard + seconds, now].min
        @born += seconds unless @ready
        @kill_at += seconds if @kill_at
      end

      # When {enforce} has something to do next.
      def deadline
        return if @killed

        [@kill_at, boot_end, next_beat].compact.min
      end

      # Signals a worker whose deadline has passed; true if it did.
      def enforce(now)
        return if @killed

        if @kill_at && @kill_at <= now
          kill(@reason || :drain)
        elsif boot_end&.<=(now)
          kill(:boot)
        elsif next_beat&.<=(now)
          abort_hung(now)
        end
      end

      def kill(reason)
        @killed = true
        signal(:KILL)
        @reason = reason
      end

      # True if the worker has ended.
      def reap
        _, @exit_status = Process.wait2(@pid, Process::WNOHANG)
        @exit_status
      rescue Errno::ECHILD
        true
      end

      # @return [Integer, String, Symbol] exit code, name of the signal, or :unknown
      def fate
        return :unknown unless @exit_status

        @exit_status.signaled? ? "SIG#{Signal.signame(@exit_status.termsig)}" : @exit_status.exitstatus
      end

      # Kills it and waits for its end.
      def destroy
        signal(:KILL)
        Process.wait(@pid)
      rescue Errno::ECHILD
        nil
      end

      private

      # Code around Process._fork has raised in the child, which must not go on as a second parent.
      def give_up_child(error)
        @settings.log.error(:failed, worker: index, pid: Process.pid, error:)
      ensure
        exit!(false)
      end

      def end_of_status
        @status.close
        @status = nil
      end

      def expect_end(now)
        @leaving = true
        @kill_at ||= @settings.drain && (now + @settings.drain + @settings.grace)
      end

      def boot_end = (@born + @settings.boot if @settings.boot && !@ready && !@leaving)

      def next_beat = (@heard + @settings.heartbeat if @settings.heartbeat && @ready && @reason != :heartbeat)

      def abort_hung(now)
        @kill_at = now + ABORT_SECONDS
        signal(:ABRT)
        @reason = :heartbeat
      end

      def signal(name)
        Process.kill(name, @pid)
      rescue Errno::ESRCH
        nil
      end
    end
  end
end
