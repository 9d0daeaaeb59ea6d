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

        temporary.each { |kind| each_own(kind, &:close!) }
        each_own(IO) { |io| io.flush unless io.closed? }
      ensure
        exit!(status_of(error)) if Process.pid == @pid
      end

      private

      # @return [Array<Class>] none where none was needed
      def temporary = defined?(::Tempfile) ? [::Tempfile] : []

      def each_own(kind)
        ObjectSpace.each_object(kind) do |one|
          yield one unless @inherited.key?(one)
        rescue StandardError
          nil # a disk that is full, a pipe without a reader, one that is not open: Ruby says nothing of these either
        end
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
