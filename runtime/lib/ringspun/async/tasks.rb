# frozen_string_literal: true

require_relative "root"

module Ringspun
  module AsyncBridge
    # What a scheduler keeps about Async's tasks. A forked child makes a new one.
    class Tasks
      # @return [Root]
      attr_reader :root
      # @return [Hash{Fiber => Strand}] the running tasks: their fibers and strands
      attr_reader :strands
      # @return [Hash{Fiber => Object}] the fibers in {Scheduling#transfer}, and what it will return
      attr_reader :transferred
      # @return [Hash{Strand => true}] the strands that no run waits for
      attr_reader :loose
      # @return [Strand, nil] the strand of the task that was begun last
      attr_accessor :begun
      # @return [Fiber, nil] the fiber that waits in {Scheduling#end_tasks}
      attr_accessor :ending

      def initialize(scheduler)
        @pid = Process.pid
        @root = Root.new(scheduler)
        @strands = {}.compare_by_identity
        @transferred = {}.compare_by_identity
        @loose = {}.compare_by_identity
        @load_at = @load_cpu = nil
        @load = 0.0
      end

      def inherited? = @pid != Process.pid

      # The share of the last second or so in which this thread has used a processor.
      def load
        at, cpu = clock(:CLOCK_MONOTONIC), clock(:CLOCK_THREAD_CPUTIME_ID)
        @load_at, @load_cpu = at, cpu unless @load_at
        return @load if at - @load_at < 0.01

        @load = [(cpu - @load_cpu) / (at - @load_at), 1.0].min
        @load_at, @load_cpu = at, cpu if at - @load_at > 1
        @load
      end

      private

      def clock(name) = Process.clock_gettime(Process.const_get(name))
    end
  end
end
