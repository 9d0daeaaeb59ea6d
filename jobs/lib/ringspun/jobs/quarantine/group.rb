# frozen_string_literal: true

require_relative "group_process"

module Ringspun
  module Jobs
    class Quarantine
      # The parent's side of jobs that share a child: starts the child, yields each job that has ended, and ends the child when
      # one of its jobs holds up the others and cannot be cut short.
      #
      # The child writes to two pipes. `results` gets the results of jobs. `notes` gets short lines: a heartbeat twice a second,
      # which job begins, that all of them have had a turn, which one holds the thread, which one is cut short, and that the
      # child got a TERM.
      class Group
        # How the child has ended. `fate`: "SIGKILL", "exit 3". `told`: by a TERM, which may have been sent to all processes of
        # the program. `broken_up`: by its parent, and not by a job. `held`: the member because of which the parent did that.
        Ending = Struct.new(:fate, :told, :broken_up, :held) do
          # @return [Boolean] false: its parent has ended the child, and no job has
          # @since 0.1.0
          def died? = !broken_up
        end

        # The result of a job that held up the others and was cut short.
        HELD = GroupProcess::CUT_SHORT

        # Seconds of silence of a child after which something in it holds Ruby's lock (the GVL).
        SILENT_SECONDS = 2.5
        # Seconds for the `ensure` blocks of the jobs that are held up.
        BREAK_UP_SECONDS = 0.5
        READ_BYTES = 65_536
        LENGTH_BYTES = 4
        private_constant :SILENT_SECONDS, :BREAK_UP_SECONDS, :READ_BYTES, :LENGTH_BYTES

        # @api private
        def initialize(members, title:, log:, grace:, quiet: nil, settled: nil, &perform)
          @members = members
          @title = title
          @quiet = quiet
          @log = log
          @grace = grace
          @perform = perform
          @left = members.to_h { |member| [member, true] }.compare_by_identity
          @terminated = @broken_up = @settled = false
          @when_settled = settled
          @orders = [] # before there is a child
          @cut = []
        end

        # Starts the child, and returns when it has ended. May be called once. May switch strands.
        #
        # @yieldparam member [Object] which has ended
        # @yieldparam value [Object] the block's value for it; nil: it was cancelled; or {HELD}
        # @return [Ending]
        # @raise [SystemCallError] when no process can be forked
        # @since 0.1.0
        def run(&ended)
          @ended = ended
          results, notes = Array.new(2) { IO.pipe }
          @child = start(results, notes)
          [results, notes].each { |pipe| pipe.last.close }
          @orders.each { |order| @child.write(order) }
          @child.signal(:KILL) if @broken_up
          fate = follow(results.first, notes.first)
          Ending.new(@terminated ? "SIGTERM" : fate, @terminated, @broken_up, @held)
        ensure
          Ringspun.shield { @child.finish(@grace) } if @child
          [*results, *notes].each(&:close)
        end

        # Cancels one of the jobs, whose end is yielded as that of any other. Never waits.
        #
        # @param member [Object]
        # @param why [Symbol] the argument for the member's `ask`, in the child
        # @return [nil]
        # @since 0.1.0
        def cancel(member, why)
          give(GroupProcess.order(@members.index { |each| each.equal?(member) }, why))
        end

        # Tells the child that the worker begins no more jobs. Never waits.
        #
        # @return [nil]
        # @since 0.1.0
        def quiet = give(GroupProcess::QUIET)

        # @return [Boolean] whether each job has had a turn, and waits or has ended
        # @since 0.1.0
        def settled? = @settled

        # Ends the child at once, for a job that does not end when it is cancelled.
        #
        # @return [nil]
        # @since 0.1.0
        def break_up
          @broken_up = true
          @child&.signal(:KILL)
          nil
        end

        private

        def give(order)
          @child ? @child.write(order) : @orders << order
          nil
        end

        def start(results, notes)
          Child.new do |lifeline|
            [results, notes].each { |pipe| pipe.first.close }
            GroupProcess.new(@members, lifeline, results.last, notes.last, log: @log, title: @title, quiet: @quiet, &@perform).run
          end
        end

        # Waits for the child itself, and then reads what it has written. The pipes may not be at their end: processes that the
        # child has started may hold them open.
        def follow(results, notes)
          text = +""
          fate = nil
          Ringspun.scope do |scope|
            scope.spin { read(results) { |more| take(text << more) } }
            scope.spin { listen(notes) }
            fate = Child.fate(@child.wait)
            scope.cancel
          end
          take(text << rest(results))
          rest(notes).each_line { |line| heed(line) }
          @cut.each { |member| ended(member, HELD) } unless @broken_up || @terminated
          fate
        end

        # In a shield: once the scope is cancelled, a switch of strands in the block, as while a value is loaded, would end it.
        def read(pipe)
          loop do
            more = pipe.readpartial(READ_BYTES)
            Ringspun.shield { yield more }
          end
        rescue EOFError
          nil
        end

        def rest(pipe)
          text = +""
          while (more = pipe.read_nonblock(READ_BYTES, exception: false)).is_a?(String)
            text << more
          end
          text
        end

        # Takes the results that have come as a whole.
        def take(text)
          while text.bytesize >= LENGTH_BYTES
            length = text.unpack1("N")
            break if text.bytesize < LENGTH_BYTES + length

            frame = text.slice!(0, LENGTH_BYTES + length)
            index, value = Marshal.load(frame.byteslice(LENGTH_BYTES..)) # rubocop:disable Security/MarshalLoad -- our own process wrote it
            ended(@members[index], value)
          end
        end

        def ended(member, value)
          @ended.call(member, value) if @left.delete(member)
        end

        def listen(notes)
          machine = Machine.current
          loop do
            line = machine.timeout(SILENT_SECONDS) { notes.gets } or break
            held_up(member_of(line)) if heed(line) == :held
          rescue TimeoutError
            held_up(@begun)
          end
        end

        # nil: the child does not know which.
        def member_of(line)
          number = line[1..].chomp
          @members[Integer(number)] unless number.empty?
        end

        def heed(line)
          case line[0]
          when GroupProcess::BEGUN then @begun = member_of(line)
          when GroupProcess::HELD then return :held
          when GroupProcess::CUT then @cut << member_of(line)
          when GroupProcess::TERMINATED then @terminated = true
          when GroupProcess::SETTLED then settle
          end
          nil
        end

        def settle
          @settled = true
          @when_settled&.call
        end

        # A job that holds the thread holds up all others of its child. The last one holds up nobody.
        def held_up(member)
          return if @left.size < 2

          @broken_up = true
          @held = member if @left.key?(member)
          @child.signal(:TERM)
          Machine.current.sleep(BREAK_UP_SECONDS)
          @child.signal(:KILL)
        end
      end
    end
  end
end
