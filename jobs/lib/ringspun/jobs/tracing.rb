# frozen_string_literal: true

module Ringspun
  module Jobs
    # Spans of OpenTelemetry, where its SDK is loaded: a producer's around each call that enqueues, a consumer's around each run.
    # The context goes along in fields of the job, `traceparent` and what else the propagators write, as the instrumentation of
    # Sidekiq does it; so a run belongs to the trace of whoever has enqueued the job, each further run as well.
    #
    # Names and attributes: https://opentelemetry.io/docs/specs/semconv/messaging/messaging-spans/
    #
    # @api private
    module Tracing
      @on = false

      class << self
        # Looks for the gem, before the first job is enqueued or run: a look for each job would cost more than the job's own way.
        #
        # @return [Boolean] see {on?}
        def look
          return @on if @on || !defined?(::OpenTelemetry::SDK)

          require "ringspun/opentelemetry"
          @on = true
        end

        # @return [Boolean] whether the gem was there when {look} was last called
        def on? = @on

        # Calls the block in a producer's span.
        #
        # @param queue [String]
        # @param attributes [Hash{String => Object}]
        def enqueue(queue, attributes, &)
          all = common(queue, "enqueue", "send").merge(attributes.compact)
          tracer.in_span("enqueue #{queue}", attributes: all, kind: :producer, &)
        end

        # Writes the context into a job.
        #
        # @param job [Hash{String => Object}]
        def inject(job) = ::OpenTelemetry.propagation.inject(job)

        # Calls the block in a consumer's span. That a job asks to run later, or is cancelled, is no error.
        #
        # @param job [Hash{String => Object}]
        # @param queue [String]
        def perform(job, queue)
          context = ::OpenTelemetry.propagation.extract(job)
          span = tracer.start_span("perform #{queue}", with_parent: context, kind: :consumer, attributes: of_run(job, queue))
          ::OpenTelemetry::Context.with_current(::OpenTelemetry::Trace.context_with_span(span, parent_context: context)) { yield }
        rescue Snooze, Cancelled
          raise
        rescue Exception => error
          failed(span, error)
          raise
        ensure
          span&.finish
        end

        private

        def tracer = ::OpenTelemetry.tracer_provider.tracer("ringspun-jobs", VERSION)

        def common(queue, name, type)
          { "messaging.system" => "ringspun_jobs", "messaging.destination.name" => queue, "messaging.operation.name" => name,
            "messaging.operation.type" => type }
        end

        def of_run(job, queue)
          all = common(queue, "perform", "process").merge("messaging.message.id" => job["jid"])
          all["messaging.ringspun_jobs.job_class"] = job["wrapped"].is_a?(String) ? job["wrapped"] : job["class"]
          all["messaging.ringspun_jobs.retry_count"] = job["retry_count"] if job["retry_count"].is_a?(Integer)
          all
        end

        def failed(span, error)
          return unless span

          span.record_exception(error)
          span.status = ::OpenTelemetry::Trace::Status.error("#{error.class}: #{error.message}")
        rescue StandardError # the error's methods may be the job's own code
          nil
        end
      end
    end
    private_constant :Tracing
  end
end
