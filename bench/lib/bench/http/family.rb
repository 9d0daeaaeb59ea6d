# frozen_string_literal: true

module Bench
  module Http
    # A process of a server and all that it has started: what they cost, and how much memory they have.
    class Family
      # The clock of another process's CPU time, threads that have ended included, as clock_getcpuclockid(3) makes it:
      # https://man7.org/linux/man-pages/man3/clock_getcpuclockid.3.html
      CPU_CLOCK = ->(pid) { (~pid << 3) | 2 }

      # @param pid [Integer]
      def initialize(pid)
        @pid = pid
      end

      # @return [Array<Integer>] numbers of the processes that there are now, the first one's included
      def pids
        children = Dir.children("/proc").grep(/\A\d+\z/).map(&:to_i).group_by { |pid| parent(pid) }
        all = [@pid]
        all.each { |pid| all.concat(children.fetch(pid, [])) }
      end

      # Yields, and returns the seconds that all of them have spent meanwhile.
      #
      # @return [Hash] user and system
      def spent
        before = reading
        yield
        after = reading
        seconds, user, system = before.zip(after).map { |earlier, later| later - earlier }
        share = (user + system).zero? ? 0.5 : user.fdiv(user + system)
        { user: seconds * share, system: seconds * (1 - share) }
      end

      # @return [Integer] bytes in memory; what several have in common counts once
      def bytes
        pids.sum do |pid|
          Integer(File.read("/proc/#{pid}/smaps_rollup")[/^Pss:\s+(\d+) kB/, 1]) * 1024
        rescue SystemCallError
          0
        end
      end

      # Ends all of them at once, and waits until they have ended: those that others have started are nobody's to wait for.
      def kill
        all = pids
        all.reverse_each do |pid|
          Process.kill(:KILL, pid)
        rescue Errno::ESRCH
          nil
        end
        Process.wait(@pid)
        sleep 0.001 while all.any? { |pid| File.exist?("/proc/#{pid}/exe") } # a dead one has no program
      end

      private

      # Exact seconds, and the ticks in which the kernel tells user from system.
      def reading
        each = pids.map { |pid| [Process.clock_gettime(CPU_CLOCK.call(pid)), *facts(pid).values_at(11, 12).map(&:to_i)] }
        each.transpose.map(&:sum)
      end

      def parent(pid) = facts(pid)[1].to_i

      # Behind the name, which may have blanks: https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html
      def facts(pid)
        File.read("/proc/#{pid}/stat")[/.*\) (.*)/m, 1].to_s.split
      rescue SystemCallError
        []
      end
    end
  end
end
