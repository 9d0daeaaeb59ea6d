# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Memory < Storage
        # The jobs that are done.
        #
        # @api private
        module DoneJobs
          # (see Storage#done)
          def done(from, count, job_class: nil, queue: nil, from_end: false, connection: nil)
            name = job_class.is_a?(Module) ? job_class.name : job_class
            synchronize do
              all = @done.values
              all.select! { |job| job.class_name == name } if name
              all.select! { |job| job.queue == queue } if queue
              copies((from_end ? all : all.reverse)[from, count])
            end
          end

          # (see Storage#find_done)
          def find_done(token, connection: nil) = synchronize { @done[token]&.dup }

          # (see Storage#trim_done)
          def trim_done(seconds, connection: nil)
            synchronize do
              before = @done.size
              @done.delete_if { |_, job| job.at <= now - seconds }
              before - @done.size
            end
          end

          private

          def keep_done(node, ack, job)
            ran = ack.ran
            @done[job.token] = Done.new(job.token, job.entry, now, ack.queue, node, ran.seconds, ran.class_name.to_s)
          end
        end
        private_constant :DoneJobs
      end
    end
  end
end
