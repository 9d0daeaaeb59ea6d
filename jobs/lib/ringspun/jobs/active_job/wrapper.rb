# frozen_string_literal: true

module Ringspun
  module Jobs
    # What lets Active Job enqueue by us, and workers of ours run its jobs.
    module ActiveJob
      # The job that runs one of Active Job, whose data are its only argument. On the wire it has the names of Sidekiq's wrapper,
      # see https://github.com/sidekiq/sidekiq/blob/main/lib/active_job/queue_adapters/sidekiq_adapter.rb
      #
      # @api private
      class Wrapper
        include Job

        NAME = "Sidekiq::ActiveJob::Wrapper"
        # Until version 7 of Sidekiq.
        OLD_NAME = "ActiveJob::QueueAdapters::SidekiqAdapter::JobWrapper"
        # Among the data of a job that is run, and never on the wire.
        OF_WORKER = "ringspun_wrapper"

        # Templates that are kept, one for each class, queue and priority or options. There are few, unless queues are named after
        # something.
        TEMPLATES_MAX = 1000

        @templates = {}
        [NAME, OLD_NAME].each { |name| Job.wrappers[name] = self }

        # @param job_class [Class] of Active Job
        # @param queue [String, Symbol]
        # @param priority [Integer, nil]
        # @return [Template]
        # @raise [InvalidJobError]
        def self.template(job_class, queue, priority)
          kept(job_class, queue, priority) do |name|
            # Active Job has an option of its own, which has waited already.
            given = { after_commit: false, queue: Options.queue(:queue, queue), wrapped: name }
            given[:priority] = Options.priority(:priority, level_of(priority)) if priority
            Template.new(NAME, { **options, **given })
          end
        end

        # @param job_class [Class] of Active Job
        # @param key [Array<Object>] what else the template depends on
        # @yieldparam name [String] of the class
        # @yieldreturn [Template] made when there is none yet
        # @return [Template]
        # @raise [InvalidJobError]
        def self.kept(job_class, *key)
          name = job_class.name or raise InvalidJobError, "a job of a class without a name cannot be found by a worker"
          key.unshift(name)
          @templates[key] || begin
            @templates.clear if @templates.size >= TEMPLATES_MAX
            @templates[key] = yield(name)
          end
        end

        # Active Job knows no limits, and other adapters have wider ones.
        def self.level_of(priority)
          priority.is_a?(Integer) ? priority.clamp(-Options::PRIORITY_MAX, Options::PRIORITY_MAX) : priority
        end
        private_class_method :level_of

        # May switch strands.
        #
        # @param data [Hash{String => Object}] of ActiveJob::Core#serialize
        # @raise [UnknownClassError] they name no class of Active Job: anybody may have written any constant there
        def perform(data)
          name = data["job_class"]
          klass = name.safe_constantize if name.is_a?(String)
          unless klass.is_a?(Class) && klass <= ::ActiveJob::Base
            raise UnknownClassError, "#{name.inspect[0, 100]} is no class of Active Job in this program"
          end

          ::ActiveJob::Base.execute(data.merge("provider_job_id" => jid, OF_WORKER => self))
        end
      end
      private_constant :Wrapper
    end
  end
end
