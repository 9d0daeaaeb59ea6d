# frozen_string_literal: true

module Ringspun
  module Jobs
    # A forked child process with a lifeline: a pipe whose write end only this process holds. However this process ends, the child
    # then reads the end of file.
    #
    # A thread of its own forks the child. That thread is the child's main thread then, and has neither a machine nor a scheduler,
    # so the child begins as a program does. It runs none of the program's `at_exit` blocks.
    #
    # @api private
    class Child
      @lifelines = {}

      class << self
        # The write ends that this process holds. A child closes its copies, or they would keep its siblings from the end of file.
        attr_reader :lifelines

        def forget_lifelines
          @lifelines.each_key(&:close)
          @lifelines.clear
        end
      end

      # @return [Integer]
      attr_reader :pid

      # May switch strands, but cannot be cancelled.
      #
      # @yield in the child, whose status is the block's value
      # @yieldparam lifeline [IO] which is at its end when the parent is gone
      # @yieldreturn [Integer]
      # @raise [SystemCallError] when no process can be made
      def initialize(&block)
        lifeline, @lifeline = IO.pipe
        Child.lifelines[@lifeline] = true # before the fork, for the child closes its copy of this one as well
        thread = Thread.new do
          Thread.current.report_on_exception = false # who waits for it gets the error
          fork { Child.__send__(:become, lifeline, block) }
        end
        @pid = Ringspun.shield { thread.value }
      rescue ThreadError => error # no thread can be made, as when there are too many processes
        raise Errno::EAGAIN, error.message
      ensure
        forsake(thread) unless @pid
        lifeline&.close
      end

      # Waits until the child has ended. May switch strands.
      #
      # @return [Process::Status, nil] nil when somebody else has waited for it
      def wait
        return @status if @waited

        @status = Ringspun.wait_process(@pid)
        @waited = true
        @status
      rescue Errno::ESRCH
        @waited = true
        nil
      ensure
        release if @waited
      end

      # Until somebody has waited for the child, no other process gets its pid.
      def signal(name)
        Process.kill(name, @pid) unless @waited
      rescue Errno::ESRCH
        nil
      end

      # Writes to the child; what does not fit into the pipe, or finds it closed, is lost.
      def write(text)
        @lifeline.write_nonblock(text, exception: false)
      rescue IOError, Errno::EPIPE
        nil
      end

      # Ends the child by a TERM, and after the given seconds by a KILL. Returns when it has ended. May switch strands.
      def finish(seconds)
        signal(:TERM)
        Machine.current.timeout(seconds) { wait }
      rescue TimeoutError
        signal(:KILL)
        wait
      end

      # The state: https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html
      #
      # @return [Boolean] whether a SIGSTOP or a debugger has stopped it
      def stopped?
        %w[T t].include?(File.read("/proc/#{@pid}/stat")[/\) (\w)/, 1])
      rescue SystemCallError
        false
      end

      # @return [String] how a child has ended
      def self.fate(status)
        return "ended unseen" unless status

        status.signaled? ? "SIG#{Signal.signame(status.termsig)}" : "exit #{status.exitstatus}"
      end

      # In the child.
      def self.become(lifeline, block)
        forget_lifelines
        status = block.call(lifeline)
      rescue SystemExit => error
        status = error.status
      rescue SignalException # before it had anything to do
        status = 0
      rescue Exception => error
        warn error.full_message(highlight: false)
      ensure
        [$stdout, $stderr].each { |io| io.flush rescue nil }
        exit!(status || 1)
      end
      private_class_method :become

      private

      # The thread that wanted the child was killed, or the fork has failed. If it was killed, the child may still be forked, and
      # another thread ends it and waits for it.
      def forsake(thread)
        release
        return if thread.nil? || thread.status.nil? # nil: it has raised

        Thread.new do
          Thread.current.report_on_exception = false # nobody waits for the error of a fork
          pid = thread.value
          Process.kill(:KILL, pid)
          Process.wait(pid)
        end
      rescue ThreadError # then the child ends by its lifeline, and is a zombie until this process ends
        nil
      end

      def release
        Child.lifelines.delete(@lifeline)
        @lifeline&.close
      end
    end
    private_constant :Child
  end
end
