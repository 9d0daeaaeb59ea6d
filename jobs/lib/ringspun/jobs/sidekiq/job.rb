# frozen_string_literal: true

module Ringspun
  module Jobs
    module Sidekiq
      # What makes a class a job: a {Jobs::Job} by Sidekiq's names.
      #
      #   class Mail
      #     include Sidekiq::Job
      #     sidekiq_options queue: "mail", retry: 5
      #
      #     def perform(address) = deliver(address)
      #   end
      #   Mail.perform_async("a@example.org")
      module Job
        # @api private
        def self.included(job_class)
          super
          if job_class.ancestors.any? { |each| each.name == "ActiveJob::Base" }
            raise ArgumentError, "#{job_class} is a job of ActiveJob, and so cannot include Sidekiq::Job as well"
          end

          job_class.include(Jobs::Job)
          job_class.extend(Options)
          job_class.extend(ClassMethods)
        end

        # @return [Logger] the worker's
        # @since 0.1.0
        def logger = Sidekiq.logger

        # @return [Boolean] whether the worker is quiet or ends, so that a long job may end early
        # @since 0.1.0
        def interrupted? = Jobs::Worker.stopping?

        # The options of a class, which subclasses inherit.
        module Options
          # Adds to the options. Any is allowed, and becomes a field of the entry.
          #
          # @return [Hash{String => Object}]
          # @since 0.1.0
          def sidekiq_options(options = {})
            options = options.to_h { |name, value| [name.to_s, value.is_a?(Hash) ? value.transform_keys(&:to_s) : value] }
            @sidekiq_options = get_sidekiq_options.merge(options)
          end

          # @return [Hash{String => Object}]
          # @since 0.1.0
          def get_sidekiq_options
            return @sidekiq_options if @sidekiq_options

            superclass.respond_to?(:get_sidekiq_options) ? superclass.get_sidekiq_options : Sidekiq.default_job_options
          end

          alias sidekiq_options_hash get_sidekiq_options

          # @since 0.1.0
          def sidekiq_options_hash=(options)
            @sidekiq_options = options
          end

          # (see Jobs::Job::ClassMethods#retry_in)
          def sidekiq_retry_in(&) = retry_in(&)

          # @return [Proc, nil]
          # @since 0.1.0
          def sidekiq_retry_in_block = retry_in

          # (see Jobs::Job::ClassMethods#retries_exhausted)
          def sidekiq_retries_exhausted(&) = retries_exhausted(&)

          # @return [Proc, nil]
          # @since 0.1.0
          def sidekiq_retries_exhausted_block = retries_exhausted

          # Attributes of the class, which subclasses inherit and instances read.
          #
          # @param names [Array<Symbol>]
          # @since 0.1.0
          def sidekiq_class_attribute(*names)
            names.each do |name|
              variable = :"@#{name}"
              define_singleton_method(name) do
                next instance_variable_get(variable) if instance_variable_defined?(variable)

                superclass.respond_to?(name) ? superclass.public_send(name) : nil
              end
              define_singleton_method(:"#{name}=") { |value| instance_variable_set(variable, value) }
              define_method(name) do
                instance_variable_defined?(variable) ? instance_variable_get(variable) : self.class.public_send(name)
              end
              attr_writer name
            end
          end
        end

        # Enqueues jobs of the class.
        module ClassMethods
          # @param queue [String, Symbol]
          # @since 0.1.0
          def queue_as(queue) = sidekiq_options("queue" => queue.to_s)

          # @return [Hash{Symbol => Object}] those of {Options#sidekiq_options} that Ringspun knows, for what it enqueues itself;
          #   a `priority` is a field of the program's
          # @since 0.1.0
          def options
            known = Jobs.const_get(:Options)::CLASS.keys - [:priority]
            known = get_sidekiq_options.transform_keys(&:to_sym).slice(*known).compact
            Jobs.const_get(:Options).check({ queue: "default", retry: true, **known })
          end

          # @return [Setter]
          # @since 0.1.0
          def set(options) = Setter.new(self, options)

          # Enqueues a job. May switch strands.
          #
          # @return [String, nil] its jid; nil when a middleware has stopped it
          # @raise (see Client#push)
          # @since 0.1.0
          def perform_async(*arguments) = client_push("class" => self, "args" => arguments)

          # Enqueues a job for later. May switch strands.
          #
          # @param interval [Numeric, Time, Date] seconds from now, or a time; one that is past: at once
          # @return (see #perform_async)
          # @raise (see #perform_async)
          # @since 0.1.0
          def perform_in(interval, *arguments)
            at = Client.due(interval)
            client_push({ "class" => self, "args" => arguments, **(at ? { "at" => at } : {}) })
          end

          alias perform_at perform_in

          # (see Setter#perform_inline)
          def perform_inline(*arguments) = Setter.new(self, {}).perform_inline(*arguments)

          alias perform_sync perform_inline

          # (see Setter#perform_bulk)
          def perform_bulk(all, **options) = Setter.new(self, {}).perform_bulk(all, **options)

          # Every job of the class comes here, and what overrides it sees it.
          #
          # @param item [Hash{String => Object}]
          # @return (see #perform_async)
          # @raise (see #perform_async)
          # @since 0.1.0
          def client_push(item)
            raise ArgumentError, "a job's fields must be Strings, got #{item.keys.inspect}" if item.keys.any?(Symbol)

            build_client(item["pool"]).push(item)
          end

          # @return [Client]
          # @since 0.1.0
          def build_client(pool = nil)
            options = get_sidekiq_options
            (options["client_class"] || Client).new(pool: pool || Client.pool || options["pool"])
          end

          %i[delay delay_for delay_until].each do |name|
            define_method(name) do |*|
              raise ArgumentError, "#{name} is not for a class of jobs; call perform_async, perform_in or perform_at"
            end
          end
        end

        # A class with options for single jobs.
        class Setter
          # @param job_class [Class]
          # @param options [Hash]
          # @api private
          def initialize(job_class, options)
            @job_class = job_class
            @options = {}
            set(options)
          end

          # @param options [Hash] as `sidekiq_options` takes; wait: and wait_until:, as {ClassMethods#perform_in}; sync: true, and
          #   `perform_async` runs the job at once
          # @return [Setter] self
          # @since 0.1.0
          def set(options)
            options = options.transform_keys(&:to_s)
            interval = options.delete("wait_until") || options.delete("wait")
            @options.merge!(options)
            at(interval) if interval
            self
          end

          # (see ClassMethods#perform_async)
          def perform_async(*arguments)
            return perform_inline(*arguments) if @options["sync"] == true

            @job_class.client_push(@options.merge("args" => arguments, "class" => @job_class))
          end

          # (see ClassMethods#perform_in)
          def perform_in(interval, *arguments)
            at(interval)
            perform_async(*arguments)
          end

          alias perform_at perform_in

          # Runs a job at once, with the middleware of clients and of workers around it. May switch strands.
          #
          # @return [true, nil] nil: a middleware has stopped it
          # @raise [ArgumentError] which says what is wrong
          # @raise [Exception] what the job raises
          # @since 0.1.0
          def perform_inline(*arguments)
            client = @job_class.build_client
            fields = client.normalized(@options.except("at").merge("args" => arguments, "class" => @job_class))
            job = Client.translating { client.job(@job_class, fields, arguments) } or return
            instance = @job_class.new
            instance.jid = job["jid"]
            chain = Sidekiq.default_configuration.server_middleware
            chain.invoke(instance, job, job["queue"]) { instance.perform(*job["args"]) || true } ? true : nil
          end

          alias perform_sync perform_inline

          # Enqueues many jobs. May switch strands.
          #
          # @param all [Enumerable<Array>] the arguments of each
          # @param options [Hash] at:, batch_size: and spread_interval:, see {Client#push_bulk}
          # @return (see Client#push_bulk)
          # @raise (see Client#push_bulk)
          # @since 0.1.0
          def perform_bulk(all, **options)
            items = @options.merge("class" => @job_class, "args" => all).merge(options.transform_keys(&:to_s))
            @job_class.build_client.push_bulk(items)
          end

          private

          def at(interval)
            time = Client.due(interval)
            @options["at"] = time if time
          end
        end
      end

      # Its older name.
      Worker = Job
    end
  end
end
