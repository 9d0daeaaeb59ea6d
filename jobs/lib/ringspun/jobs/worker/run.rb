# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      # A job that this worker has in flight.
      class Run
        # Longer entries are shown without their arguments: a thousand of them go to the storage every few seconds.
        SHOWN_BYTES = 4096
        SHOWN = %w[class wrapped queue jid retry created_at enqueued_at].freeze
        private_constant :SHOWN_BYTES, :SHOWN

        # @return [Storage::Fetched]
        # @api private
        attr_reader :fetched

        # @return [Hash] the job, with String keys
        # @since 0.1.0
        attr_reader :job

        # @return [Integer] the number of the run; each run of a worker has its own
        # @since 0.1.0
        attr_reader :number

        # @return [Float] when it began, in seconds since the epoch
        # @since 0.1.0
        attr_reader :began_at

        # @return [Symbol, nil] why it was asked to end: :cancel or :return
        # @api private
        attr_reader :asked

        # @return [Strand, nil]
        # @api private
        attr_accessor :strand

        # Notes that the job begins.
        #
        # @api private
        def instance=(instance)
          @instance = instance
          @steady = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        end

        # @return [Float] for how long the job has run
        # @api private
        def seconds = Process.clock_gettime(Process::CLOCK_MONOTONIC) - @steady

        # @return [Outcome, nil]
        # @api private
        attr_accessor :outcome

        # @return [Boolean] whether its job was taken away while it ran
        # @api private
        def lost? = @lost

        # Notes that its job was taken away.
        #
        # @api private
        def lose = @lost = true

        # Notes that the job acknowledges itself, whatever becomes of that.
        #
        # @api private
        def try_own_ack = @own_ack_tried = true

        # @return [Boolean] whether it has tried
        # @api private
        def own_ack_tried? = @own_ack_tried

        # Notes that the job was acknowledged in a transaction of its own, which may be rolled back yet.
        #
        # @return [nil]
        # @api private
        def acknowledge
          @acknowledged = true
          nil
        end

        # @return [Boolean] whether it was
        # @api private
        def acknowledged? = @acknowledged

        # @api private
        def initialize(fetched, job, number)
          @fetched = fetched
          @job = job
          @number = number
          @began_at = Process.clock_gettime(Process::CLOCK_REALTIME)
          @asked = @strand = @instance = @outcome = nil
          @lost = @acknowledged = @own_ack_tried = false
        end

        # @return [String, nil]
        # @since 0.1.0
        def jid = @job && @job["jid"]

        # @return [String]
        # @since 0.1.0
        def queue = @fetched.queue

        # @api private
        def quarantined? = queue == Storage::QUARANTINE

        # @return [String, nil] the name of the job's class, and not that of what wraps it
        # @since 0.1.0
        def class_name = @job && (@job["wrapped"] || @job["class"])

        # @return [Array<Storage::Push>, nil] the jobs that are to follow this one
        # @api private
        def followers = (@instance.followers if @instance.respond_to?(:followers))

        # Notes why the run is to end. The first reason counts.
        #
        # @api private
        def ask(why)
          @asked ||= why
          mark_cancelled if why == :cancel
        end

        # Has the job know that it is cancelled. May be called from other threads.
        #
        # @api private
        def mark_cancelled = (@instance.mark_cancelled if @instance.respond_to?(:mark_cancelled))

        # @return [String] the entry as dashboards show it
        # @api private
        def shown
          entry = @fetched.entry
          return entry.scrub if entry.bytesize <= SHOWN_BYTES

          @shown ||= begin
            job = Wire.parse_to_change(entry).slice(*SHOWN)
            Wire.dump({ **job, "args" => ["#{Words.count(entry.bytesize, "byte")} in all"] }).scrub
          end
        end

        # @return [String]
        # @since 0.1.0
        def inspect = "#<#{self.class} #{class_name} jid=#{jid} queue=#{queue}>"
      end
    end
  end
end
