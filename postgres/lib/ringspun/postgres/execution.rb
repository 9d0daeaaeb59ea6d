# frozen_string_literal: true

require_relative "shown"

module Ringspun
  module Postgres
    # What has become of a statement, for `on_statement:`. Times are in seconds; one is nil where it is not known, as of a
    # statement whose caller has left before the answer. Parameters are not in it.
    #
    # @!attribute [r] sql
    #   @return [String] the statement, whole
    # @!attribute [r] kind
    #   @return [Symbol] :query, :batch for each of a batch, :stream, :script or :copy
    # @!attribute [r] duration
    #   @return [Float] from the call until its value was there
    # @!attribute [r] queue
    #   @return [Float, nil] of it until the statement was sent, as for a connection
    # @!attribute [r] wire
    #   @return [Float, nil] from then until the answer was there; of a stream: while it waited for rows
    # @!attribute [r] decoding
    #   @return [Float, nil] of the rest. The rows of a result are decoded later, when somebody reads them; those of a stream
    #     are in it, without the time of the block
    # @!attribute [r] rows
    #   @return [Integer, nil] that were returned; nil: it has failed
    # @!attribute [r] affected
    #   @return [Integer, nil] that were inserted, changed, deleted or returned
    # @!attribute [r] connection
    #   @return [Integer, nil] the process of the server, as `pg_backend_pid()` has it
    # @!attribute [r] host
    #   @return [String, nil] and where that is
    # @!attribute [r] database
    #   @return [String]
    # @!attribute [r] error
    #   @return [Exception, nil] which its caller gets. Its message may have values of parameters
    # @since 0.1.0
    Execution = Data.define(:sql, :kind, :duration, :queue, :wire, :decoding, :rows, :affected, :connection, :host, :database,
                            :error) do
      # @return [String] without values of parameters, and without passwords
      # @since 0.1.0
      def to_s
        times = { queue:, wire:, decoding: }.compact.map { |name, time| "#{name} #{format("%.3f", time)}" }
        parts = ["#{format("%.3f", duration)} s#{" (#{times.join(", ")})" if times.any?}", rows && "#{rows} rows",
                 connection && "connection #{connection}", failure]
        "#{parts.compact.join(", ")}: #{Shown.sql(sql)}"
      end

      # @return [String]
      def inspect = "#<#{self.class} #{self}>"

      # Of this alone `pp` knows.
      def pretty_print(printer) = printer.text(inspect)

      private

      def failure
        return unless error

        error.is_a?(ServerError) ? "#{error.class} #{error.sqlstate}" : error.class.name
      end
    end
  end
end
