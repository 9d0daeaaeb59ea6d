# frozen_string_literal: true

module Ringspun
  module Cluster
    # A worker as its parent sees it: a process, and two pipes.
    #
    # The parent writes a byte into `control` to have it drain, and the end of that pipe says that there is no parent any more.
    # The worker writes into `status` that it is ready, that its loop turns, and that it drains.
    #
    # A pid is the worker's until the parent has reaped it, so it can be signalled without a pidfd as long as it is here.
    #
    # @api private
    class WorkerProcess
      READY = "r"
      BEAT = "b"
      DRAINING = "d"

      # After that long a worker that hangs has said where, or cannot.
      ABORT_SECONDS = 2

      # @return [Process::Status, nil] nil as well when somebody else has waited for it
      attr_reader :exit_status

      # @return [Symbol, nil] what it was signalled for
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
          close # or the worker itself would keep the pipe from ending
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
      def success? = @exit_status.nil? || @exit_status.success?
      def age(now) = now - @born

      # In another worker, and when it has ended.
      def close = [@control, @status].each { |io| io&.close }

      # What it has written. False: it writes no more.
      def hear(now)
        said = @status.read_nonblock(4096, exception: false)
        return end_of_status if said.nil?
        return true if said == :wait_readable

        @heard = now
        @ready ||= said.include?(READY)
        expect_end(now) if said.include?(DRAINING)
        true
      end

      # Has it drain.
      def dismiss(now)
        return if @leaving

        expect_end(now)
        @control.write_nonblock("s")
      rescue Errno::EPIPE
        nil # it has ended
      end

      # The parent itself has not run for some of these seconds, and perhaps nobody has.
      def forgive(seconds, now)
        @heard = [@heard + seconds, now].min
        @born += seconds unless @ready
        @kill_at += seconds if @kill_at
      end

      # When there is something to do about it.
      def deadline
        return if @killed

        [@kill_at, boot_end, next_beat].compact.min
      end

      # True when it has been signalled.
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

      # True when it has ended.
      def reap
        _, @exit_status = Process.wait2(@pid, Process::WNOHANG)
        @exit_status
      rescue Errno::ECHILD
        true
      end

      # @return [Integer, String, Symbol] how it has ended
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

      # What somebody has put around Process._fork has raised there. It must not go on as a second parent.
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
