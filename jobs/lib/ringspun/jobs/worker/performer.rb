# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      # Runs one job in the strand that calls it, and returns its outcome.
      #
      # @api private
      class Performer
        # The name of a constant. Nothing else is looked up.
        CLASS_NAME = /\A[[:upper:]][[:word:]]*(::[[:upper:]][[:word:]]*)*\z/

        # What the classes of a program include that has kept the gem.
        GEM_S = "Sidekiq::Job"

        LOOK_SECONDS = 0.1
        private_constant :GEM_S, :LOOK_SECONDS

        # @return [Backoff] by which runs call the storage
        attr_writer :backoff

        # @param storage [Storage] which releases locks
        # @param retrying [Retrying] decides about jobs that fail
        # @param backoff [Backoff] of the machine; in a child another takes its place
        # @param own_ack [OwnAck] for jobs that acknowledge themselves
        def initialize(config, storage, retrying, backoff, own_ack)
          @config = config
          @storage = storage
          @retrying = retrying
          @backoff = backoff
          @own_ack = own_ack
          @watched = [Notices, Tracing].map(&:look).any?
          @reloader = config.reloader
          @looked_at = 0.0
        end

        # May switch strands.
        #
        # @param run [Run]
        # @return [Outcome]
        # @raise [Cancelled] when the job was cancelled and nobody has asked for that by {Run#ask}
        def call(run)
          job = run.job
          klass = nil
          release(job) if job["unique_until"] == "start"
          value = in_unit(run) do
            klass = class_of(job["class"])
            @watched ? watched(klass, job, run) : perform(klass, job, run)
          end
          outcome = Outcome.done(run.fetched, job, followers: run.followers)
          job["keep_result"] ? keep(outcome, value, job["keep_result"]) : outcome
        rescue Snooze => snooze
          snoozed(run.fetched, snooze.seconds)
        rescue Exception => error # the job's SystemExit and NoMemoryError must not end a thousand others
          return Outcome.ended_early(run.fetched, job, run.asked) if run.asked && by_cancellation?(error)
          raise if error.is_a?(Cancelled)

          decide(run, error, klass)
        end

        private

        # In the reloader once more, for this may call the program's hooks. But it may be the reloader that raises, as where a
        # file of the program is half written.
        def decide(run, error, klass)
          in_reloader { @retrying.call(run.fetched, error, klass: klass) }
        rescue StandardError, ScriptError
          @retrying.call(run.fetched, error, klass: klass)
        end

        # Rails reports what leaves the reloader as an error. That a job is put back, or cancelled by hand, is none.
        def in_unit(run)
          return yield unless @reloader

          ended = nil
          value = @reloader.call do
            yield
          rescue Exception => error
            raise unless run.asked && by_cancellation?(error)

            ended = error
          end
          ended ? raise(ended) : value
        end

        def in_reloader(&) = @reloader ? @reloader.call(&) : yield

        def watched(klass, job, run)
          return traced(klass, job, run) unless told?(run.began_at)

          Notices.around("perform", { job: job, queue: run.queue }) { traced(klass, job, run) }
        end

        # Whether somebody listens is asked ten times a second. Asked for each job, it would take a worker some percent of its
        # time.
        def told?(now)
          return @told if (now - @looked_at).abs < LOOK_SECONDS

          @looked_at = now
          @told = Notices.wanted?("perform")
        end

        def traced(klass, job, run)
          Tracing.on? ? Tracing.perform(job, run.queue) { perform(klass, job, run) } : perform(klass, job, run)
        end

        def perform(klass, job, run)
          instance = klass.new
          instance.jid = job["jid"]
          run.instance = instance
          instance.acknowledge_by(@own_ack, run)
          chain = @config.server_middleware
          return instance.perform(*job["args"]) if chain.empty?

          value = nil
          chain.invoke(instance, job, run.queue) { value = instance.perform(*job["args"]) }
          value
        end

        # A result that JSON does not know is no reason to run the job again.
        def keep(outcome, value, seconds)
          return outcome unless seconds.is_a?(Numeric) && seconds.to_f.finite? && seconds.positive?

          outcome.change.result = Arguments.dump(value, "the result")
          outcome.change.keep_seconds = seconds
          outcome
        rescue InvalidJobError => error
          outcome.text = "its result is not kept: #{error.message}"
          outcome
        end

        # Anybody may have written the entry, so nothing but a class of jobs is ever called. Only the first job of a class is
        # matched with the regular expression: the matcher takes 8 KB of stack, which each job that waits would keep.
        def class_of(name)
          wrapper = Job.wrappers[name] and return wrapper
          klass = Object.const_get(name) if names.key?(name) || name.match?(CLASS_NAME)
          if klass.is_a?(Class) && klass <= Job
            names[name] = true
            return klass
          end

          raise UnknownClassError, "#{name} #{why_not(klass)}"
        rescue NameError => error
          raise if error.is_a?(NoMethodError) || !name.split("::").include?(error.name.to_s)

          raise UnknownClassError, "there is no class #{name}; has the program that defines it been required?"
        end

        def why_not(klass)
          return "is no name of a class" unless klass
          return Words::OF_ACTIVE_JOB if klass.respond_to?(:perform_later)

          return "does not include Ringspun::Jobs::Job" unless klass.is_a?(Module) && klass.ancestors.any? { |one| one.name == GEM_S }

          "includes #{GEM_S} of the gem sidekiq; in place of that let the Gemfile have ringspun-jobs with " \
            "require: \"ringspun/jobs/sidekiq\""
        end

        # The names of classes of jobs that were looked up.
        def names = @names ||= {}

        def snoozed(fetched, seconds)
          job = Wire.parse_to_change(fetched.entry)
          %w[enqueued_at at].each { |field| job.delete(field) }
          job["queue"] = Retrying.queue_of(job, fetched.queue)
          change = Storage::Failure.new(fetched.queue, fetched.token, job["jid"], :schedule, Wire.dump(job), seconds)
          Outcome.new(change, :snoozed, nil, "again in #{Words.duration(seconds)}")
        end

        # Libraries wrap the exception that interrupts them.
        def by_cancellation?(error)
          seen = []
          while error && !seen.include?(error)
            return true if error.is_a?(Cancelled)

            seen << error
            error = error.cause
          end
          false
        end

        # Tries again while the storage is away, for that is no failure of the job.
        def release(job)
          token = job["unique_token"]
          @backoff.persist(:unlock) { @storage.unlock(token, job["jid"]) } if token.is_a?(String)
        end
      end
      private_constant :Performer
    end
  end
end
