# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      # How a run has ended.
      #
      # - `change`: what the storage is to do, a {Storage::Ack} or {Storage::Failure}
      # - `kind`: :done, :retry, :dead, :dropped (failed, and not kept), :malformed, :snoozed, :cancelled, :returned
      #   (to its queue, for the worker ends) or :died (with the process in which it ran isolated; it runs again)
      # - `error`: the Exception, if it has failed
      # - `text`: what becomes of the job, for the log
      # - `seconds`: how long the run has taken
      # - `acknowledged`: whether the job has acknowledged itself, in a transaction that may be rolled back yet
      #
      # @api private
      Outcome = Struct.new(:change, :kind, :error, :text, :seconds, :acknowledged) do
        # @return [Storage::Ack, Storage::Failure] the change, which says what the job's history is to say
        def noted
          change.event ||= Storage::Event.new(nil, kind, nil, *ErrorText.short(error)) unless kind == :done
          change
        end

        # The job has acknowledged itself, and that is committed. What has happened afterwards changes nothing.
        #
        # @return [Outcome]
        def after_own_ack
          return self if kind == :done

          what = error ? "has raised #{ErrorText.short(error).join(": ")}" : "was to be #{kind}"
          Outcome.new(change, :done, nil, "the job #{what} after done!, and is done all the same", seconds)
        end

        # The lock to release when the job has ended, well or not. A lock until :start is released before, one until :expiry
        # stays.
        #
        # @return [String, nil]
        def self.lock_of(job)
          token = job["unique_token"]
          token if token.is_a?(String) && [nil, "success"].include?(job["unique_until"])
        end

        # @param job [Hash]
        # @param kind [Symbol]
        # @param followers [Array<Storage::Push>, nil]
        def self.done(fetched, job, kind = :done, followers: nil)
          lock = lock_of(job) if job["unique_token"]
          new(Storage::Ack.new(fetched.queue, fetched.token, job["jid"], lock, followers), kind)
        end

        # @param why [Symbol] :cancel, or :return
        def self.ended_early(fetched, job, why)
          why == :cancel ? done(fetched, job, :cancelled) : returned(fetched, job["jid"])
        end

        # @param jid [String, nil]
        def self.returned(fetched, jid)
          new(Storage::Failure.new(fetched.queue, fetched.token, jid, :queue), :returned)
        end
      end
      private_constant :Outcome
    end
  end
end
