# frozen_string_literal: true

module Ringspun
  module Postgres
    # COPY on a lane of one user.
    #
    # While rows go in, a strand beside reads: the server may say something for each row, and would not take more before that is
    # read. Or it has found one wrong, and then no more are sent.
    #
    # @api private
    class Lane
      # Seconds for the server to note that no more rows come, before the statement is cancelled.
      GIVE_UP = 1
      private_constant :GIVE_UP

      # May switch strands.
      #
      # @return [Array] that the server waits for rows, whether they are binary, and how many columns there are
      # @raise [UsageError] it does not
      def begin_copy_in(sql, seconds)
        begun = start_copy(sql, seconds, true)
        @watching = Machine.current.__send__(:spin_beside) { watch_copy }
        begun
      ensure
        end_stream if begun && @watching.nil? # there is no place for another strand
      end

      # May switch strands.
      #
      # @return (see #begin_copy_in)
      def begin_copy_out(sql, seconds) = start_copy(sql, seconds, false)

      # May switch strands, until but few bytes are left that the kernel has not taken.
      #
      # @param bytes [String]
      # @return [Boolean] false: the COPY has ended, and takes no more
      # @raise [TimeoutError]
      def put_copied(bytes, seconds)
        return false unless put_rows(bytes)

        @session.stream.write("", timeout: seconds)
        true
      rescue ClosedError, TLSError, SystemCallError
        false # whoever reads hears why
      end

      # May switch strands.
      #
      # @return [Result] of no rows, with the tag
      # @raise [ServerError]
      def finish_copy_in(seconds)
        due = seconds && (Machine.current.now + seconds)
        close_copy
        await_watch(seconds)
        raise Postgres.lost(loss || "its run has ended", false) if @watching.nil?

        @watching = nil
        end_copy(due && [due - Machine.current.now, 0].max)
      end

      # Whatever is left of a COPY or a stream of rows is not wanted any more. May switch strands.
      #
      # @param reason [String] for the server's log
      def end_stream(reason = "the client has given it up")
        fail_copy(reason)
        @watching&.then { |strand| end_watch(strand) }
        end_legs
      end

      # @return [Boolean] whether the next user gets it as it is
      def clean? = @watching.nil? && untouched?

      private

      def start_copy(sql, seconds, into)
        refused = begin_copy(sql, into, seconds)
        raise Postgres.lost(loss, false) if refused

        sent = true
        begun = await_copy(seconds)
        check_way(begun, into)
        goes = true
        begun
      ensure
        end_stream if sent && !goes
      end

      def check_way(begun, into)
        return if begun && begun.first == into

        raise UsageError, "the statement takes no rows from here, and sends none" unless begun

        raise UsageError, into ? "the statement sends rows: see copy_out" : "the statement takes rows: see copy_in"
      end

      # @raise [TimeoutError] it is in doubt whether the server has them
      def await_watch(seconds)
        seconds ? Machine.current.timeout(seconds) { @watching.await } : @watching.await
      rescue TerminatedError
        @watching = nil # its run has ended
      end

      def end_watch(strand)
        @watching = nil
        Postgres.shield(GIVE_UP) do
          strand.terminate
          strand.await
        end
      rescue TerminatedError
        nil # as it is meant
      end
    end
  end
end
