# frozen_string_literal: true

module Ringspun
  module Jobs
    # A job's class with options, or just the class's name if only other programs have it. {Job::ClassMethods#set} and {Jobs.set}
    # make them.
    class BoundJob
      # @return [Class, String]
      # @api private
      attr_reader :job_class

      # @return [Hash{Symbol => Object}] the options beside those of the class
      # @api private
      attr_reader :given

      # @param job_class [Class, String]
      # @param options (see Job::ClassMethods#set)
      # @raise [InvalidJobError]
      # @api private
      def initialize(job_class, **options)
        @job_class = job_class
        @given = Options.check(options, Options::ALL)
        if @given[:in] && @given[:at]
          raise InvalidJobError, "in: and at: both say when; give one of them"
        end

        @template = Template.new(job_class, { **class_options, **@given.except(:in, :at, :connection) })
      end

      # @param options (see Job::ClassMethods#set)
      # @return [BoundJob] with these options as well
      # @raise [InvalidJobError]
      # @since 0.1.0
      def set(**options)
        given = options.key?(:in) || options.key?(:at) ? @given.except(:in, :at) : @given
        BoundJob.new(@job_class, **given, **options)
      end

      # (see Job::ClassMethods#perform_async)
      def perform_async(*arguments) = Jobs.client.push(@template, arguments, @given[:at], delay, connection)

      # (see Job::ClassMethods#perform_in)
      def perform_in(seconds, *arguments) = set(in: seconds).perform_async(*arguments)

      # (see Job::ClassMethods#perform_at)
      def perform_at(time, *arguments) = set(at: time).perform_async(*arguments)

      # (see Job::ClassMethods#perform_bulk)
      def perform_bulk(all)
        unless all.is_a?(Enumerable) && !all.is_a?(Hash)
          raise InvalidJobError, "perform_bulk takes an Array of Arrays, got #{all.class}"
        end

        client = Jobs.client
        client.push_all(all, connection) { |arguments| push(client, arguments, connection) }
      end

      # For {Jobs.enqueue_all}.
      #
      # @return (see Client#made)
      # @api private
      def push(client, arguments, connection = nil)
        own = @given[:connection]
        if own && own != connection
          raise InvalidJobError, "jobs that are enqueued together have one connection: give it to enqueue_all"
        end
        return client.made(@template, arguments, @given[:at], delay) if arguments.is_a?(Array)

        raise InvalidJobError, "the arguments of a job must be an Array, got #{arguments.inspect[0, 100]}"
      end

      private

      def delay = Template.delay(@given[:in])

      def connection = @given[:connection]

      def class_options
        if @job_class.is_a?(String) && !@job_class.empty?
          return Options::DEFAULTS if Wire.utf8(@job_class)

          raise InvalidJobError, "#{@job_class.inspect} is no name of a class"
        end
        return @job_class.options if @job_class.is_a?(Class) && @job_class.respond_to?(:job_options)

        raise InvalidJobError, "#{@job_class} #{Words::OF_ACTIVE_JOB}" if @job_class.respond_to?(:perform_later)

        hint = "; give its name, a String, if only others can run it" if @job_class.is_a?(Module)
        raise InvalidJobError, "#{@job_class.inspect} does not include Ringspun::Jobs::Job#{hint}"
      end
    end
  end
end
