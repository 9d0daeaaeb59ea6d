# frozen_string_literal: true

module Ringspun
  module Postgres
    # Names of tables and columns in a statement.
    #
    # @api private
    module Identifiers
      class << self
        # @param name [String, Symbol]
        # @return [String] with quotes
        # @raise [UsageError]
        def quote(name)
          text = name.to_s if name.is_a?(String) || name.is_a?(Symbol)
          return "\"#{text.gsub('"', '""')}\"" if text && !text.empty? && !text.include?("\0")

          raise UsageError, "expected the name of a table or column, a String or Symbol that is not empty, got #{name.inspect}"
        end

        # @param name [String, Symbol, Array<String, Symbol>] with the schema before a dot, or as an Array
        # @return [String]
        # @raise [UsageError]
        def table(name)
          parts = name.is_a?(Array) ? name : name.to_s.split(".", -1)
          raise UsageError, "expected the name of a table, got #{name.inspect}" if parts.empty? || name.nil?

          parts.map { |part| quote(part) }.join(".")
        end

        # @return [String]
        def list(names) = names.map { |name| quote(name) }.join(", ")
      end
    end

    # One call of {Inserting#insert_many}.
    #
    # @api private
    class InsertMany
      # Up to this number of rows one INSERT is sooner done than a COPY, which has a connection of its own and three round trips.
      FEW = 100

      # Parameters of a statement, and rows of an INSERT.
      PARAMETERS = 65_535
      ROWS = 1000

      WAYS = %i[auto copy insert].freeze

      # Columns of json, also of domains made of it.
      JSON_COLUMNS = <<~SQL
        with recursive made(name, oid) as (
          select attname, atttypid from pg_catalog.pg_attribute where attrelid = $1::regclass and attname = any($2) and attnum > 0
          union all
          select name, t.typbasetype from made join pg_catalog.pg_type t using (oid) where t.typtype = 'd'
        )
        select name from made where oid = any(array[114, 3802])
      SQL
      private_constant :FEW, :PARAMETERS, :ROWS, :WAYS, :JSON_COLUMNS

      # @param (see Inserting#insert_many)
      def initialize(table, rows, columns, on_conflict, returning, by)
        raise UsageError, "insert_many: expected rows (each), got one of #{rows.class}" unless rows.respond_to?(:each)
        raise UsageError, "insert_many: rows come in an Array or Enumerator, not as a #{rows.class}" if rows.is_a?(Hash)
        raise UsageError, "by: expected one of #{WAYS.map(&:inspect).join(", ")}, got #{by.inspect}" unless WAYS.include?(by)

        @table = Identifiers.table(table)
        @rows = rows
        @size = rows.size if rows.respond_to?(:size) && rows.size.is_a?(Integer)
        @columns = columns ? Array(columns) : columns_of_first
        @names = @columns.map(&:to_s)
        check_names
        @conflict = Conflict.sql(on_conflict, @names)
        @returning = returning_sql(returning)
        @by = way(by)
      end

      # @return [Boolean] nothing is to be done
      def empty? = @size&.zero?

      # @return [Object] for no rows
      def nothing = @returning ? [] : 0

      def copy? = @by == :copy

      # @return [Boolean] one statement has all rows
      def single? = !@size.nil? && @size <= slice

      def copy_sql = "copy #{@table} (#{Identifiers.list(@columns)}) from stdin"

      # @param look_up [#call] gets a statement and its parameters, and returns its Result
      # @yieldparam sql [String]
      # @yieldparam params [Array]
      def each_statement(look_up)
        each_slice do |rows|
          yield sql(rows.size), with_json(rows, look_up).flatten(1)
        end
      end

      # Of any number of results.
      def answer_of(results) = @returning ? results.flat_map(&:to_a) : results.sum(&:affected)

      # @yieldparam row [Array]
      def each
        number = 0
        @rows.each { |row| yield values(row, number += 1) }
      end

      private

      def each_slice
        rows = []
        each do |row|
          rows << row
          next if rows.size < slice

          yield rows
          rows = []
        end
        yield rows unless rows.empty?
      end

      # An Array is json in a column of that, as COPY has it. Only where there is one the server is asked for those columns.
      def with_json(rows, look_up)
        return rows unless rows.any? { |row| row.any? { |value| list?(value) } }

        @jsons ||= look_up.call(JSON_COLUMNS, [@table, @names]).rows.flatten.map { |name| @names.index(name) }
        return rows if @jsons.empty?

        rows.map do |row|
          row.each_with_index.map { |value, at| list?(value) && @jsons.include?(at) ? Json.new(value.to_a) : value }
        end
      end

      def list?(value) = value.is_a?(Array) || value.is_a?(Set)

      # No rows may have no columns.
      def slice = [PARAMETERS / @columns.size.clamp(1..), ROWS].min

      def returning_sql(wanted)
        return unless wanted
        raise UsageError, "returning: expected columns, or :all, got #{wanted.inspect}" if wanted == []

        " returning #{wanted == :all ? "*" : Identifiers.list(Array(wanted))}"
      end

      def way(by)
        rows_only = @conflict.nil? && @returning.nil?
        raise UsageError, "by: :copy has neither on_conflict: nor returning:" if by == :copy && !rows_only
        return by unless by == :auto

        rows_only && (@size.nil? || @size > [FEW, slice].min) ? :copy : :insert
      end

      def columns_of_first
        raise UsageError, "insert_many needs columns: where rows come in no Array" unless @rows.is_a?(Array) || @size&.zero?
        return [] if @size.zero?

        first = @rows.first
        return first.keys if first.is_a?(Hash)

        raise InvalidRow.new("is of #{first.class}: give columns: with rows that are Arrays, or rows as Hashes", 1, nil)
      end

      def check_names
        @columns.each { |name| Identifiers.quote(name) }
        raise UsageError, "insert_many: there are no columns" if @columns.empty? && !empty?

        twice = @names.tally.find { |_, times| times > 1 } or return
        raise UsageError, "insert_many: column #{twice.first} is named twice"
      end

      def values(row, number)
        case row
        when Array
          return row if row.size == @columns.size

          raise InvalidRow.new("has #{row.size} values, and there are #{@columns.size} columns", number, nil)
        when Hash then values_of_hash(row, number)
        else raise InvalidRow.new("is of #{row.class}: give a row as an Array or a Hash", number, nil)
        end
      end

      def values_of_hash(row, number)
        values = @columns.zip(@names).map do |column, name|
          row.fetch(column) { row.fetch(name) { row.fetch(name.to_sym) { raise other_keys(row, number) } } }
        end
        row.size == @columns.size ? values : raise(other_keys(row, number))
      end

      def other_keys(row, number)
        keys = row.keys.map(&:to_s)
        missing = @names - keys
        more = keys - @names
        told = [("lacks #{missing.join(", ")}" if missing.any?), ("has #{more.join(", ")} beside the columns" if more.any?)]
        InvalidRow.new(told.any? ? told.compact.join(", and ") : "has a key twice", number, missing.first || more.first)
      end

      # COPY sets identity columns in any case, so INSERT does.
      def sql(rows)
        width = @columns.size
        tuples = Array.new(rows) { |row| "(#{Array.new(width) { |place| "$#{(row * width) + place + 1}" }.join(", ")})" }
        into = "insert into #{@table} (#{Identifiers.list(@columns)}) overriding system value"
        "#{into} values #{tuples.join(", ")}#{@conflict}#{@returning}"
      end

      # What is to be done where a row is there already.
      #
      # @api private
      module Conflict
        class << self
          # @return [String, nil]
          def sql(wanted, names)
            case wanted
            when nil then nil
            when :nothing then " on conflict do nothing"
            when Hash then of(names, **wanted)
            else refuse(wanted)
            end
          rescue ArgumentError
            refuse(wanted)
          end

          private

          def of(names, by:, update: nil)
            by = Array(by)
            raise ArgumentError, "no columns" if by.empty?

            update = update == :all || update.nil? ? names - by.map(&:to_s) : Array(update)
            target = " on conflict (#{Identifiers.list(by)})"
            return "#{target} do nothing" if update.empty?

            set = update.map { |name| Identifiers.quote(name).then { |quoted| "#{quoted} = excluded.#{quoted}" } }
            "#{target} do update set #{set.join(", ")}"
          end

          def refuse(wanted)
            raise UsageError, "on_conflict: expected :nothing, or { by: columns, update: columns }, got #{wanted.inspect}"
          end
        end
      end
      private_constant :Conflict
    end
    private_constant :Identifiers, :InsertMany

    # Many rows, by INSERT or COPY.
    #
    # @since 0.1.0
    module Inserting
      # Inserts rows, all of them or none. It chooses how:
      #
      # - **INSERT of many rows**, for up to 100 rows, and where `on_conflict:` or `returning:` is given, which COPY does not
      #   have. 100 rows are one statement, which shares a connection with others; to begin a COPY takes three round trips on a
      #   connection of its own. More rows are several statements of up to 1,000 rows in one transaction.
      # - **COPY** for all others, and where nobody knows how many there are: nothing is faster, rows are encoded as they come,
      #   and 64 KB of them are kept at most.
      #
      # Either way columns that are not named get their defaults, identity columns the values that are given, and triggers run.
      # COPY runs no rules, and cannot write to a view or to a table with row-level security for its user: `by: :insert` can.
      #
      # May switch strands.
      #
      # @param table [String, Symbol, Array<String, Symbol>] "users", "public.users" or ["public", "users"]; it is quoted, so
      #   upper case stays what it is
      # @param rows [Enumerable<Array, Hash>] Arrays in the order of `columns:`, or Hashes, all with the same keys
      # @param columns [Array<String, Symbol>, nil] nil: the keys of the first row, where there is an Array of rows
      # @param on_conflict [:nothing, Hash, nil] `{ by: [:id], update: [:name] }` updates those columns where a row with the same
      #   `by` is there; without `update:` all others
      # @param returning [Array<String, Symbol>, :all, nil] columns
      # @param by [:auto, :copy, :insert]
      # @param timeout [Numeric, nil] seconds for all of it
      # @return [Integer, Array<Row>] how many rows were inserted or updated; with `returning:` what they have
      # @raise [InvalidRow] a row has other columns, or a value that Postgres cannot have
      # @raise [UsageError, ServerError, TimeoutError, ConnectionLost]
      # @since 0.1.0
      def insert_many(table, rows, columns: nil, on_conflict: nil, returning: nil, by: :auto, timeout: nil)
        insert = InsertMany.new(table, rows, columns, on_conflict, returning, by)
        return insert.nothing if insert.empty?
        return copy_in(insert.copy_sql, insert, timeout:) if insert.copy?
        return insert_by_statements(insert, timeout) if insert.single?

        transaction(timeout:) { |t| t.__send__(:insert_by_statements, insert, nil) }
      end

      private

      def insert_by_statements(insert, timeout)
        results = []
        ask = ->(sql, params) { look_up(sql, params, timeout) }
        insert.each_statement(ask) { |sql, params| results << query(sql, *params, timeout:) }
        insert.answer_of(results)
      end
    end
  end
end
