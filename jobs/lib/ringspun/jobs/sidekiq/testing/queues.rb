# frozen_string_literal: true

require "ringspun/jobs/testing"

module Ringspun
  module Jobs
    module Sidekiq
      # The jobs that are kept, twice: by their queues and by their classes. The Arrays live: they go with what is enqueued and
      # run, and what a test changes in one of them is changed there.
      module Queues
        @by_queue = Hash.new { |all, queue| all[queue] = [] }
        @by_class = Hash.new { |all, name| all[name] = [] }

        class << self
          # @param queue [String]
          # @return [Array<Hash{String => Object}>]
          # @since 0.1.0
          def [](queue) = jobs_by_queue[queue]

          # @return [Hash{String => Array<Hash>}]
          # @since 0.1.0
          def jobs_by_queue = @by_queue

          # @return [Hash{String => Array<Hash>}]
          # @since 0.1.0
          def jobs_by_class = @by_class

          alias jobs_by_worker jobs_by_class

          # Keeps a job.
          #
          # @param queue [String]
          # @param klass [String]
          # @param job [Hash{String => Object}]
          # @since 0.1.0
          def push(queue, klass, job)
            @by_queue[queue] << job
            @by_class[klass] << job
          end

          # Forgets a job.
          #
          # @param jid [String]
          # @param queue [String, Symbol]
          # @param klass [String]
          # @since 0.1.0
          def delete_for(jid, queue, klass)
            [@by_queue[queue.to_s], @by_class[klass]].each { |jobs| jobs.delete_if { |job| job["jid"] == jid } }
          end

          # Forgets the jobs of a queue and those of a class.
          #
          # @param queue [String, Symbol]
          # @param klass [String]
          # @since 0.1.0
          def clear_for(queue, klass) = [@by_queue[queue.to_s], @by_class[klass]].each(&:clear)

          # Forgets all, and begins with Arrays of its own.
          #
          # @since 0.1.0
          def clear_all = [@by_queue, @by_class].each(&:clear)
        end

        # What {Jobs::Testing} keeps, in these Arrays, in place of what it has itself.
        #
        # @api private
        class Kept
          def initialize
            @lock = Thread::Mutex.new
            @records = {}.compare_by_identity # job => what else is known of it
          end

          def records = @lock.synchronize { known(Queues.jobs_by_queue.each_value.flat_map(&:itself)) }

          def keep(record)
            add(record) unless record.lock && records.any? { |other| other.lock == record.lock }
          end

          def add(record)
            record = record.dup.tap { |copy| copy.job = record.to_h }
            @lock.synchronize do
              @records[record.job] = record
              Queues.push(record.job["queue"], record.job["class"], record.job)
            end
            record
          end

          # A job may be in one of the Arrays alone.
          def take(job_class, except)
            @lock.synchronize do
              jobs = job_class ? Queues.jobs_by_class[job_class.name] : Queues.jobs_by_queue.each_value.flat_map(&:itself)
              record = known(jobs).find { |each| except.none? { |other| other.equal?(each) } } or next
              Queues.delete_for(record.job["jid"], record.job["queue"], record.job["class"])
              @records.delete(record.job)
              record
            end
          end

          def forget(name) = @lock.synchronize { Queues.jobs_by_class[name].dup.each { |job| drop(job) } }

          def clear
            @lock.synchronize do
              Queues.clear_all
              @records.clear
            end
          end

          private

          def drop(job) = Queues.delete_for(job["jid"], job["queue"], job["class"])

          # Those that a test has put into an Array itself as well.
          def known(jobs)
            jobs.grep(Hash).map { |job| @records[job] ||= Jobs::Testing::Record.new(job, job["at"], nil, job["at"]) }
          end
        end
        private_constant :Kept

        Jobs::Testing.kept = Kept.new
      end
    end
  end
end
