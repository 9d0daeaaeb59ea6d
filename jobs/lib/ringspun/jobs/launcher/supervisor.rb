# frozen_string_literal: true

require "securerandom"
require "socket"
require_relative "../child"
require_relative "worker_process"

module Ringspun
  module Jobs
    # The parent of several worker processes. It runs no jobs, so nothing delays its work: it extends the leases of its children,
    # replaces those that die, and passes signals on. It does not extend the lease of a child that is stopped, as by a SIGSTOP:
    # others then take over what that child has in flight.
    #
    # All of them share the memory of the program that was loaded before, until one writes to it.
    #
    # @api private
    class Supervisor
      # Seconds after which a child that dies is replaced at once; others are after a pause that doubles each time.
      SETTLED = 10
      PAUSES = (0.5..30)

      # Seconds, on top of the drain's own, after which a child that was told to end is killed: its own limits come first, so that
      # it can give back what it has in flight.
      GRACE = WorkerProcess::GRACE + WorkerProcess::GIVING_BACK_SECONDS + 1

      # A lease this short ends at once: what a dead child had in flight need not wait for the child's own lease.
      OVER = 0.001

      SIGNALS = %i[TERM INT TSTP USR2 TTIN].freeze
      RELOAD = :HUP

      Member = Struct.new(:child, :node, :stopped) do
        def pid = child.pid
      end
      private_constant :Member

      # @param config [Config]
      # @param log [Log]
      # @param reload [#call, nil] see {WorkerProcess}; a child that is made later has what it has read
      def initialize(config, log, reload: nil)
        @config = config
        @log = log
        @reload = reload
        @members = []
        @stop_wanted = Condition.new
        @leases = Mutex.new
        @clean = true
        @ends = 0 # how many times it was told to end
        @deadlines = []
      end

      # Returns when it was told to end and all children have ended. May switch strands.
      #
      # @return [Boolean] whether all of them have ended well
      def run
        Process.setproctitle("ringspun-jobs #{VERSION} supervisor of #{@config.processes}")
        Ringspun.run do |machine|
          @machine = machine
          others = [machine.spin { listen }, machine.spin { machine.periodically(@config.beat) { beat } }]
          machine.join(*Array.new(@config.processes) { |index| machine.spin { tend(index) } })
          [*others, *@deadlines].each { |strand| machine.terminate(strand) }
        end
        @log.event(:info, "the supervisor has ended", clean: @clean)
        @clean
      end

      private

      # --- children ---

      def tend(index)
        failures = 0
        until @stopping
          began = @machine.now
          watch(index)
          failures = @machine.now - began >= SETTLED ? 0 : failures + 1
          pause(failures) unless @stopping
        end
      end

      def watch(index)
        member = start(index)
        status = member.child.wait
        @members.delete(member)
        log_end(index, member, status)
        take_leave(member, status)
      rescue SystemCallError => error
        @log.event(:error, "no process can be made: #{error.message}", index:)
      end

      def start(index)
        nonce = SecureRandom.hex(6)
        child = Child.new { |lifeline| become_worker(node_of(Process.pid, nonce), lifeline) }
        @log.event(:info, "a process has started", index:, child: child.pid)
        @members << (member = Member.new(child, node_of(child.pid, nonce), false))
        child.signal(:TERM) if @stopping
        member
      end

      def node_of(pid, nonce) = "#{Socket.gethostname}:#{pid}:#{nonce}"

      # In the child.
      def become_worker(node, lifeline)
        WorkerProcess.new(@config, @log, node:, lifeline:, quiet: @quiet, reload: @reload).run ? 0 : 1
      ensure
        @log.flush
      end

      def log_end(index, member, status)
        @clean &&= status.nil? || status.success? if @stopping
        level = status.nil? || status.success? ? :info : :error
        @log.event(level, "a process has ended", index:, child: member.pid, status: Child.fate(status))
      end

      # Waits for a heartbeat under way, which may extend the lease once more. A child that has ended well has left itself, but a
      # heartbeat may have registered its node again since.
      def take_leave(member, status)
        @leases.synchronize do
          status&.success? ? Jobs.storage.leave(member.node) : Jobs.storage.extend([member.node], OVER)
        end
      rescue StandardError => error
        @log.event(:warn, "what it had in flight waits until its lease is over: #{error.message}", node: member.node)
      end

      def pause(failures)
        return if failures.zero?

        @machine.timeout([PAUSES.begin * (2**(failures - 1)), PAUSES.end].min) { @stop_wanted.wait }
      rescue TimeoutError
        nil
      end

      # --- leases ---

      def beat = @leases.synchronize { extend_leases }

      def extend_leases
        living = @members.reject { |member| stopped?(member) }
        answers = Jobs.storage.extend(living.map(&:node), @config.lease)
        living.zip(answers) do |member, lasted|
          member.child.write(Lifeline::BEAT)
          next if lasted

          @log.event(:warn, "its lease had run out; others may run what it had in flight", node: member.node)
        end
      rescue StandardError => error
        @log.event(:warn, "no heartbeat: #{error.message}")
      end

      def stopped?(member)
        stopped = member.child.stopped?
        if stopped && !member.stopped
          @log.event(:error, "a process is stopped; what it has in flight is not kept for it", child: member.pid)
        end
        member.stopped = stopped
      end

      # --- signals ---

      def listen
        Ringspun.signals(*SIGNALS, *(RELOAD if @reload)) { |name| obey(name) }
      end

      # Whatever a signal leads to, the supervisor goes on: without it all its workers would drain.
      def obey(name)
        carry_out(name)
      rescue StandardError, ScriptError, SystemStackError => error
        @log.event(:error, "SIG#{name} was not obeyed: #{error.message}", error: error.class.name, at: error.backtrace&.first)
      end

      def carry_out(name)
        case name
        when :TSTP then @quiet = true
        when :USR2 then @log.reopen
        when :TTIN then print_tree
        when RELOAD then @reload.call(@log)
        else return stop(name)
        end
        signal(name)
      end

      # Where it cannot be read, nobody misses it, and the supervisor goes on.
      def print_tree
        $stderr.puts Ringspun.inspect_tree
      rescue SystemCallError, IOError
        nil
      end

      def stop(name)
        case @ends += 1
        when 1 then begin_to_stop(name)
        when 2 then hurry
        else kill("told three times to end: all are killed")
        end
      end

      def begin_to_stop(name)
        @log.event(:info, "all workers end; running jobs have #{Words.duration(@config.timeout)}", signal: name)
        @stopping = true
        @stop_wanted.broadcast
        signal(:TERM)
        kill_after(@config.timeout + GRACE)
      end

      # By the lifeline, for a second TERM would not do: a service manager may send the first to all processes, and the child then
      # gets two.
      def hurry
        @log.event(:warn, "told twice to end: running jobs are cancelled")
        @members.each { |member| member.child.write(Lifeline::HURRY) }
        kill_after(GRACE)
      end

      def kill_after(seconds)
        @deadlines << @machine.spin do
          @machine.sleep(seconds)
          kill("not all have ended in time: the others are killed")
        end
      end

      def kill(text)
        @log.event(:error, text)
        signal(:KILL)
      end

      def signal(name) = @members.each { |member| member.child.signal(name) }
    end
    private_constant :Supervisor
  end
end
