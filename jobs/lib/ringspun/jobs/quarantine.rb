# frozen_string_literal: true

require_relative "child"

module Ringspun
  module Jobs
    # Runs a job alone, in a process of its own, and sees how that ends. A job that ends its process takes no other job with it
    # here, and nobody has to guess which one it was.
    #
    #   result = quarantine.run(fetched, job) { perform(job) }
    #   result.died? ? warn("the job has ended its process: #{result.fate}") : result.value
    #
    # The child has the program as it was loaded, on a machine of its own; of what the parent has connected it may use nothing, so
    # the block makes its own connections. What it answers has to survive Marshal; {portable} makes that of an error.
    #
    # The child ends with its parent. When the strand that waits for it is cancelled the child gets a TERM, which cancels what it
    # runs so that `ensure` blocks run, and some seconds later a KILL.
    #
    # @since 0.1.0
    class Quarantine
      # Seconds for `ensure` blocks.
      GRACE = 5

      # Ctrl-C and Ctrl-Z reach all processes of a terminal, and the others concern the parent.
      IGNORED = %w[INT TSTP TTIN USR1 USR2].freeze
      private_constant :GRACE, :IGNORED

      # What a child writes that was told to end.
      TOLD = :"told to end"
      private_constant :TOLD

      # How it has ended: `value` is the block's, unless it died. `fate` says how the process has ended: "SIGKILL", "exit 3".
      # `told`: by a TERM, which may have been for all processes of the program.
      Result = Struct.new(:value, :fate, :answered, :told) do
        # @return [Boolean] without an answer
        # @since 0.1.0
        def died? = !answered
      end

      # An error on its way to another process, where it arrives as itself; or, if its class was only loaded here, as one that
      # looks like it.
      Carried = Struct.new(:error) do
        def self._load(bytes)
          error, like = Marshal.load(bytes) # rubocop:disable Security/MarshalLoad -- our own process wrote it
          Marshal.load(error) # rubocop:disable Security/MarshalLoad
        rescue StandardError, LoadError
          like
        end

        def _dump(_level) = Marshal.dump([Marshal.dump(error), Quarantine.like(error)])
      end
      private_constant :Carried

      # An error as it can be handed over: itself, or if it has something in it that no other process can have, one that looks
      # like it.
      #
      # @param error [Exception]
      # @return [Object] which Marshal loads as an Exception
      # @since 0.1.0
      def self.portable(error)
        Marshal.load(Marshal.dump(error))
        Carried.new(error)
      rescue StandardError
        like(error)
      end

      # @param error [Exception]
      # @return [RuntimeError]
      # @since 0.1.0
      def self.like(error)
        text = error.message rescue "its message raises"
        RuntimeError.new("#{error.class}: #{text}").tap { |other| other.set_backtrace(error.backtrace) }
      end

      # @param log [Log, nil] which the child writes to as well
      # @param grace [Numeric] seconds between TERM and KILL
      # @since 0.1.0
      def initialize(log: nil, grace: GRACE)
        @log = log
        @grace = grace
      end

      # May switch strands.
      #
      # @param fetched [Storage::Fetched]
      # @param job [Hash]
      # @yield in the child, in a strand of its machine
      # @return [Result]
      # @raise [SystemCallError] when there can be no other process
      # @since 0.1.0
      def run(fetched, job)
        reader, writer = IO.pipe
        child = start(job, reader, writer) { yield fetched, job }
        writer.close
        result_of(child, reader)
      ensure
        Ringspun.shield { child.finish(@grace) } if child
        [reader, writer].each { |io| io&.close }
      end

      private

      def start(job, reader, writer, &block)
        Child.new do |leash|
          reader.close
          settle(leash, job)
          answer(writer, &block)
          0
        end
      end

      # As a program that was started for this.
      def settle(leash, job)
        IGNORED.each { |name| trap(name, "IGNORE") }
        trap("TERM", "DEFAULT")
        Process.setproctitle("ringspun-jobs quarantine #{job["class"]} #{job["jid"]}")
        Thread.new { die_with_parent(leash) }
      end

      # Others run the job anew, so it must not go on. Nothing that the job does can be in the way of a KILL.
      def die_with_parent(leash)
        leash.wait_readable
        Process.kill(:KILL, Process.pid)
      end

      def answer(writer, &block)
        Ringspun.run do
          value = block.call
          @log&.flush
          writer.write(Marshal.dump(value))
        end
      rescue SignalException
        writer.write(Marshal.dump(TOLD))
      ensure
        writer.close
      end

      # What the child has written can be read when it has ended. The end of the pipe does not tell of that: the child may have
      # processes of its own, which have the pipe as well.
      def result_of(child, reader)
        text = +""
        fate = nil
        # What switches strands after the scope's end is told would end with it, and without a value.
        Ringspun.scope do |scope|
          scope.spin { read(reader, text) }
          fate = Child.fate(child.wait)
          scope.cancel
        end
        read_rest(reader, text)
        result(text, fate)
      end

      def read(reader, text)
        loop { text << reader.readpartial(65_536) }
      rescue EOFError
        nil
      end

      def read_rest(reader, text)
        while (more = reader.read_nonblock(65_536, exception: false)).is_a?(String)
          text << more
        end
      end

      def result(text, fate)
        value = Marshal.load(text) # rubocop:disable Security/MarshalLoad -- our own process wrote it
        value == TOLD ? Result.new(nil, "SIGTERM", false, true) : Result.new(value, fate, true)
      rescue ArgumentError, TypeError, EOFError # it ended while, or before, it wrote
        Result.new(nil, fate, false)
      end
    end
  end
end
