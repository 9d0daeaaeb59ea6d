# frozen_string_literal: true

module Ringspun
  class Inspector
    # A strand that held the thread for too long.
    #
    # @!attribute strand [Strand, nil] nil when it had ended before it could be identified
    # @!attribute seconds [Float] how long it had held the thread when it was noticed, at least
    # @!attribute backtrace [Array<String>] where it was then; empty when that is not known
    # @!attribute lasts [Boolean] false when it did not hold the thread any more; the backtrace is that of its next wait then
    Stall = Struct.new(:strand, :seconds, :backtrace, :lasts) do
      # @return [String]
      # @since 0.1.0
      def to_s
        lines = backtrace.map { |line| "\n    #{line}" }.join
        "ringspun: #{who} #{lasts ? "has held" : "held"} the thread for #{format("%.3f", seconds)} s#{where}#{lines}"
      end

      private

      def who
        return "a strand that has ended" unless strand

        [strand.inspect, *("spun at #{strand.spawned_at}" if strand.spawned_at)].join(" ")
      end

      def where
        return if backtrace.empty?

        lasts ? ", and is at" : ", and has come to"
      end
    end

    # A thread that reports strands that hold a machine's thread for too long. {Inspector#watch} starts one.
    class Watch
      # @return [Float] seconds
      # @since 0.1.0
      attr_reader :limit

      # @api private
      def initialize(machine, limit, to)
        @limit = check_limit(limit)
        @report = receiver(to)
        @lookout = Lookout.new(machine, @limit)
        @lookout.thread = @thread = Thread.new { work }
        @thread.name = "ringspun watch"
        @thread.report_on_exception = false
      end

      # Ends the thread, and waits for that. A report in progress is completed.
      #
      # May switch strands.
      #
      # @return [nil]
      # @since 0.1.0
      def stop
        end_soon
        @thread.join unless Thread.current == @thread
        nil
      end

      # @return [Boolean]
      # @since 0.1.0
      def stopped? = !@thread.alive?

      private

      # Not in a forked child: it does not have the thread, and the lookout's lock may be locked forever.
      def end_soon = @thread.alive? && @lookout.stop

      def check_limit(limit)
        Seconds.positive(limit)&.to_f or
          raise UsageError, "limit: must be a positive number of seconds, got #{limit.inspect}"
      end

      def receiver(to)
        if to.respond_to?(:call) then to
        elsif to.respond_to?(:warn) then ->(stall) { to.warn(stall.to_s) }
        elsif to.respond_to?(:write) then ->(stall) { to.write("#{stall}\n") }
        else
          raise UsageError, "to: must be a Logger, an IO, or answer to #call, got #{to.inspect}"
        end
      end

      def work
        while (strand, seconds, backtrace, lasts = @lookout.wait)
          report(Stall.new(strand, seconds, backtrace || [], lasts))
        end
      end

      def report(stall)
        @report.call(stall)
      rescue StandardError => e # later stalls are still reported to `to`
        Warnings.tell("#{stall}\nringspun: this could not be told as asked for: #{e.full_message(highlight: false)}")
      end
    end
  end
end
