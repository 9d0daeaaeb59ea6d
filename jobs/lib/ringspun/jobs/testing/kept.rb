# frozen_string_literal: true

module Ringspun
  module Jobs
    module Testing
      # The jobs that the mode {Testing.fake!} keeps, in the order in which they were enqueued. Any thread may call it.
      #
      # @api private
      class Kept
        def initialize
          @lock = Thread::Mutex.new
          @records = []
        end

        # @return [Array<Record>]
        def records = @lock.synchronize { @records.dup }

        # @param record [Record]
        # @return [Record, nil] nil: a job with the same lock is kept already
        def keep(record)
          @lock.synchronize do
            next if record.lock && @records.any? { |other| other.lock == record.lock }

            @records << record
            record
          end
        end

        # @param record [Record] one that is kept whatever its lock is
        # @return [Record]
        def add(record)
          @lock.synchronize { @records << record }
          record
        end

        # Removes the first job.
        #
        # @param job_class [Class, nil] of the jobs that count; nil: all do
        # @param except [Array<Record>]
        # @return [Record, nil]
        def take(job_class, except)
          @lock.synchronize do
            index = @records.index do |record|
              (job_class.nil? || record.job["class"] == job_class.name) && except.none? { |other| other.equal?(record) }
            end
            @records.delete_at(index) if index
          end
        end

        # @param name [String] of a class
        def forget(name) = @lock.synchronize { @records.reject! { |record| record.job["class"] == name } }

        def clear = @lock.synchronize { @records.clear }
      end
      private_constant :Kept
    end
  end
end
