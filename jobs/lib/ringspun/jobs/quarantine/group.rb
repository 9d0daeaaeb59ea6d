# frozen_string_literal: true

require_relative "group_process"

module Ringspun
  module Jobs
    class Quarantine
      # Jobs that share a child, as their parent sees them: it starts the child, hears of each job that has ended, and ends the
      # child when one of its jobs holds up the others and cannot be cut short.
      #
      # The child tells by two pipes. `results` has what jobs have come to. `notes` has short lines: a sign of life twice a
      # second, which job begins, which holds the thread, and that the child got a TERM.
      class Group
        # How the child has ended. `fate`: "SIGKILL", "exit 3". `told`: by a TERM, which may have been for all processes of the
        # program. `broken_up`: its parent has ended it, and no job has. `held`: the member for which it did that.
        Ending = Struct.new(:fate, :told, :broken_up, :held) do
          # @return [Boolean] whether the child or one of its jobs has ended it, before all jobs had ended
          # @since 0.1.0
          def died? = !broken_up
        end

        # What a job comes to that holds up the others and was cut short.
        HELD = :held

        # Of a child that says nothing, something holds Ruby's lock.
        SILENT_SECONDS = 2.5
        # Seconds for `ensure` blocks of those who are held up.
        BREAK_UP_SECONDS = 0.5
        READ_BYTES = 65_536
        LENGTH_BYTES = 4
        private_constant :SILENT_SECONDS, :BREAK_UP_SECONDS, :READ_BYTES, :LENGTH_BYTES

        # @api private
        def initialize(members, title:, log:, grace:, &perform)
          @members = members
          @title = title
          @log = log
          @grace = grace
          @perform = perform
          @left = members.to_h { |member| [member, true] }.compare_by_identity
          @told = @broken_up = false
          @orders = [] # before there is a child
        end

        # Starts the child and returns when that has ended. Runs once. May switch strands.
        #
        # @yieldparam member [Object] which has ended
        # @yieldparam value [Object] what the block has answered for it; nil: it was cancelled before it had begun; {HELD}
        # @return [Ending]
        # @raise [SystemCallError] when there can be no other process
        # @since 0.1.0
        def run(&ended)
          @ended = ended
          results, notes = Array.new(2) { IO.pipe }
          @child = start(results, notes)
          [results, notes].each { |pipe| pipe.last.close }
          @orders.each { |order| @child.tell(order) }
          @child.signal(:KILL) if @broken_up
          fate = follow(results.first, notes.first)
          Ending.new(@told ? "SIGTERM" : fate, @told, @broken_up, @held)
        ensure
          Ringspun.shield { @child.finish(@grace) } if @child
          [*results, *notes].each(&:close)
        end

        # Cancels one of the jobs, whose end is told as that of any other. Never waits.
        #
        # @param member [Object]
        # @param why [Symbol] which its `ask` hears, in the child
        # @return [nil]
        # @since 0.1.0
        def cancel(member, why)
          order = GroupProcess.order(@members.index { |each| each.equal?(member) }, why)
          @child ? @child.tell(order) : @orders << order
          nil
        end

        # Ends the child at once: one of the jobs does not end when it is cancelled.
        #
        # @return [nil]
        # @since 0.1.0
        def break_up
          @broken_up = true
          @child&.signal(:KILL)
          nil
        end

        private

        def start(results, notes)
          Child.new do |lifeline|
            [results, notes].each { |pipe| pipe.first.close }
            GroupProcess.new(@members, lifeline, results.last, notes.last, log: @log, title: @title, &@perform).run
          end
        end

        # What the child has written can be read when it has ended. The end of a pipe does not tell of that: the child may have
        # processes of its own, which have the pipe as well.
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
          fate
        end

        # What switches strands after the scope is cancelled would end with it, such as the loading of a value.
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

        # Whatever is whole of what has come.
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
          when GroupProcess::TOLD then @told = true
          end
          nil
        end

        # Who holds the thread holds up all others of its child. One that is the last holds up nobody.
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
