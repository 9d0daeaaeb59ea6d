# frozen_string_literal: true

module Ringspun
  module Postgres
    # COPY: many rows at once, in either direction, without a limit to how many there are.
    #
    # The statement is written out, as for `copy_data` of the gem pg, `copy` of psycopg and the COPY methods of Npgsql: so all
    # options of COPY can be had, and none needs a name of its own here. The names say the direction, as those of tokio-postgres
    # and of pgJDBC's CopyManager do.
    #
    # Each method has a connection of its own while it runs: that of the session or transaction, or one of the pool's.
    #
    # @since 0.1.0
    module Copying
      OUT_FORMS = %i[array bytes].freeze
      private_constant :OUT_FORMS

      # Copies rows into a table, by COPY ... FROM STDIN. All of them are there when this returns; when it raises, when its block
      # is left in another way, or is cancelled, there are none. A transaction that it was in has failed then.
      #
      #     db.copy_in("copy users (id, name) from stdin", users.lazy.map { |user| [user.id, user.name] })
      #     db.copy_in("copy users from stdin (format csv, header)", File.open("users.csv"))
      #     db.copy_in("copy users (id, name) from stdin") { |copy| copy << [1, "Ada"] << [2, nil] }
      #
      # An Array is a row of values, and a String is bytes of the statement's format, also in turns (but in binary). For rows of
      # values the server is first asked for the types of the columns, which takes one or two round trips. In binary, those that
      # can be written are boolean, integers, floats, texts, bytea, uuid, json, dates and times.
      #
      # May switch strands.
      #
      # @param sql [String] of the text, CSV or binary format
      # @param source [#each, #read_partial, #readpartial, String, nil] rows and Strings; or a {Ringspun::Stream} or IO, whose
      #   bytes are sent as they are; nil: a block gives them
      # @param timeout [Numeric, nil] seconds for all of it
      # @param progress [#call, nil] is called with the bytes and rows that were sent, after each 64 KB
      # @yieldparam copy [CopyIn]
      # @return [Integer] how many rows the server has
      # @raise [InvalidRow] for a value that Postgres cannot have: it names row and column
      # @raise [ServerError] for what the server finds wrong. Where it names a line, this is a {CopyRowError} as well
      # @raise [UsageError, TimeoutError, ConnectionLost]
      # @since 0.1.0
      def copy_in(sql, source = nil, timeout: nil, progress: nil, &block)
        statement = CopyStatement.new(sql, :in)
        raise UsageError, "copy_in needs either a source of rows or a block" if source.nil? == block.nil?

        run_copy_in(statement, source, timeout, Copying.callable(progress), &block)
      end

      # Copies rows out of a table or query, by COPY ... TO STDOUT. While the block works, no more are read than fit in the
      # buffers, and the server waits. When the block is left early the statement is cancelled; a transaction that it was in has
      # failed then.
      #
      #     db.copy_out("copy users (id, name) to stdout") { |id, name| ... }
      #     db.copy_out("copy (select * from users) to stdout (format csv, header)", File.open("users.csv", "w"))
      #
      # Values are what a query would return. For that the server is first asked for the types of the columns. In binary, some
      # types are not read (numeric, real, inet), and those that are not known are Strings in BINARY.
      #
      # May switch strands.
      #
      # @param sql [String]
      # @param sink [#write, nil] a {Ringspun::Stream} or IO, which gets the bytes as they come
      # @param as [:array, :bytes] what the block gets: each row as an Array, or the bytes of many rows
      # @param timeout (see #copy_in)
      # @param progress [#call, nil] is called with the bytes and rows that have come, after each piece
      # @yieldparam row [Array<Object>, String]
      # @return [Integer, Enumerator] how many rows there were; without a sink or block an Enumerator of the rows
      # @raise (see #copy_in)
      # @since 0.1.0
      def copy_out(sql, sink = nil, as: sink ? :bytes : :array, timeout: nil, progress: nil, &block)
        statement = CopyStatement.new(sql, :out)
        Copying.check_out(sink, as, block)
        return Holder.enumerator { |&each| copy_out(sql, as:, timeout:, progress:, &each) } unless sink || block

        run_copy_out(statement, sink, as, timeout, Copying.callable(progress), &block)
      end

      # @api private
      def self.callable(progress)
        return progress if progress.nil? || progress.respond_to?(:call)

        raise UsageError, "progress: expected something to call with bytes and rows, got #{progress.inspect}"
      end

      # @api private
      def self.check_out(sink, form, block)
        unless OUT_FORMS.include?(form)
          raise UsageError, "as: expected one of #{OUT_FORMS.map(&:inspect).join(", ")}, got #{form.inspect}"
        end
        return if sink.nil?

        raise UsageError, "copy_out has either a sink or a block" if block
        raise UsageError, "a sink gets bytes: leave as: out" unless form == :bytes
        raise UsageError, "expected an IO or Stream to write to, got one of #{sink.class}" unless sink.respond_to?(:write)
      end
    end
  end
end
