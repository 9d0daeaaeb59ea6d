# frozen_string_literal: true

require "ringspun/opentelemetry"
require "ringspun/postgres"
require "ringspun/version"

module Ringspun
  module Postgres
    # Spans of OpenTelemetry, for pools that are made after `require "ringspun/postgres/tracing"`: a client's for each statement,
    # below the span that is current where it is asked. Passwords in the text are left out; parameters, and the messages of
    # errors, which may have some, are not in it.
    #
    # Names and attributes: https://opentelemetry.io/docs/specs/semconv/database/postgresql/
    #
    # @api private
    module Tracing
      class << self
        # @param execution [Execution]
        def call(execution)
          ended = Time.now
          operation = execution.kind == :script ? "SCRIPT" : execution.sql[/[[:alpha:]]+/].to_s.upcase
          name = [operation, execution.database].reject(&:empty?).join(" ")
          span = tracer.start_span(name, kind: :client, start_timestamp: ended - execution.duration,
                                         attributes: attributes(execution, operation))
          span.status = ::OpenTelemetry::Trace::Status.error(execution.error.class.name) if execution.error
          span.finish(end_timestamp: ended)
        end

        private

        def tracer = ::OpenTelemetry.tracer_provider.tracer("ringspun-postgres", VERSION)

        def attributes(execution, operation)
          all = { "db.system.name" => "postgresql", "db.namespace" => execution.database, "db.operation.name" => operation,
                  "db.query.text" => Shown.sql(execution.sql), "db.response.returned_rows" => execution.rows,
                  "ringspun.postgres.connection" => execution.connection, "ringspun.postgres.queue" => execution.queue,
                  **place(execution.host), **failure(execution.error) }
          all.compact.reject { |_, value| value == "" }
        end

        # Of a Unix socket the folder is the address.
        def place(host)
          return {} unless host

          address, port = host.match(/\A(.*):(\d+)\z/m)&.captures
          { "server.address" => address || host, "server.port" => port&.to_i }
        end

        def failure(error)
          return {} unless error

          state = error.sqlstate if error.is_a?(ServerError)
          { "error.type" => state || error.class.name, "db.response.status_code" => state }
        end
      end

      Observers.add(self)
    end
    private_constant :Tracing
  end
end
