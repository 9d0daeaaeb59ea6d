# frozen_string_literal: true

module Ringspun
  class << self
    # Waits until a process has ended. It need not be a child; a child is reaped.
    #
    # May switch strands.
    #
    # @param pid [Integer]
    # @param timeout [Numeric, nil] seconds; nil: no limit
    # @return [Process::Status, nil] nil for a process that is no child: only its parent gets its status
    # @raise [Errno::ESRCH] when there is no such process
    # @raise [Errno::ECHILD] when it is no child, and no descriptor can be opened for it (see {Machine#pidfd_open})
    # @raise [TimeoutError, UsageError, UnsupportedError, SystemCallError]
    # @since 0.1.0
    def wait_process(pid, timeout: nil)
      machine = Machine.current
      Net.within(machine, timeout, "wait_process: #{pid} has not ended") do
        has_ended = await_by_pidfd(machine, pid)
        machine.waitid(pid)
      rescue Errno::ECHILD
        raise unless has_ended
      end
    end

    private

    # nil: a sandbox forbids a pidfd, or no descriptor is left. A child can be waited for without.
    def await_by_pidfd(machine, pid)
      pidfd = machine.pidfd_open(pid)
      begin
        machine.poll(pidfd, :readable)
      rescue UnsupportedError
        nil
      end
    rescue Errno::EPERM, Errno::EACCES, Errno::ENOSYS, Errno::EMFILE, Errno::ENFILE, Errno::ENOSPC, Errno::ENOMEM
      nil
    ensure
      machine.close(pidfd) if pidfd
    end
  end

  class Machine
    # Sends a signal to the process of a descriptor of {#pidfd_open}, and never to a later process with the same pid.
    #
    # May switch strands.
    #
    # @param pidfd [Integer]
    # @param signal [Symbol, String, Integer] :TERM, "SIGTERM", 15
    # @return [nil]
    # @raise [Errno::ESRCH] when it has ended
    # @raise [Errno::EPERM] when that is not allowed
    # @raise [UsageError, ClosedError]
    # @since 0.1.0
    # @see https://man7.org/linux/man-pages/man2/pidfd_send_signal.2.html
    def pidfd_send_signal(pidfd, signal)
      number = signal.is_a?(Integer) ? signal : Signal.list[signal.to_s.delete_prefix("SIG")]
      raise UsageError, "pidfd_send_signal: there is no signal #{signal.inspect}" unless number && Signal.signame(number)

      signal_by_pidfd(pidfd, number)
    end
  end
end
