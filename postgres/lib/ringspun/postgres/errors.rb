# frozen_string_literal: true

require_relative "hints"

module Ringspun
  # With `require "ringspun/postgres"`. So `rescue => error; error.in_doubt?` works for whatever a statement raises: also for a
  # limit around it, as by `Machine#timeout`.
  class Error
    # @return [Boolean] whether a statement that has raised this may have taken effect all the same. Of a {TimeoutError},
    #   {TerminatedError} or {DeadlockError}, by which its strand ends from outside, nobody knows: true
    # @since 0.1.0
    def in_doubt?
      case self
      when TimeoutError, TerminatedError, DeadlockError then true
      else false
      end
    end
  end

  module Postgres
    # What a client of Postgres raises beside {Ringspun::UsageError} and {Ringspun::TimeoutError}.
    #
    # @since 0.1.0
    class Error < Ringspun::Error; end

    # The time of a call is over.
    #
    # @since 0.1.0
    class StatementTimeoutError < Ringspun::TimeoutError
      # @api private
      def initialize(message = nil, in_doubt: false)
        super(message)
        @in_doubt = in_doubt
      end

      # @return [Boolean] whether the statement was sent, and may have taken effect. What was not sent never has
      # @since 0.1.0
      def in_doubt? = @in_doubt
    end

    # The server, or whoever answers in its place, has sent what the protocol does not allow. The connection is closed, but for
    # {DecodeError}.
    #
    # @since 0.1.0
    class ProtocolError < Error
      # @api private
      # @param in_doubt [Boolean]
      def self.under_statement(message, in_doubt) = new(message).tap { |error| error.instance_variable_set(:@in_doubt, in_doubt) }

      # @return [Boolean] a statement was sent on the connection, and may have been executed
      # @since 0.1.0
      def in_doubt? = @in_doubt || false
    end

    # A value, or a row, is none of its type. The connection goes on, and so do other values of the result.
    #
    # @since 0.1.0
    class DecodeError < ProtocolError; end

    # There is no connection: nobody listens, or who does refuses.
    #
    # @since 0.1.0
    class ConnectError < Error; end

    # The connection has ended under a statement.
    #
    # @since 0.1.0
    class ConnectionLost < Error
      def initialize(message, in_doubt:)
        super(message)
        @in_doubt = in_doubt
      end

      # @return [Boolean] the statement was sent, and may have been executed
      # @since 0.1.0
      def in_doubt? = @in_doubt
    end

    # All connections of a {Pool} are in use, and none was given back in time.
    #
    # @since 0.1.0
    class PoolTimeoutError < Error; end

    # A statement that changes the session, on a connection that others share.
    #
    # @since 0.1.0
    class UnsafeSessionState < Error; end

    # More was notified than a {Subscription} has room for, and its policy is :close.
    #
    # @since 0.1.0
    class SubscriptionOverflow < Error; end

    # Something between the client and the server keeps notifications back.
    #
    # @since 0.1.0
    class ListenUnsupported < Error; end

    # The server has rolled back a transaction that was to be committed.
    #
    # @since 0.1.0
    class TransactionRolledBack < Error; end

    # Before it is sent, or decoded, types have to be looked up.
    #
    # @api private
    class UnknownTypes < Error
      # @return [Array<Integer>]
      attr_reader :oids

      def initialize(oids)
        super("types have to be looked up: #{oids.join(", ")}")
        @oids = oids
      end
    end
    private_constant :UnknownTypes

    # What the server says of a statement. Its class is that of its SQLSTATE: {UniqueViolation} for 23505, and where a code has
    # none of its own, that of the first two digits.
    #
    # @since 0.1.0
    class ServerError < Error
      # The fields of an error, by their letters in the protocol:
      # https://www.postgresql.org/docs/17/protocol-error-fields.html
      FIELDS = {
        severity: "V", sqlstate: "C", primary: "M", detail: "D", hint: "H", position: "P", internal_position: "p",
        internal_query: "q", context: "W", schema: "s", table: "t", column: "c", data_type: "d", constraint: "n", file: "F",
        line: "L", routine: "R"
      }.freeze
      private_constant :FIELDS

      # @return [String, nil] the statement
      # @since 0.1.0
      attr_reader :sql

      # @return [ScriptPlace, nil] of a script: which of its statements
      # @since 0.1.0
      attr_reader :place

      # For what each is see the signature.
      FIELDS.each { |name, letter| define_method(name) { @fields[letter] } }

      # @api private
      def initialize(fields, sql = nil, place = nil)
        @fields = fields.freeze
        @sql = sql
        @place = place
        super(explain)
      end

      # @return [Hash{Symbol => String}] all fields that it has
      # @since 0.1.0
      def fields = FIELDS.filter_map { |name, letter| [name, @fields[letter]] if @fields[letter] }.to_h

      private

      def explain
        lines = ["#{primary} (#{sqlstate})", *place&.to_s, *pointed_at]
        lines << "DETAIL: #{detail}" if detail
        lines << "HINT: #{hint}" if hint
        ours = Hints.for(@fields, sql)
        lines << "HINT: #{ours}" if ours
        lines.join("\n")
      end

      # The line of the statement that is meant, and a caret below the place.
      def pointed_at
        at = Integer(position || "0", exception: false)
        return [] unless sql && at&.positive?

        before = sql[0, at - 1].to_s
        line = before.count("\n")
        indent = before[/[^\n]*\z/].gsub(/[^\t]/, " ")
        [sql.lines.fetch(line, "").chomp, "#{indent}^"]
      end
    end

    # By the first two digits of the SQLSTATE, and by all five:
    # https://www.postgresql.org/docs/17/errcodes-appendix.html
    STATES = {
      "08" => :ConnectionException, "0A" => :FeatureNotSupported, "21" => :CardinalityViolation, "22" => :DataException,
      "22001" => :StringDataRightTruncation, "22003" => :NumericValueOutOfRange, "22007" => :InvalidDatetimeFormat,
      "22012" => :DivisionByZero, "22P02" => :InvalidTextRepresentation, "23" => :IntegrityConstraintViolation,
      "23502" => :NotNullViolation, "23503" => :ForeignKeyViolation, "23505" => :UniqueViolation, "23514" => :CheckViolation,
      "23P01" => :ExclusionViolation, "25" => :InvalidTransactionState, "25006" => :ReadOnlyTransaction,
      "25P02" => :InFailedTransaction, "26000" => :InvalidStatementName, "28" => :InvalidAuthorization,
      "28P01" => :InvalidPassword,
      "40" => :TransactionRollback, "40001" => :SerializationFailure, "40P01" => :DeadlockDetected,
      "42" => :SyntaxErrorOrAccessRuleViolation, "42501" => :InsufficientPrivilege, "42601" => :SyntaxError,
      "42703" => :UndefinedColumn, "42804" => :DatatypeMismatch, "42883" => :UndefinedFunction, "42P01" => :UndefinedTable,
      "42P05" => :DuplicateStatement, "42P07" => :DuplicateTable, "53" => :InsufficientResources, "53300" => :TooManyConnections,
      "55" => :ObjectNotInPrerequisiteState, "55P03" => :LockNotAvailable, "57" => :OperatorIntervention,
      "57014" => :QueryCanceled,
      "57P01" => :AdminShutdown, "57P03" => :CannotConnectNow, "58" => :SystemError, "XX" => :InternalError
    }.freeze
    private_constant :STATES

    # Each class is below that of its first two digits.
    BY_STATE = STATES.each_with_object({}) do |(state, name), classes|
      classes[state] = const_set(name, Class.new(classes.fetch(state[0, 2], ServerError)))
    end.freeze
    private_constant :BY_STATE

    # For Thread.handle_interrupt.
    AT_WAITS = { Object => :on_blocking }.freeze
    NEVER = { Object => :never }.freeze
    private_constant :AT_WAITS, :NEVER

    class << self
      # @api private
      # @param body [String] of an ErrorResponse
      def error_of(body, sql = nil, place = nil)
        fields = fields_of(body)
        state = fields["C"].to_s
        BY_STATE.fetch(state) { BY_STATE.fetch(state[0, 2], ServerError) }.new(fields, sql, place)
      end

      # @api private
      # @param body [String] of an ErrorResponse or NoticeResponse, which may have any bytes
      # @return [Hash{String => String}] its fields in UTF-8, by their letters
      def fields_of(body)
        body.b.split("\0").to_h { |field| [field[0], field[1..].to_s.force_encoding(Encoding::UTF_8).scrub] }
      end

      # @api private
      # @return [Float] seconds on the clock by which the caller's waits are measured
      def now = Fiber.current_scheduler.is_a?(Scheduler) ? Machine.current.now : Process.clock_gettime(Process::CLOCK_MONOTONIC)

      # @api private
      # @param name [String, Symbol] of the option that has them
      # @return [Numeric] the same as a plain number; 0 for a limit that has passed
      # @raise [UsageError]
      def seconds(name, value) = Seconds.limit(name, value, "a number of seconds")

      # @api private
      # Runs the block where a cancellation from outside does not reach it.
      def shield(seconds, &) = Fiber.current_scheduler.is_a?(Scheduler) ? Ringspun.shield(deadline: seconds, &) : yield

      # @api private
      # Yields each, also those behind one at which the block raises, or the thread is killed.
      def each_to_the_end(things, &)
        left = things.dup
        yield left.shift until left.empty?
      ensure
        each_to_the_end(left, &) unless left.empty?
      end

      # @api private
      # Thread#raise, Thread#kill and Timeout meet a thread anywhere, also between having something and knowing of it. Here they
      # wait while it is taken until the thread waits for something, and while it is given back until that is done. So does the
      # Interrupt of a signal from Ruby 3.4 on; in Ruby 3.3 no mask is for it.
      #
      # @param take [#call] returns what is taken
      # @param give_back [#call] gets it
      # @yieldparam taken [Object]
      def with_taken(take, give_back)
        taken = nil
        taking { taken = take.call }
        yield taken
      ensure
        giving_back { give_back.call(taken) } if taken
      end

      # @api private
      # (see #with_taken)
      def taking(&) = masked(AT_WAITS, &)

      # @api private
      # (see #with_taken)
      def giving_back(&) = masked(NEVER, &)

      # @api private
      # A mask is a thread's and not a fiber's: another fiber would get it, or end it. Fibers are interrupted where they wait.
      #
      # @param mask [Hash] of Thread.handle_interrupt
      def masked(mask, &) = Fiber.current_scheduler ? yield : Thread.handle_interrupt(mask, &)

      # @api private
      def lost(why, in_doubt) = ConnectionLost.new("the connection is lost: #{why}", in_doubt:)

      # @api private
      def late(message, in_doubt) = StatementTimeoutError.new(message, in_doubt:)
    end
  end
end
