# frozen_string_literal: true

require_relative "../sidekiq"

module Ringspun
  module Jobs
    module Sidekiq
      module Middleware
        # Has a job run in the locale of whoever has enqueued it.
        module I18n
          # When it is enqueued.
          class Client
            # @api private
            def call(_job_class, job, *)
              job["locale"] ||= ::I18n.locale.to_s
              yield
            end
          end

          # When it runs.
          class Server
            # @api private
            def call(_instance, job, *, &) = ::I18n.with_locale(job.fetch("locale", ::I18n.default_locale), &)
          end
        end
      end

      default_configuration.client_middleware.add(Middleware::I18n::Client)
      default_configuration.server_middleware.add(Middleware::I18n::Server)
    end
  end
end
