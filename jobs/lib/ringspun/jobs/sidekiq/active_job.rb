# frozen_string_literal: true

require_relative "../active_job"

module Ringspun
  module Jobs
    module Sidekiq
      # Jobs of Active Job whose adapter is `:sidekiq`.
      module ActiveJob
        # Lets a job of Active Job say `sidekiq_options`, for what it enqueues by this adapter.
        #
        # @api private
        module Options
          include Job::Options

          %i[sidekiq_retry_in sidekiq_retries_exhausted].each do |name|
            define_method(name) do |&|
              raise ConfigError, "#{self} is a job of Active Job, and cannot have a #{name}; it has retry_on, and its block"
            end
          end
        end

        # @api private
        module Adapter
          private

          # None has a priority, which Sidekiq's adapter ignores as well: its workers would not see the job.
          def template(job)
            wrapper = Jobs::ActiveJob.const_get(:Wrapper)
            options = job.class.get_sidekiq_options
            wrapper.kept(job.class, job.queue_name, options.dup) do |name| # a class may change its options in place
              item = { **options, "class" => wrapper::NAME, "wrapped" => name, "queue" => job.queue_name, "args" => [] }
              Fields.new(wrapper::NAME, Client.new.normalized(item))
            end
          end
        end
      end
    end
  end
end

module ActiveJob
  module QueueAdapters
    # Active Job has one of its own, or knows a file for it, and that needs the gem.
    remove_const(:SidekiqAdapter) if constants(false).include?(:SidekiqAdapter)

    # What `config.active_job.queue_adapter = :sidekiq` finds.
    #
    # @since 0.1.0
    class SidekiqAdapter < RingspunAdapter
      include Ringspun::Jobs::Sidekiq::ActiveJob::Adapter
    end
  end
end

# Its base class may be what is being loaded.
ActiveSupport.on_load(:active_job) { extend Ringspun::Jobs::Sidekiq::ActiveJob::Options }
