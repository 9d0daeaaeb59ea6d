# frozen_string_literal: true

module Ringspun
  module HTTP
    # How much of a client is read, and how long is waited for it.
    #
    # @api private
    module Limits
      # As {HTTP.listen} describes them.
      USUAL = { line_max: 8192, head_max: 65_536, fields_max: 100, name_max: 256, body_max: (2**63) - 1,
                first_byte: 30, keep_alive: 65, head: 10, body: 30, body_rate: 500, write: 60, leaving: 5 }.freeze
      SECONDS = %i[first_byte keep_alive head body write leaving].freeze
      # What the codec keeps of each in its own numbers.
      MOST = { line_max: 2**24, head_max: 2**30, fields_max: 10_000, name_max: 1024, body_max: (2**63) - 1,
               body_rate: 2**40 }.freeze
      # More than a process has memory for.
      MOST_REQUESTS = 2**60
      # Connections of a process, unless told.
      CONNECTIONS = 10_000
      private_constant :SECONDS, :MOST, :MOST_REQUESTS

      module_function

      # @param given [Hash{Symbol => Numeric, nil}]
      # @return [Hash{Symbol => Numeric, nil}] all of them
      # @raise [UsageError]
      def of(given)
        raise UsageError, "limits: takes a Hash, as { head: 5, body_max: 10_000 }, got #{given.inspect}" unless given.is_a?(Hash)

        name, = unknown = (given.keys - USUAL.keys).map(&:to_s)
        raise UsageError, "limits: there is no limit #{name}#{Suggestion.for(name, USUAL.keys)}" unless unknown.empty?

        USUAL.merge(given).to_h { |name, value| [name, checked(name, value)] }.freeze
      end

      # @param given [Integer, nil] `max_requests:` of {HTTP.listen}
      # @return [Integer]
      # @raise [UsageError]
      def requests(given)
        return MOST_REQUESTS if given.nil?
        return given if given.is_a?(Integer) && given.positive?

        raise UsageError, "max_requests must be an Integer above 0, or nil for no limit, got #{given.inspect}"
      end

      # @param given [Integer] `max_connections:` of {HTTP.run}
      # @return [Integer]
      # @raise [UsageError]
      def connections(given)
        return given if given.is_a?(Integer) && given.positive?

        raise UsageError, "max_connections must be an Integer above 0, got #{given.inspect}"
      end

      # @param none [String] what nil says
      # @return [Numeric, nil]
      # @raise [UsageError]
      def seconds(name, value, none: "nil for no limit")
        return if value.nil?

        Seconds.positive(value) or raise UsageError, "#{name} must be seconds above 0, or #{none}, got #{value.inspect}"
      end

      def checked(name, value) = SECONDS.include?(name) ? seconds("limits: #{name}", value) : count(name, value)

      def count(name, value)
        return value if value.is_a?(Integer) && value.between?(name == :body_rate ? 0 : 1, MOST.fetch(name))

        raise UsageError, "limits: #{name} must be an Integer from 1 to #{MOST.fetch(name)}, got #{value.inspect}"
      end
    end
    private_constant :Limits
  end
end
