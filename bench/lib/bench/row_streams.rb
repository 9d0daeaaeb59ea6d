# frozen_string_literal: true

require "bench/postgres_server"

module Bench
  # The ways in which rows of a query can be taken one by one from a connection of the gem pg.
  module RowStreams
    CHUNK = 256

    module_function

    # As the seed does it: each row is a result of its own, and a Hash.
    def by_results(connection, sql)
      begin_query(connection, sql)
      while (result = connection.get_result)
        result.check
        result.each { |row| yield row }
        result.clear
      end
    end

    # Arrays.
    def by_row(connection, sql, &)
      begin_query(connection, sql)
      connection.get_result.stream_each_row(&)
      connection.get_result
    end

    # Arrays, of which the library returns some at once.
    def by_chunks(connection, sql, &)
      connection.send_query(sql)
      connection.set_chunked_rows_mode(CHUNK)
      connection.get_result.stream_each_row(&)
      connection.get_result
    end

    # PG::Tuples, which decode a field when it is asked for.
    def by_tuple(connection, sql, &)
      begin_query(connection, sql)
      connection.get_result.stream_each_tuple(&)
      connection.get_result
    end

    # The first rows, as the seed does it: a reset of the connection ends the query.
    def first_rows(connection, sql, most)
      rows = 0
      begin_query(connection, sql)
      while (result = connection.get_result)
        result.check
        result.each do
          next if (rows += 1) < most

          connection.reset
          break
        end
        result.clear
      end
      rows
    end

    # The same, but a request to cancel ends the query, and the connection goes on.
    def first_rows_and_cancel(connection, sql, most)
      rows = 0
      begin_query(connection, sql)
      while rows < most && (result = connection.get_result)
        result.check
        rows += result.ntuples
        result.clear
      end
      connection.cancel
      connection.discard_results
      rows
    end

    def begin_query(connection, sql)
      connection.send_query(sql)
      connection.set_single_row_mode
    end
    private_class_method :begin_query
  end
end
