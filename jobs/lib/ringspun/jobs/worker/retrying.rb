# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      # Decides what becomes of a job that has failed, and writes its failure into its entry, in Sidekiq's fields:
      # https://github.com/sidekiq/sidekiq/wiki/Job-Format
      #
      # @api private
      class Retrying
        # The error class that Exq writes into a dead job. It writes none into a job that it tries again, see retry_job and
        # fail_job in the job queue of https://github.com/akira/exq
        EXQ_ERROR = "ExqGenericError"

        # @param log [Log] for hooks that raise
        # @param clock [#call] returns seconds since the epoch, for people to read; only `retry_for` depends on it
        def initialize(config, log:, random: Random, clock: -> { Process.clock_gettime(Process::CLOCK_REALTIME) })
          @config = config
          @log = log
          @random = random
          @clock = clock
          @events = Events.new(config, log)
        end

        # @param fetched [Storage::Fetched]
        # @param error [Exception]
        # @param klass [Class, nil] nil if there is no class of that name
        # @return [Outcome]
        def call(fetched, error, klass: nil)
          job = Wire.parse_to_change(fetched.entry) # anew, for the job may have changed its arguments
          allowed = allowed_of(job, klass)
          count = Retrying.failures(job)
          record(job, error, count, fetched.queue)
          failed(fetched, job, error, outcome_of(fetched, job, error, klass, count, allowed))
        end

        # @return [Outcome] of an entry that is no job
        def malformed(fetched, error)
          entry = Wire.blamed(fetched.entry, error, Wire.time(@clock.call, milliseconds: @config.milliseconds))
          change = Storage::Failure.new(fetched.queue, fetched.token, nil, :dead, entry)
          Outcome.new(change, :malformed, error, "dead")
        end

        # @return [Outcome] of a job that is not tried again, whatever its options say
        def give_up(fetched, error, klass: nil)
          job = Wire.parse_to_change(fetched.entry)
          record(job, error, Retrying.failures(job), fetched.queue)
          failed(fetched, job, error, exhausted(fetched, job, error, klass))
        end

        # @return [Outcome] of an entry that cannot be changed
        def last_resort(fetched, error)
          Outcome.new(Storage::Failure.new(fetched.queue, fetched.token, nil, :dead), :dead, error,
                      "dead, as it was")
        end

        # How often a job may end its process while it is isolated. 0: it does not run again at all when its process has ended, as
        # one that is not tried again does not, unless it says otherwise: nobody knows what it has done.
        #
        # @param job [Hash]
        # @return [Integer]
        def deaths(job)
          own = job[Wire::DEATHS]
          return own if own.is_a?(Integer) && !own.negative?

          once = !job["retry_for"].is_a?(Numeric) && [nil, 0].include?(allowed_of(job, nil))
          once ? 0 : @config.deaths
        end

        # How often the job has failed before. In retry_count Sidekiq counts from 0, and Exq from 1. A job that waits for its next
        # try has an error_class only if Sidekiq has written it, see {EXQ_ERROR}.
        #
        # @return [Integer]
        def self.failures(job)
          count = job["retry_count"]
          return 0 unless count.is_a?(Integer) && !count.negative?

          [nil, EXQ_ERROR].include?(job["error_class"]) ? count : count + 1
        end

        # The queue that a job belongs to. A job that names none belongs to the queue where it was found. But those in the
        # quarantine have come from other queues.
        #
        # @return [String]
        def self.queue_of(job, queue) = job["queue"] || (queue == Storage::QUARANTINE ? "default" : queue)

        private

        def failed(fetched, job, error, outcome)
          delay = outcome.change.delay if outcome.kind == :retry
          @events.call(:failure, job, error)
          @events.failed(job, error, { outcome: outcome.kind, queue: fetched.queue, delay: delay })
          outcome
        end

        def outcome_of(fetched, job, error, klass, count, allowed)
          return drop(fetched, job, error) unless allowed
          return exhausted(fetched, job, error, klass) if exhausted?(job, count, allowed)

          again(fetched, job, error, klass, count)
        end

        # A job with a `retry_for` is tried again however often, as by Sidekiq, see process_retry in
        # https://github.com/sidekiq/sidekiq/blob/main/lib/sidekiq/job_retry.rb
        def exhausted?(job, count, allowed)
          seconds = job["retry_for"]
          return count >= allowed unless seconds.is_a?(Numeric)

          first = Wire.seconds(job["failed_at"])
          !first.nil? && first + seconds < @clock.call
        end

        # @return [Integer, nil] how many retries; nil: none, and the job is not kept among the dead either
        def allowed_of(job, klass)
          wanted = job["retry"]
          wanted = klass.options[:retry] if wanted.nil? && klass.respond_to?(:options)
          case wanted
          when Integer then [wanted, 0].max
          when false then nil
          else @config.retries
          end
        end

        def record(job, error, count, queue)
          job[count.zero? ? "failed_at" : "retried_at"] = Wire.time(@clock.call, milliseconds: @config.milliseconds)
          job["retry_count"] = count
          job["error_class"] = error.class.name || error.class.to_s
          job["error_message"] = ErrorText.message_of(error)
          keep_backtrace(job, error)
          job["queue"] = job["retry_queue"] if job["retry_queue"].is_a?(String)
          job["queue"] = Retrying.queue_of(job, queue)
          # It gets a new enqueued_at when it is moved to its queue again.
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

          change = Storage::Failure.new(fetched.queue, fetched.token, job["jid"], :retry, Wire.dump(job), delay)
          Outcome.new(change, :retry, error, "retry in #{Words.duration(delay)}")
        end

        def delay_of(klass, count, error, job)
          wanted = hook(klass, :retry_in, "retry_in raises") { |block| block.call(count, error, job) }
          seconds = wanted.to_f if wanted.respond_to?(:to_f)
          return seconds if seconds&.finite? && seconds.positive?
          return :dead if %i[dead kill].include?(wanted)
          return wanted if wanted == :discard

          refuse(klass, wanted) unless wanted.nil?
          (count**4) + 15 + (@random.rand(10) * (count + 1))
        end

        def refuse(klass, wanted)
          fields = { class: klass.name, answer: wanted.inspect[0, 100] }
          @log.event(:warn, "retry_in gives seconds, more than 0, :dead, :discard or nil", **fields)
        end

        # Calls a hook, which is the program's code. What it raises is logged, and counts as nil. That holds for a {Cancelled}
        # too, which a hook gets that waits in a cancelled strand.
        def hook(klass, name, complaint)
          block = klass.public_send(name) if klass.respond_to?(name)
          yield block if block
        rescue Exception => error
          @log.event(:error, complaint, class: klass.name, error: error.class.name, message: ErrorText.message_of(error))
          nil
        end

        def exhausted(fetched, job, error, klass)
          answer = hook(klass, :retries_exhausted, "retries_exhausted raises") { |block| block.call(job, error) }
          return drop(fetched, job, error) if answer == :discard || job["dead"] == false

          change = Storage::Failure.new(fetched.queue, fetched.token, job["jid"], :dead, Wire.dump(job), nil,
                                        Outcome.lock_of(job))
          @events.call(:death, job, error)
          Outcome.new(change, :dead, error, "dead")
        end

        def drop(fetched, job, error)
          @events.call(:death, job, error)
          change = Storage::Ack.new(fetched.queue, fetched.token, job["jid"], Outcome.lock_of(job))
          Outcome.new(change, :dropped, error, "dropped")
        end
      end
      private_constant :Retrying
    end
  end
end
