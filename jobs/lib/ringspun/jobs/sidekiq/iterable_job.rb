# frozen_string_literal: true

module Ringspun
  module Jobs
    module Sidekiq
      module Job
        # A job that goes through a sequence step by step, can be interrupted between two steps, and then goes on where it was.
        # The place is kept on the same Redis in the form of Sidekiq, so that either may go on with what the other has begun:
        # https://github.com/sidekiq/sidekiq/wiki/Iteration
        module Iterable
          # Seconds between two writes of the place.
          KEEP_EVERY_SECONDS = 5
          # Seconds that a cancelled job has to write it.
          LAST_WRITE_SECONDS = 2
          private_constant :KEEP_EVERY_SECONDS, :LAST_WRITE_SECONDS

          # @api private
          def self.included(job_class)
            super
            job_class.extend(ClassMethods)
          end

          # @api private
          module ClassMethods
            def method_added(name)
              raise "#{self} iterates, and so has each_iteration in place of perform" if name == :perform

              super
            end
          end

          # @return [Array<Object>]
          # @since 0.1.0
          attr_reader :arguments

          # @return [Object] what the step is about
          # @since 0.1.0
          attr_reader :current_object

          # @return [Object, nil] the place
          # @since 0.1.0
          def cursor = @ringspun_cursor

          # @return [Integer, nil] when it was cancelled, in seconds since the epoch
          # @since 0.1.0
          def cancelled? = @ringspun_iteration_cancelled || (super || nil)

          # Has the job end before one of its next steps. May switch strands.
          #
          # @return [Integer] when it was first cancelled, in seconds since the epoch
          # @since 0.1.0
          def cancel! = @ringspun_iteration_cancelled ||= Iterations.cancel(jid)

          # @!group What a class may have

          # @since 0.1.0
          def on_start = nil
          # @since 0.1.0
          def on_resume = nil
          # @since 0.1.0
          def on_stop = nil
          # @since 0.1.0
          def on_cancel = nil
          # @since 0.1.0
          def on_complete = nil
          # @since 0.1.0
          def around_iteration = yield

          # The sequence.
          #
          # @param cursor [Object, nil] the place to go on from
          # @return [Enumerator, nil] of things and their places; nil: there is nothing to do
          # @since 0.1.0
          def build_enumerator(*, cursor:) = raise(NotImplementedError, "#{self.class} has no method build_enumerator")

          # One step.
          #
          # @since 0.1.0
          def each_iteration(*) = raise(NotImplementedError, "#{self.class} has no method each_iteration")

          # @!group Sequences

          # @since 0.1.0
          def array_enumerator(array, cursor:)
            raise ArgumentError, "array_enumerator takes an Array, got #{array.class}" unless array.is_a?(Array)

            left = array.each_with_index.drop(cursor || 0)
            left.to_enum { left.size }
          end

          # @since 0.1.0
          def active_record_records_enumerator(relation, cursor:, **options)
            Enumerator.new(-> { relation.count }) do |steps|
              relation.find_each(**options, start: cursor) { |record| steps.yield(record, record.id) }
            end
          end

          # @since 0.1.0
          def active_record_batches_enumerator(relation, cursor:, **options)
            Enumerator.new(-> { relation.count }) do |steps|
              relation.find_in_batches(**options, start: cursor) { |batch| steps.yield(batch, batch.first.id) }
            end
          end

          # @since 0.1.0
          def active_record_relations_enumerator(relation, cursor:, **options)
            size = options.delete(:batch_size)
            options[:of] ||= size if size
            Enumerator.new(-> { relation.count.ceildiv(options.fetch(:of, 1000)) }) do |steps|
              relation.in_batches(**options, start: cursor) { |some| steps.yield(some, some.first.id) }
            end
          end

          # @param csv [CSV]
          # @since 0.1.0
          def csv_enumerator(csv, cursor:) = csv.each.with_index.lazy.drop(cursor || 0).to_enum

          # @param csv [CSV]
          # @since 0.1.0
          def csv_batches_enumerator(csv, cursor:, batch_size: 100)
            csv.each.each_slice(batch_size).with_index.lazy.drop(cursor || 0).to_enum
          end

          # @!endgroup

          # @api private
          def perform(*arguments)
            @arguments = arguments.dup.freeze
            resume
            steps = build_enumerator(*arguments, cursor: @ringspun_cursor) or return
            unless steps.is_a?(Enumerator)
              raise ArgumentError, "build_enumerator must return an Enumerator, got #{steps.class}"
            end

            (@ringspun_times += 1) == 1 ? on_start : on_resume
            ended = catch(:abort) { iterate(steps) }
            on_stop
            ended == false ? go_on_later : complete
          end

          private

          def resume
            kept = Sidekiq.redis { |redis| redis.call("HGETALL", Iterations.key_of(jid)) }
            @ringspun_times = kept["ex"].to_i
            @ringspun_cursor = kept["c"] && JSON.parse(kept["c"])
            @ringspun_seconds = kept["rt"].to_f
            @ringspun_iteration_cancelled = kept["cancelled"]&.to_i
            @ringspun_began = @ringspun_kept_at = now
          end

          # @return [Boolean] false: it was interrupted
          def iterate(steps)
            return cancelled_before? if @ringspun_iteration_cancelled

            steps.each do |object, place|
              @current_object = object
              @ringspun_cursor = place
              stop = interrupted? || too_long?
              keep if stop || now - @ringspun_kept_at >= KEEP_EVERY_SECONDS
              return cancelled_before? if @ringspun_iteration_cancelled
              return false if stop

              step(object)
            end
            true
          end

          def cancelled_before?
            on_cancel
            true
          end

          def step(object)
            around_iteration { each_iteration(object, *@arguments) }
          rescue Exception # it goes on from here, also when the worker has cancelled it, after which nothing may wait
            Ringspun.shield(deadline: LAST_WRITE_SECONDS) { keep }
            raise
          end

          def too_long?
            most = Sidekiq.default_configuration[:max_iteration_runtime]
            most && now - @ringspun_began > most
          end

          def keep
            @ringspun_kept_at = now
            state = { "ex" => @ringspun_times, "c" => JSON.generate(@ringspun_cursor),
                      "rt" => @ringspun_seconds + now - @ringspun_began }
            key = Iterations.key_of(jid)
            replies = Sidekiq.redis do |redis|
              redis.multi do |all|
                all.call("HSET", key, state)
                all.call("EXPIRE", key, Iterations::KEPT_SECONDS, "NX")
                all.call("HGET", key, "cancelled")
              end
            end
            @ringspun_iteration_cancelled ||= replies.last&.to_i
          end

          # No failure: it waits in the queue again, with its place.
          def go_on_later
            keep
            snooze(0)
          end

          def complete
            on_complete
            Sidekiq.redis { |redis| redis.call("UNLINK", Iterations.key_of(jid)) }
          end

          def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        end
      end

      # What makes a class an iterable job.
      module IterableJob
        # @api private
        def self.included(job_class)
          super
          job_class.include(Job)
          job_class.include(Job::Iterable)
        end
      end
    end
  end
end
