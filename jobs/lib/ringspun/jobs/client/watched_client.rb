# frozen_string_literal: true

module Ringspun
  module Jobs
    # A client where ActiveSupport::Notifications or OpenTelemetry is loaded: it tells of each call who listens, and writes the
    # context of its span into the jobs.
    #
    # @api private
    class WatchedClient < Client
      # (see Client#push)
      def push(template, arguments, at = nil, delay = nil, connection = nil, checked: false)
        return traced(template) { super } unless Notices.wanted?("enqueue")

        payload = { class: template.shown_name, queue: template.queue, arguments: arguments }
        Notices.around("enqueue", payload) { |told| told[:jid] = traced(template) { super } }
      end

      # (see Client#push_all)
      def push_all(jobs, connection = nil, &)
        return traced_together { super } unless Notices.wanted?("enqueue_all")

        Notices.around("enqueue_all", {}) do |told|
          jids = traced_together { super }
          told.update(jids: jids.compact, count: jids.size)
          jids
        end
      end

      private

      def traced(template)
        return yield unless Tracing.on?

        Tracing.enqueue(template.queue, { "messaging.ringspun_jobs.job_class" => template.shown_name }) do |span|
          jid = yield
          span.set_attribute("messaging.message.id", jid) if jid
          jid
        end
      end

      def traced_together
        return yield unless Tracing.on?

        Tracing.enqueue("many", {}) do |span|
          jids = yield
          span.set_attribute("messaging.batch.message_count", jids.size)
          jids
        end
      end

      def new_push(template, arguments, at, delay, checked)
        return super unless Tracing.on?

        Arguments.check(arguments) unless checked
        through_middleware(template, arguments, at, delay)
      end

      def check(job)
        Tracing.inject(job) if Tracing.on?
        super
      end
    end
    private_constant :WatchedClient
  end
end
