# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      # What becomes of a job that has failed, and what is written into its entry.
      #
      # @api private
      class Retrying
        # Sidekiq's fields have no limit of their own.
        MESSAGE_MAX = 10_000

        # What Exq calls the error of a dead job. Of one that it tries again it names none.
        EXQ_ERROR = "ExqGenericError"

        # @param log [Log] which hears of back-offs and hooks that raise themselves
        # @param clock [#call] seconds since the epoch, for what people read: nothing is decided by it but `retry_for`
        def initialize(config, log:, random: Random, clock: -> { Process.clock_gettime(Process::CLOCK_REALTIME) })
          @config = config
          @log = log
          @random = random
          @clock = clock
        end

        # @param fetched [Storage::Fetched]
        # @param error [Exception]
        # @param klass [Class, nil] nil where there is none of that name
        # @return [Outcome]
        def call(fetched, error, klass: nil)
          job = Wire.parse_to_change(fetched.entry) # anew, for the job may have changed its arguments
          allowed = allowed_of(job, klass)
          count = Retrying.failures(job)
          record(job, error, count, fetched.queue)
          return drop(fetched, job, error) unless allowed
          return exhausted(fetched, job, error, klass) if count >= allowed || too_old?(job)

          again(fetched, job, error, klass, count)
        end

        # @return [Outcome] of what is no job
        def malformed(fetched, error)
          entry = Wire.blamed(fetched.entry, error, Wire.time(@clock.call, milliseconds: @config.milliseconds))
          change = Storage::Failure.new(fetched.queue, fetched.entry, nil, :dead, entry)
          Outcome.new(change, :malformed, error, "dead")
        end

        # @return [Outcome] of a job that is not tried again, however often it may be
        def give_up(fetched, error, klass: nil)
          job = Wire.parse_to_change(fetched.entry)
          record(job, error, Retrying.failures(job), fetched.queue)
          exhausted(fetched, job, error, klass)
        end

        # @return [Outcome] of an entry that cannot be written anew
        def last_resort(fetched, error)
          Outcome.new(Storage::Failure.new(fetched.queue, fetched.entry, nil, :dead, fetched.entry), :dead, error,
                      "dead, as it was")
        end

        # How often the job has failed before. Sidekiq counts from 0, and Exq from 1; of these two only Sidekiq says of a job
        # that waits for its next time what the error was.
        #
        # @return [Integer]
        def self.failures(job)
          count = job["retry_count"]
          return 0 unless count.is_a?(Integer) && !count.negative?

          [nil, EXQ_ERROR].include?(job["error_class"]) ? count : count + 1
        end

        # The lock that goes when the job is done with, one way or another. A lock until :start is gone by then, one until
        # :expiry stays.
        #
        # @return [String, nil]
        def self.lock_of(job)
          token = job["unique_token"]
          token if token.is_a?(String) && [nil, "success"].include?(job["unique_until"])
        end

        # Into which queue a job belongs. One that names none belongs where it was found; but those in the quarantine have come
        # from elsewhere.
        #
        # @return [String]
        def self.queue_of(job, queue) = job["queue"] || (queue == Storage::QUARANTINE ? "default" : queue)

        # A message is code of the job's, and may raise.
        def self.message_of(error)
          error.message.to_s.dup.force_encoding(Encoding::UTF_8).scrub[0, MESSAGE_MAX]
        rescue StandardError => another
          "its message raises #{another.class}"
        end

        private

        # nil: never again, and never dead either.
        def allowed_of(job, klass)
          wanted = job["retry"]
          wanted = klass.options[:retry] if wanted.nil? && klass.respond_to?(:options)
          case wanted
          when Integer then [wanted, 0].max
          when false then nil
          else @config.retries
          end
        end

        def too_old?(job)
          seconds = job["retry_for"]
          first = Wire.seconds(job["failed_at"])
          seconds.is_a?(Numeric) && first && first + seconds < @clock.call
        end

        def record(job, error, count, queue)
          job[count.zero? ? "failed_at" : "retried_at"] = Wire.time(@clock.call, milliseconds: @config.milliseconds)
          job["retry_count"] = count
          job["error_class"] = error.class.name || error.class.to_s
          job["error_message"] = Retrying.message_of(error)
          keep_backtrace(job, error)
          job["queue"] = job["retry_queue"] if job["retry_queue"].is_a?(String)
          job["queue"] = Retrying.queue_of(job, queue)
          # Who puts it into its queue again says when.
          job.delete("enqueued_at")
          job.delete("at")
        end

        def keep_backtrace(job, error)
          lines = error.backtrace if job["backtrace"]
          return unless lines

          lines = lines.first([job["backtrace"].to_i, 0].max) unless job["backtrace"] == true
          job["error_backtrace"] = Backtrace.dump(lines)
        end

        def again(fetched, job, error, klass, count)
          delay = delay_of(klass, count, error, job)
          return drop(fetched, job, error) if delay == :discard
          return exhausted(fetched, job, error, klass) if delay == :dead

          change = Storage::Failure.new(fetched.queue, fetched.entry, job["jid"], :retry, Wire.dump(job), delay)
          Outcome.new(change, :retry, error, "retry in #{delay.round} s")
        end

        def delay_of(klass, count, error, job)
          wanted = hook(klass, :retry_in, "retry_in raises") { |block| block.call(count, error, job) }
          seconds = wanted.to_f if wanted.respond_to?(:to_f)
          return seconds if seconds&.finite? && seconds.positive?
          return :dead if %i[dead kill].include?(wanted)
          return wanted if wanted == :discard

          (count**4) + 15 + (@random.rand(10) * (count + 1))
        end

        # A hook is code of the program's. What it raises is told, and it has said nothing then; that it waits in a strand that is
        # cancelled is no exception.
        def hook(klass, name, complaint)
          block = klass.public_send(name) if klass.respond_to?(name)
          yield block if block
        rescue Exception => error
          @log.event(:error, complaint, class: klass.name, error: error.class.name, message: Retrying.message_of(error))
          nil
        end

        def exhausted(fetched, job, error, klass)
          answer = hook(klass, :retries_exhausted, "retries_exhausted raises") { |block| block.call(job, error) }
          return drop(fetched, job, error) if answer == :discard || job["dead"] == false

          change = Storage::Failure.new(fetched.queue, fetched.entry, job["jid"], :dead, Wire.dump(job), nil,
                                        Retrying.lock_of(job))
          Outcome.new(change, :dead, error, "dead")
        end

        def drop(fetched, job, error)
          change = Storage::Ack.new(fetched.queue, fetched.entry, job["jid"], Retrying.lock_of(job))
          Outcome.new(change, :dropped, error, "dropped")
        end
      end
      private_constant :Retrying
    end
  end
end
