# frozen_string_literal: true

module Ringspun
  module Postgres
    # The decoders that a user gives for some types, with `types:` of {Pool#initialize}.
    #
    # @api private
    class Types
      OIDS = (1..0xffff_ffff)

      # Arrays whose elements are not separated by commas, as those of `box`, are left as text.
      LOOK_UP = "select name, t.oid, case t.typdelim when ',' then t.typarray end " \
                "from unnest($1::text[]) name left join pg_type t on t.oid = to_regtype(name)"

      # Class 42 of https://www.postgresql.org/docs/17/errcodes-appendix.html: syntax errors, and names that are none.
      MALFORMED = "42"
      private_constant :OIDS, :LOOK_UP, :MALFORMED

      # @param types [Hash{Integer, String, Symbol => #call}] by OID or name
      # @raise [UsageError]
      def initialize(types)
        raise UsageError, "types: expected a Hash of decoders by OID or name, got #{types.inspect}" unless types.is_a?(Hash)

        types.each { |type, decoder| check(type, decoder) }
        @by_oid, @by_name = types.partition { |type, _| type.is_a?(Integer) }.map(&:to_h)
        @by_name.transform_keys!(&:to_s)
        @of_all = Decoders.new(@by_oid, {}) if @by_name.empty? && @by_oid.any?
      end

      # May switch strands, to ask the server for the OIDs of names.
      #
      # @param lane [Lane] of which nobody has asked anything yet
      # @return [Decoders, nil] for its columns
      # @raise [UsageError] the database has no such type
      def decoders(lane)
        return @of_all if @by_name.empty?

        found = look_up(lane)
        own = found.to_h { |name, oid, _| [oid, @by_name.fetch(name)] }
        Decoders.new(own.merge(@by_oid), found.to_h { |_, oid, array| [oid, array || 0] })
      end

      private

      def check(type, decoder)
        unless type.is_a?(String) || type.is_a?(Symbol) || (type.is_a?(Integer) && OIDS.cover?(type))
          raise UsageError, "types: expected the OID or the name of a type, got #{type.inspect}"
        end
        return if decoder.respond_to?(:call)

        raise UsageError, "types: expected a decoder for #{type}, which answers to call, got #{decoder.inspect}"
      end

      def ask(lane) = lane.query(LOOK_UP, [@by_name.keys], nil, false, true)

      def look_up(lane)
        taken = ask(lane)
        taken = ask(lane) while taken == :quiet && lane.ping(nil)
        raise Postgres.lost(lane.loss, false) if taken.is_a?(Symbol)

        taken.rows.each { |name, oid, _| raise UsageError, "types: the database has no type #{name}" unless oid }
      rescue ServerError => error
        raise unless error.sqlstate.start_with?(MALFORMED)

        raise UsageError, "types: one of #{@by_name.keys.join(", ")} is no name of a type: #{error.sqlstate}"
      end
    end
    private_constant :Types, :Decoders
  end
end
