# frozen_string_literal: true

module Ringspun
  module Jobs
    class Quarantine
      # The child's side of a {Group}: runs each job in a strand and writes its result to the parent. By the lifeline the parent
      # also says which job to cancel.
      #
      # @api private
      class GroupProcess
        # Ctrl-C and Ctrl-Z reach all processes of a terminal; the other signals are for the parent.
        IGNORED = %w[INT TSTP TTIN USR1 USR2].freeze

        # Seconds for which a job may hold the thread beside others. When it then computes for as many more, it is cut short. By
        # the clock alone a job on a busy computer would be, although it has hardly run.
        HELD_SECONDS = 0.5
        # Seconds after those for which it may sleep in the kernel instead.
        WAITING_SECONDS = 2
        # Seconds for the `ensure` blocks of a job that was cut short.
        CUT_SECONDS = 0.5
        LOOK_SECONDS = 0.05
        BEAT_SECONDS = 0.5
        # The signal that interrupts the thread. Hardly anything else uses it, and its default is to be ignored. Go's runtime uses
        # it for the same reasons: https://go.dev/src/runtime/signal_unix.go (sigPreempt)
        INTERRUPT = "URG"

        # The first characters of notes.
        BEAT = "."
        BEGUN = "b"
        HELD = "h"
        TERMINATED = "t"
        SETTLED = "s"
        CUT = "c"

        # The result of a job that held up the others and was cut short.
        CUT_SHORT = :held

        # The line that the parent writes when the worker begins no more jobs.
        QUIET = "quiet\n"

        # The line that the parent writes to cancel a job.
        def self.order(index, why) = "#{index} #{why}\n"

        def initialize(members, lifeline, results, notes, log:, title:, quiet: nil, &perform)
          @members = members
          @lifeline = lifeline
          @results = results
          @notes = notes
          @log = log
          @title = title
          @quiet = quiet
          @perform = perform
          @pid = Process.pid
          @left = members.size
          @asked = {}
          @performing = {}
          @cut = {}
        end

        # Runs in the child as its whole program.
        #
        # @return [Integer] the exit status
        def run
          IGNORED.each { |name| trap(name, "IGNORE") }
          trap("TERM") { terminated }
          trap(INTERRUPT) { cut_short }
          Process.setproctitle("ringspun-jobs quarantine #{@title}")
          Thread.new { heed }
          Ringspun.run { |machine| serve_to_the_end(machine) } unless @terminated
          @log&.flush
          raise @error if @error

          0
        end

        private

        # What jobs have spun, and that goes on without them, is of the inner run, and cancelled.
        def serve_to_the_end(machine)
          machine.scope do |scope|
            Ringspun.run do
              serve(machine)
              scope.cancel
            end
          end
        end

        def serve(machine)
          @writing = Mutex.new
          @strands = Array.new(@members.size) { |index| machine.spin { work(index) } }
          machine.spin { note(SETTLED) } # when each of them has had a turn, and waits or has ended
          @main = machine.running
          @machine = machine
          Inspector.watch(limit: HELD_SECONDS, to: ->(stall) { held(stall) }) if @members.size > 1
          cut_all if @terminated
          machine.park&.call until @left.zero? || @error
        end

        def work(index)
          note("#{BEGUN}#{index}")
          value = perform(index)
          send_result(index, @cut.key?(index) ? CUT_SHORT : value) # it may have rescued what cut it short
        rescue Cancelled => error
          cancelled(index, error)
        rescue Exception => error
          @cut.key?(index) ? send_result(index, CUT_SHORT) : @error ||= error
        ensure
          ended
        end

        def perform(index)
          @performing[index] = true
          @perform.call(@members[index])
        ensure
          @performing.delete(index)
        end

        # After a TERM all jobs are cancelled, and none has a result.
        def cancelled(index, error)
          return if @terminated
          return send_result(index, nil) if @asked.key?(index)
          return send_result(index, CUT_SHORT) if @cut.key?(index)

          @error ||= error
        end

        def ended
          @left -= 1
          @machine.schedule(@main) if @left.zero? || @error
        end

        # The log first, for another job may end this process next. In a shield, for the strand may be cancelled by now.
        def send_result(index, value)
          text = Marshal.dump([index, value])
          Ringspun.shield do
            @log&.flush
            @writing.synchronize { @results.write([text.bytesize].pack("N"), text) }
          end
        end

        # In one piece, and without a switch, so that the job that was noted last is the one that runs. A note that finds the pipe
        # full is lost.
        def note(text)
          @notes.write_nonblock("#{text}\n", exception: false)
        rescue Errno::EPIPE
          nil
        end

        # --- a job that holds the thread ---

        # Runs on the inspector's thread. A job that does not end when it is cut short, as one that computes in C, is ended by a
        # KILL. If the strand belongs to no job, nobody knows which job to blame.
        def held(stall)
          strand = stall.strand
          resumes = count_resumes
          return unless stall.lasts && @left > 1 && holds_on?(strand, resumes, computing: HELD_SECONDS, waiting: WAITING_SECONDS)

          index = job_of(strand)
          @holder = [index, strand] if index
          Process.kill(INTERRUPT, @pid) if index
          note("#{HELD}#{index}") if holds_on?(strand, resumes, computing: CUT_SECONDS, waiting: CUT_SECONDS)
        ensure
          @holder = nil
        end

        # The strand may be one that a job has spun, or one that such a strand has spun.
        def job_of(strand)
          strand = strand.owner until strand.nil? || (index = @strands.index(strand))
          index
        end

        # @return [Boolean] true when it has held the thread for the given seconds more; false as soon as it has switched
        def holds_on?(strand, resumes, computing:, waiting:)
          computed = cpu_time
          waited = 0
          while strand.state == :running && count_resumes == resumes
            return true if waited >= waiting || cpu_time - computed >= computing

            sleep(LOOK_SECONDS)
            waited += LOOK_SECONDS if asleep?
          end
          false
        end

        def count_resumes = @machine.metrics[:resumes]

        # The CPU time of the main thread, whose number is the process's. Where a sandbox refuses the clock, real time has to do.
        # Ruby cannot ask for the id of the clock, so it is made here, as in
        # https://man7.org/linux/man-pages/man3/pthread_getcpuclockid.3.html
        def cpu_time
          Process.clock_gettime((~@pid << 3) | 6)
        rescue SystemCallError
          Process.clock_gettime(Process::CLOCK_MONOTONIC)
        end

        # Whether the main thread sleeps in the kernel. Without /proc nobody knows.
        def asleep?
          File.read("/proc/#{@pid}/task/#{@pid}/stat").match?(/\) [SD]/)
        rescue SystemCallError
          false
        end

        # Runs in a signal handler, and so interrupts what holds the thread; but only a job itself, not the code that writes its
        # result.
        def cut_short
          index, strand = @holder # which the inspector's thread may have reset
          return unless index && @performing[index] && strand.equal?(running)

          @cut[index] = true
          note("#{CUT}#{index}") # now, for at its end it may let another one begin, which ends this process before its result
          @machine.terminate(@strands[index]) # or it could wait in an `ensure`
          raise Cancelled, "it holds up others"
        end

        def running
          @machine.running
        rescue UsageError # the machine is on its way to another strand
          nil
        end

        # --- orders ---

        # When the parent is gone others run the jobs anew, so this process must not go on. It ends by a KILL, which no job can
        # delay.
        def heed
          loop do
            if @lifeline.wait_readable(BEAT_SECONDS)
              text = @lifeline.read_nonblock(4096, exception: false)
              Process.kill(:KILL, @pid) if text.nil?
              next if text == :wait_readable

              (@orders ||= +"") << text
              obey(@orders.slice!(/\A.*\n/)) while @orders.include?("\n")
            end
            note(BEAT)
          end
        end

        def obey(order) = order == QUIET ? @quiet&.call : cancel(order)

        def cancel(order)
          index, why = order.split
          @members[index.to_i].ask(why.to_sym)
          @asked[index.to_i] = true
          sleep(0.001) until @machine # it has only been started
          @machine.schedule(@main, -> { cut(index.to_i) || send_result(index.to_i, nil) })
        rescue ClosedError # it has ended meanwhile
          nil
        end

        def terminated
          return pass_on_end if Process.pid != @pid

          @terminated = true
          note(TERMINATED)
          @machine&.schedule(@main, -> { cut_all })
        end

        # A process that a job has forked inherits the handler. There the signal does what it does by default.
        def pass_on_end
          trap("TERM", "DEFAULT")
          Process.kill(:TERM, Process.pid)
        end

        def cut_all = @members.each_index { |index| cut(index) }

        # false: it had not begun, and never will.
        def cut(index)
          strand = @strands[index]
          fresh = strand.state == :new
          @machine.terminate(strand)
          ended if fresh
          !fresh
        end
      end
      private_constant :GroupProcess
    end
  end
end
