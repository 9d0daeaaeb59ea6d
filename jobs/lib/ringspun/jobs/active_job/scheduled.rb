# frozen_string_literal: true

require_relative "wrapper"

module Ringspun
  module Jobs
    module ActiveJob
      # Makes the jobs of Active Job that come by a schedule. Their callbacks around enqueuing are called, as by `perform_later`.
      #
      # @api private
      module Scheduled
        module_function

        # @param job_class [Class, String]
        # @return [Boolean]
        def makes?(job_class) = job_class.is_a?(Class) && job_class <= ::ActiveJob::Base

        # @param job_class [Class] of Active Job
        # @param arguments [Array<Object>] as JSON has them; a Hash at the end is one of keywords
        # @param options [Hash{Symbol => Object}] queue and priority; there are no others
        # @return [Storage::Push, nil] nil: a callback or a middleware has stopped it
        # @raise [InvalidJobError]
        def push(job_class, arguments, options)
          other = options.keys - %i[queue priority]
          raise InvalidJobError, "#{job_class} is of Active Job, where #{other.first} says the class itself" if other.any?

          job = job_class.new(*with_keywords(arguments)).set(**options)
          made = nil
          job.run_callbacks(:enqueue) { made = push_of(job) }
          made
        end

        def push_of(job)
          data = JSON.parse(JSON.generate(job.serialize))
          made = Jobs.client.made(template(job), [data], nil, nil)
          made.is_a?(Client::Later) ? made.push : made
        end

        # As its adapter makes it, if that is one of ours.
        def template(job)
          adapter = job.class.queue_adapter
          return adapter.__send__(:template, job) if adapter.is_a?(Adapter)

          Wrapper.template(job.class, job.queue_name, job.priority)
        end

        def with_keywords(arguments)
          *first, last = arguments
          last.is_a?(Hash) ? [*first, Hash.ruby2_keywords_hash(last.transform_keys(&:to_sym))] : arguments
        end
        private_class_method :push_of, :template, :with_keywords

        Cron::Classes.makers << self
      end
      private_constant :Scheduled
    end
  end
end
