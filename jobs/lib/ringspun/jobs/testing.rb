# frozen_string_literal: true

require "ringspun/jobs"
require_relative "testing/kept"

module Ringspun
  module Jobs
    # For a program's own tests: jobs are not stored, but kept here, or run at once. This file switches to {fake!} when it is
    # required.
    #
    #   require "ringspun/jobs/testing"
    #   Mail.perform_async("a@example.org")
    #   Mail.jobs.size # => 1
    #   Mail.drain     # runs it
    #
    # A mode is set for good, or for a block. A block's mode holds, until the block ends, for the strand or thread that has called
    # it, and for all strands, threads and runs that are started in it. Others have the mode that was set for good.
    #
    # Client middleware is called in each mode, server middleware where a job is run. A job that is run gets its arguments as they
    # come out of JSON.
    module Testing
      # A job that was enqueued. `at`, seconds since the epoch, or `delay`, seconds; `now` is when it was enqueued.
      Record = Struct.new(:job, :at, :delay, :now, :lock) do
        # @return [Float, nil] when it would be due, in seconds since the epoch
        # @since 0.1.0
        def due = at || (delay && (now + delay))

        # @return [Hash{String => Object}]
        # @since 0.1.0
        def to_h = due ? job.merge("at" => due) : job
      end

      # Keeps jobs.
      #
      # @api private
      class Fake
        def push(push, **)
          Testing.__send__(:keep, push) ? push.jid : nil
        end

        def push_all(pushes, **) = pushes.map { |each| push(each) }
      end

      # Runs jobs.
      #
      # @api private
      class Inline < Fake
        def push(push, **)
          record = Testing.__send__(:record_of, push)
          Testing.__send__(:run, record)
          push.jid
        end
      end

      # Makes the methods that enqueue use the mode's own client.
      #
      # @api private
      module Intercepting
        # @api private
        def client
          enqueuer = ENQUEUERS[Testing.mode]
          enqueuer ? new_client(enqueuer) : super
        end
      end

      # Methods that each class of jobs gets.
      module ClassMethods
        # @return [Array<Hash{String => Object}>] the jobs of this class that were enqueued, with "at" where they were to wait
        # @since 0.1.0
        def jobs = Testing.jobs.select { |job| job["class"] == name }

        # Runs the jobs of this class, and those that they enqueue. May switch strands.
        #
        # @return [Integer] how many
        # @raise [Exception] what one of them has raised
        # @since 0.1.0
        def drain = Testing.drain(self)

        # Where each job that is run here comes along.
        #
        # @api private
        def execute_job(job, arguments) = job.perform(*arguments)

        # Forgets the jobs of this class.
        #
        # @return [nil]
        # @since 0.1.0
        def clear = Testing.__send__(:forget, name)
      end

      ENQUEUERS = { fake: Fake.new, inline: Inline.new }.freeze
      private_constant :ENQUEUERS, :Fake, :Inline, :Intercepting

      @mode = :fake
      @kept = Kept.new

      # The mode of a block. Strands and threads that were started in the block have it as well, and may outlive the block.
      Block = Struct.new(:mode, :around, :over) do
        # @return [Block, nil] the innermost that has not ended
        def lasting = over ? around&.lasting : self
      end
      private_constant :Block

      class << self
        # Keeps jobs here. May switch strands, where the block does.
        #
        # @yield the block for which it holds; without one it holds for good
        # @return [Object] the block's value
        # @since 0.1.0
        def fake!(&) = switch(:fake, &)

        # Runs jobs at once, in the caller, which gets what they raise. Scheduled jobs do not wait. See {fake!}.
        #
        # @since 0.1.0
        def inline!(&) = switch(:inline, &)

        # Stores jobs, as without this file. See {fake!}.
        #
        # @since 0.1.0
        def real!(&) = switch(:real, &)

        # @return [Symbol] the caller's mode: :fake, :inline or :real
        # @since 0.1.0
        def mode = Fiber[:ringspun_jobs_testing]&.lasting&.mode || @mode

        # @return [Array<Hash{String => Object}>] all jobs that are kept, with "at" where they are to wait
        # @since 0.1.0
        def jobs = records.map(&:to_h)

        # Runs all jobs that are kept, and those that they enqueue, in order and without waiting for their time. One that
        # snoozes is kept, and not run again by this call; one that raises is forgotten.
        #
        # May switch strands.
        #
        # @param job_class [Class, nil] only those of this class
        # @return [Integer] how many
        # @raise [Exception] what one of them has raised
        # @since 0.1.0
        def drain(job_class = nil)
          snoozed = []
          count = 0
          while (record = take(job_class, snoozed))
            count += 1
            later = run(record)
            snoozed << later if later
          end
          count
        end

        # Forgets all jobs.
        #
        # @return [nil]
        # @since 0.1.0
        def clear_all
          @kept.clear
          nil
        end

        # @return [Array<Record>]
        # @api private
        def records = @kept.records

        # @return [Kept]
        # @api private
        attr_writer :kept

        private

        # Fibers and threads inherit the storage of the fiber that starts them:
        # https://docs.ruby-lang.org/en/master/Fiber.html#method-c-5B-5D
        def switch(mode)
          return @mode = mode unless block_given?

          block = Block.new(mode, Fiber[:ringspun_jobs_testing])
          begin
            Fiber[:ringspun_jobs_testing] = block
            yield
          ensure
            block.over = true
            Fiber[:ringspun_jobs_testing] = block.around
          end
        end

        def record_of(push)
          Record.new(Wire.parse(push.entry), push.at, push.delay, Process.clock_gettime(Process::CLOCK_REALTIME), push.lock)
        end

        # @return [Record, nil] nil when a job with the same lock is kept already
        def keep(push) = @kept.keep(record_of(push))

        def take(job_class, except) = @kept.take(job_class, except)

        def forget(name)
          @kept.forget(name)
          nil
        end

        # @return [Record, nil] that of a job that has snoozed and so is kept
        def run(record)
          job = record.job
          instance = instance_of(job)
          Jobs.config.server_middleware.invoke(instance, job, job["queue"]) { instance.class.execute_job(instance, job["args"]) }
          instance.followers&.each { |push| (ENQUEUERS[mode] || Jobs.enqueuer).push(push) }
          nil
        rescue Snooze => snooze
          @kept.add(Record.new(job, nil, snooze.seconds, Process.clock_gettime(Process::CLOCK_REALTIME), record.lock))
        end

        def instance_of(job)
          job_class = Job.wrappers[job["class"]] || Object.const_get(job["class"])
          raise NameError unless job_class.is_a?(Class) && job_class <= Job

          job_class.new.tap { |instance| instance.jid = job["jid"] }
        rescue NameError
          raise InvalidJobError, "#{job["class"]} is no class of jobs that could be run here; use fake!, and look at the jobs"
        end
      end

      Jobs.singleton_class.prepend(Intercepting)
      Job::ClassMethods.include(ClassMethods)
    end
  end
end
