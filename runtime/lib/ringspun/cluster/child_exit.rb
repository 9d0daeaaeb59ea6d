# frozen_string_literal: true

module Ringspun
  module Cluster
    # The end of a forked process that is a program of its own, as that of a worker: blocks of at_exit that were registered in it
    # run, and none of its parent's.
    #
    # Such blocks run from the last to the first. One that is registered right behind the fork stands between the two kinds, and
    # ends the process. It does so by exit!, which runs no finalizers, for most of them are the parent's, too. What finalizers
    # would do that is seen outside of the process is done before: files are flushed, and Tempfiles removed, which the process has
    # made.
    #
    # @api private
    class ChildExit
      # The time that pipes, sockets and terminals have at the end.
      FLUSH_SECONDS = 1
      private_constant :FLUSH_SECONDS

      # Called in the child, before anything can register a block.
      def self.take_over
        trap("EXIT", "DEFAULT") # the parent's
        child = new
        at_exit { child.leave($!) }
      end

      def initialize
        @pid = Process.pid
        @inherited = ObjectSpace::WeakMap.new
        [IO, *temporary].each { |kind| ObjectSpace.each_object(kind) { |one| @inherited[one] = true } }
      end

      # Ends the process. In one that it has forked itself, all blocks run that there are, as behind any other fork.
      #
      # @param error [Exception, nil] what ends it
      def leave(error)
        return unless Process.pid == @pid

        temporary.each { |kind| own(kind).each { |file| remove(file) if Ringspun.__send__(:finalizer?, file) } }
        flush
      ensure
        exit!(status_of(error)) if Process.pid == @pid
      end

      private

      # Files on a disk have as long as they need: what a busy computer has not written by some time would be lost. A pipe that is
      # full holds up no other IO, and not the end: Ruby does not wait for it, either.
      def flush
        files, others = own(IO).select { |io| buffers?(io) }.partition { |io| on_disk?(io) }
        files.each { |io| flush_one(io) }
        flushing = others.map { |io| Thread.new { flush_one(io) } }
        due = now + FLUSH_SECONDS
        flushing.each { |thread| thread.join([due - now, 0].max) }
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

      # A process may have thousands of sockets, which buffer nothing.
      def buffers?(io)
        !io.closed? && !io.sync
      rescue IOError # it was never opened
        false
      end

      # A FIFO and a terminal are Files as well, and may hold up a writer.
      def on_disk?(io)
        io.stat.file?
      rescue SystemCallError # its descriptor is closed
        false
      end

      # A disk that is full, a pipe without a reader: Ruby says nothing of these.
      def flush_one(io)
        io.flush
      rescue StandardError
        nil
      end

      # @return [Array<Class>] none where none was needed
      def temporary = defined?(::Tempfile) ? [::Tempfile] : []

      def own(kind) = ObjectSpace.each_object(kind).reject { |one| @inherited.key?(one) }

      # Its finalizer says nothing of what fails.
      def remove(file)
        file.close!
      rescue StandardError
        nil
      end

      # As Ruby has it.
      def status_of(error)
        case error
        when nil then 0
        when SystemExit then error.status
        else 1
        end
      end
    end
  end
end
