# frozen_string_literal: true

module Ringspun
  module Postgres
    # How a session copies.
    class Session
      # Columns that COPY has where none is named: no generated ones.
      COPIED = "select string_agg(quote_ident(attname), ', ' order by attnum) from pg_attribute " \
               "where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = ''"
      private_constant :COPIED

      private

      def run_copy_in(statement, source, timeout, progress, &block)
        return copy_in_on_lane(statement, source, timeout, progress, nil, &block) unless @observers

        @observers.observe(:copy, [statement.sql], self) do |call|
          copy_in_on_lane(statement, source, timeout, progress, call, &block)
        end
      end

      def run_copy_out(statement, sink, form, timeout, progress, &block)
        return copy_out_on_lane(statement, sink, form, timeout, progress, nil, &block) unless @observers

        @observers.observe(:copy, [statement.sql], self) do |call|
          copy_out_on_lane(statement, sink, form, timeout, progress, call, &block)
        end
      end

      # @param call [ObservedCall, nil]
      def copy_in_on_lane(statement, source, timeout, progress, call)
        check
        deadline = due(timeout)
        columns = typed_columns(statement, deadline) unless bytes?(source)
        _, _, width = begin_copy(:begin_copy_in, statement, deadline)
        begun = true
        copy = CopyIn.new(self, CopyRows.new(options_for(statement, columns), width, columns), deadline, progress)
        source.nil? ? yield(copy) : copy.__send__(:take, source)
        result = copy.__send__(:conclude)
        done = true
        call&.copied(result, 0)
        result.affected
      ensure
        copy&.__send__(:close)
        leave_stream(false) if begun && !done
        give_notices(call) if begun && call
      end

      # @param call [ObservedCall, nil]
      def copy_out_on_lane(statement, sink, form, timeout, progress, call, &block)
        check
        deadline = due(timeout)
        each = form == :array ? each_copied(statement, deadline, block) : each_bytes(sink, block)
        begin_copy(:begin_copy_out, statement, deadline)
        begun = true
        result = take_copied(deadline, progress, &each)
        done = true
        call&.copied(result, result.affected)
        result.affected
      ensure
        leave_stream(true) if begun && !done
        give_notices(call) if begun && call
      end

      # The server may wait for a lock before it begins.
      def begin_copy(method, statement, deadline)
        ask { @lane.__send__(method, statement.sql, left_until(deadline)) }
      end

      # Rows for a COPY that has begun.
      def put_copied(bytes, seconds) = go_on { @lane.put_copied(bytes, seconds) }

      # All rows are put.
      def finish_copy_in(seconds) = go_on { @lane.finish_copy_in(seconds) }

      def take_copied(deadline, progress)
        bytes = rows = 0
        until (result = go_on { @lane.next_copied(left_until(deadline)) }).size.zero?
          size = yield result
          rows += result.size
          result.__send__(:release)
          progress&.call(bytes += size, rows)
        end
        result
      end

      def each_copied(statement, deadline, block)
        reader = CopyReader.new(statement.options, statement.binary? || statement.header, typed_columns(statement, deadline))
        lambda do |result|
          reader.each(result, &block)
          CopyReader.size(result)
        rescue ProtocolError => error
          lost_meanwhile(error)
          raise
        end
      end

      # A proxy that loses the server in the middle of a row says so there, and closes: the row has the bytes of a message.
      def lost_meanwhile(error)
        @lease.within do
          Postgres.shield(DRAIN) { @lane.next_copied(DRAIN) } unless @lane.lost?
          raise Postgres.lost(@lane.loss, false), cause: error if @lane.lost?
        end
      rescue TimeoutError, ServerError
        nil # it is there
      end

      def each_bytes(sink, block)
        lambda do |result|
          bytes = CopyReader.bytes(result)
          sink ? sink.write(bytes) : block.call(bytes)
          bytes.bytesize
        end
      end

      def bytes?(source) = source.is_a?(String) || source.respond_to?(:read_partial) || source.respond_to?(:readpartial)

      def options_for(statement, columns)
        statement.check_rows
        if columns && statement.header
          # The server would take the first row for it.
          raise UsageError, "rows of values have no header: leave HEADER out of the statement"
        end

        statement.options
      end

      # @return [Columns, nil] nil: the statement is not understood
      def typed_columns(statement, deadline)
        query = statement.query || select_of(statement, deadline) or return
        ask { @lane.describe(query, limit(left_until(deadline))) }.__send__(:layout)
      end

      def select_of(statement, deadline)
        return unless statement.table

        columns = statement.columns || look_up(COPIED, [statement.table], left_until(deadline)).value
        "select #{columns} from #{statement.table}"
      end

      def due(timeout) = limit(timeout)&.then { |seconds| Postgres.now + seconds }

      def left_until(deadline) = deadline && [deadline - Postgres.now, 0].max
    end
  end
end
