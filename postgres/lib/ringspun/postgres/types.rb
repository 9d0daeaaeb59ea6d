# frozen_string_literal: true

module Ringspun
  module Postgres
    # The decoders that a user gives for some types, with `types:` of {Pool#initialize}.
    #
    # @api private
    class Types
      OIDS = (1..0xffff_ffff)

      NAMES = "select name, t.oid, t.typarray " \
              "from unnest($1::text[]) name left join pg_catalog.pg_type t on t.oid = to_regtype(name)"

      # With what these are made of.
      OF_TYPES = <<~SQL
        with recursive met(oid) as (
          select unnest($1::oid[])
          union
          select unnest(array[t.typbasetype, t.typelem]) from met join pg_catalog.pg_type t using (oid)
        )
        select t.oid, t.typbasetype, case when e.typarray = t.oid then e.oid else 0::oid end, coalesce(e.typdelim, ',')::text
        from met join pg_catalog.pg_type t using (oid) left join pg_catalog.pg_type e on e.oid = t.typelem
      SQL

      # Class 42 of https://www.postgresql.org/docs/17/errcodes-appendix.html: syntax errors, and names that are none.
      MALFORMED = "42"
      private_constant :OIDS, :NAMES, :OF_TYPES, :MALFORMED

      # @param types [Hash{Integer, String, Symbol => #call}] by OID or name
      # @raise [UsageError]
      def initialize(types)
        raise UsageError, "types: expected a Hash of decoders by OID or name, got #{types.inspect}" unless types.is_a?(Hash)

        types.each { |type, decoder| check(type, decoder) }
        by_oid, @by_name = types.partition { |type, _| type.is_a?(Integer) }.map(&:to_h)
        @by_name.transform_keys!(&:to_s)
        @decoders = Decoders.new
        by_oid.each { |oid, decoder| @decoders.add(oid, 0, decoder) }
      end

      # May switch strands, to ask the server for the OIDs of names.
      #
      # @param lane [Lane] of which nobody has asked anything yet
      # @return [Decoders] for its columns
      # @raise [UsageError] the database has no such type
      def decoders(lane)
        missing = name_types { ask(lane) } if @by_name.any?
        raise UsageError, "types: the database has no type #{missing}" if missing

        @decoders
      end

      # Looks up types that were not known: those that were created since, and those that nobody has met yet.
      #
      # @param oids [Array<Integer>]
      # @yieldparam sql [String] to ask the server, with
      # @yieldparam params [Array]
      # @yieldreturn [Result]
      def learn(oids)
        name_types { yield NAMES, [@by_name.keys] } if @by_name.any? && !oids.all? { |oid| @decoders.known?(oid) }
        return if oids.all? { |oid| @decoders.known?(oid) }

        rows = yield(OF_TYPES, [oids]).rows
        # What is gone meanwhile is taken for text.
        @decoders.learn(rows + (oids - rows.map(&:first)).map { |oid| [oid, 0, 0, ","] })
      end

      private

      def check(type, decoder)
        unless type.is_a?(String) || type.is_a?(Symbol) || (type.is_a?(Integer) && OIDS.cover?(type))
          raise UsageError, "types: expected the OID or the name of a type, got #{type.inspect}"
        end
        return if decoder.respond_to?(:call)

        raise UsageError, "types: expected a decoder for #{type}, which answers to call, got #{decoder.inspect}"
      end

      # As after an opening in which this process was stopped for a while.
      def ask(lane)
        taken = lane.query(NAMES, [@by_name.keys], nil, false, true)
        taken = lane.query(NAMES, [@by_name.keys], nil, false, true) while taken == :quiet && lane.ping(nil)
        taken.is_a?(Symbol) ? raise(Postgres.lost(lane.loss, false)) : taken
      end

      # @return [String, nil] the name of a type that the database does not have
      def name_types
        rows = yield.rows
        rows.each { |name, oid, array| @decoders.add(oid, array, @by_name.fetch(name)) if oid }
        rows.find { |_, oid, _| oid.nil? }&.first
      rescue ServerError => error
        raise unless error.sqlstate.start_with?(MALFORMED)

        raise UsageError, "types: one of #{@by_name.keys.join(", ")} is no name of a type: #{error.sqlstate}"
      end
    end
    private_constant :Types, :Decoders
  end
end
