# frozen_string_literal: true

# The methods that enqueue jobs of any class.

module Ringspun
  module Jobs
    class << self
      # Enqueues a job. May switch strands.
      #
      # @param job_class [Class, String] the name is enough if only other programs have the class
      # @param arguments [Array<Object>]
      # @return (see Job::ClassMethods#perform_async)
      # @raise (see Job::ClassMethods#perform_async)
      # @since 0.1.0
      def enqueue(job_class, *arguments)
        job = job_class.is_a?(Class) && job_class <= Job ? job_class : set(job_class)
        job.perform_async(*arguments)
      end

      # Enqueues a job that is to run after some seconds. May switch strands.
      #
      # @param seconds [Numeric]
      # @param job_class (see .enqueue)
      # @param arguments (see .enqueue)
      # @return (see Job::ClassMethods#perform_async)
      # @raise (see Job::ClassMethods#perform_async)
      # @since 0.1.0
      def enqueue_in(seconds, job_class, *arguments) = set(job_class, in: seconds).perform_async(*arguments)

      # Enqueues a job that is to run at a time. May switch strands.
      #
      # @param time [Time, Numeric] or seconds since the epoch
      # @param job_class (see .enqueue)
      # @param arguments (see .enqueue)
      # @return (see Job::ClassMethods#perform_async)
      # @raise (see Job::ClassMethods#perform_async)
      # @since 0.1.0
      def enqueue_at(time, job_class, *arguments) = set(job_class, at: time).perform_async(*arguments)

      # Enqueues many jobs, a thousand in one call of the storage. May switch strands.
      #
      #   Ringspun::Jobs.enqueue_all([[Mail, "a@example.org"], [Mail.set(in: 60), "b@example.org"], ["Other", 1]])
      #
      # @param jobs [Enumerable<Array>] of each the class, its name or a {BoundJob}, and the arguments
      # @param connection [Object, nil] as the option of {Job::ClassMethods#set}
      # @return (see Job::ClassMethods#perform_bulk)
      # @raise (see Job::ClassMethods#perform_bulk)
      # @since 0.1.0
      def enqueue_all(jobs, connection: nil)
        unless jobs.is_a?(Enumerable) && !jobs.is_a?(Hash)
          raise InvalidJobError, "enqueue_all takes an Array of Arrays, each a class and its arguments, got #{jobs.class}"
        end

        bound = Hash.new { |all, job_class| all[job_class] = set(job_class) }.compare_by_identity
        client = self.client
        client.push_all(jobs, connection) do |job|
          unless job.is_a?(Array)
            raise InvalidJobError, "a job must be an Array of its class and arguments, got #{job.inspect[0, 100]}"
          end

          job_class, *arguments = job
          (job_class.is_a?(BoundJob) ? job_class : bound[job_class]).push(client, arguments, connection)
        end
      end

      # What a job with the option `keep_result:` has returned. May switch strands.
      #
      # @param jid [String]
      # @return [Object, nil] as it comes out of JSON; nil as well when it has not ended well yet, or did so too long ago:
      #   {Storage#results} tells these apart
      # @raise [UnavailableError]
      # @since 0.1.0
      def result(jid)
        text = storage.results([jid]).first
        text && JSON.parse(text)
      end

      # Options for jobs of a class that only other programs have. See {Job::ClassMethods#set}.
      #
      # @param job_class [String, Class]
      # @param options (see Job::ClassMethods#set)
      # @return [BoundJob]
      # @raise [InvalidJobError]
      # @since 0.1.0
      def set(job_class, **options) = BoundJob.new(job_class, **options)
    end
  end
end
