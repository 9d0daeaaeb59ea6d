# frozen_string_literal: true

module Ringspun
  module Postgres
    # What can be asked of Postgres: of a {Pool}, and inside of a {Pool#session} or {Pool#transaction} of the connection that they
    # have. Parameters are $1, $2, ... in the statement, and given behind it.
    #
    # Every method may switch strands. A `timeout:` is in seconds and for the whole call; nil: as long as it takes. A strand that
    # is cancelled, or whose time is over, leaves at once. What it has asked for is cancelled on the server where that holds up
    # nobody else; else its answer is dropped. Either way it may have taken effect.
    #
    # All raise {UsageError} for what can be known to be wrong before a byte is sent, {ServerError} with a class per SQLSTATE
    # for what the server refuses, {ConnectionLost} when the connection ends meanwhile, {ProtocolError} when the server sends
    # what is no answer, {ConnectError} when there is none, {PoolTimeoutError} when all are in use, and {TimeoutError}.
    #
    # @since 0.1.0
    module Client
      include Copying
      include Inserting

      FORMS = { row: :each, array: :each_array, hash: :each_hash }.freeze
      private_constant :FORMS

      # @param sql [String] one statement
      # @param params [Array<Object>] nil, true, false, String, Symbol, Integer, Float, BigDecimal, Rational, Time, Date,
      #   {TimeOfDay}, {Interval}, Array, Set, Range, Hash (json), {Json}, Struct or Data (composites), IPAddr or {Bytes}. A
      #   String in BINARY is bytes for a bytea, and text for any other type; an Array or Set is json for a json or jsonb, and an
      #   array for any other type
      # @param timeout [Numeric, nil] seconds
      # @param idempotent [Boolean] whether it may be sent again when the connection ends before the answer has come
      # @return [Result]
      # @since 0.1.0
      def query(sql, *params, timeout: nil, idempotent: false) = run(sql, params, timeout, false, idempotent)

      # @return [Row, nil] the first row
      # @since 0.1.0
      def query_one(sql, *params, timeout: nil, idempotent: false) = run(sql, params, timeout, false, idempotent).first

      # @return [Object, nil] the first value of the first row
      # @since 0.1.0
      def query_value(sql, *params, timeout: nil, idempotent: false) = run(sql, params, timeout, false, idempotent).value

      # @return [Integer] how many rows were inserted, changed, deleted or returned
      # @since 0.1.0
      def execute(sql, *params, timeout: nil, idempotent: false) = run(sql, params, timeout, false, idempotent).affected

      # A statement that is used again and again: each connection parses it once, with the first use. Others are parsed twice, and
      # then known as well. Nothing is sent yet.
      #
      # @return [Prepared]
      # @since 0.1.0
      def prepare(sql) = Prepared.new(self, sql)

      # Sends several statements at once. All take effect, or none.
      #
      # @yieldparam batch [Batch] collects them
      # @return [Array<Result>] in the order of the statements
      # @since 0.1.0
      def batch(timeout: nil)
        raise UsageError, "batch needs a block" unless block_given?

        batch = Batch.new
        yield batch
        batch.sqls.empty? ? [] : run_batch(batch.sqls, batch.params, timeout)
      end

      # Gives the rows to the block as they come, on a connection of its own. While the block works no more are read, so that the
      # server waits for it. The statement is cancelled when the block is left early. A stream of a session or
      # transaction has that one's connection, which takes no other statement until the stream has ended.
      #
      # @param as [:row, :array, :hash] what the block gets
      # @yieldparam row [Row, Array, Hash{String => Object}]
      # @return [nil, Enumerator] the latter without a block
      # @since 0.1.0
      def stream(sql, *params, timeout: nil, as: :row, &block)
        form = form_of(as)
        return Holder.enumerator { |&each| stream(sql, *params, timeout:, as:, &each) } unless block

        run_stream(sql, params, timeout, false, form, &block)
        nil
      end

      # Runs several statements, with a ; between them and without parameters, as of a file: on a connection of its own, which is
      # made anew afterwards. In a session or transaction on that one's connection. Outside of a transaction all take effect or
      # none, unless they begin and commit transactions themselves. There is no COPY.
      #
      # @param sql [String]
      # @param timeout [Numeric, nil] seconds
      # @return [Array<Result>] one for each statement
      # @raise [ServerError] whose `place` has the number, the line and the text of the statement that has failed
      # @raise [TransactionRolledBack] the script has left a transaction open, on a connection of its own
      # @since 0.1.0
      def script(sql, timeout: nil)
        Script.check(sql)
        run_script(sql, timeout)
      end

      # Notifies all who listen to the channel; in a transaction when that is committed. The server merges notifications of one
      # transaction that are the same.
      #
      # May switch strands.
      #
      # @param channel [String, Symbol] up to 63 bytes; case counts
      # @param payload [String] up to 7999 bytes of UTF-8
      # @param timeout [Numeric, nil] seconds
      # @return [nil]
      # @raise [UsageError] for a name or payload that the server would refuse or cut
      # @since 0.1.0
      def notify(channel, payload = "", timeout: nil)
        params = [Notifying.channel(channel), Notifying.payload(payload)]
        run("select pg_notify($1, $2)", params, timeout, false, false)
        nil
      end

      # The same methods, each of which returns at once, with an {Evaluation}. Those of a session or transaction are to be awaited
      # inside of its block: what they ask afterwards raises {UsageError}.
      #
      # @return [Async]
      # @since 0.1.0
      def async = Async.new(self)

      private

      # The parameters of a batch.
      def encoded(params) = params.map { |each| Lane.encode(each) }

      # What was executed is executed, also where the types of its answer cannot be looked up.
      def complete(result, timeout)
        unknown = result.__send__(:unknown_types) and learn(unknown, timeout)
        result.__send__(:unknown_types) # which are known now: the result takes note of them
        warn_of_names(result, timeout)
        result
      rescue ConnectionLost => error
        raise Postgres.lost("the types of its answer could not be looked up: #{error.message}", true)
      end

      def learn(oids, timeout) = types.learn(oids) { |sql, params| look_up(sql, params, timeout) }

      # Raises what {#look_up} does.
      def warn_of_names(result, timeout)
        result.__send__(:take_tables)&.each do |name, oids|
          tables = look_up("select oid::regclass::text from unnest($1::oid[]) oid", [oids], timeout).rows.flatten
          Warnings.tell("ringspun: #{tables.join(" and ")} have a column #{name} each in this result; by name there is " \
                        "only that of #{tables.last}: name one of them with `as`")
        end
      end

      def form_of(as)
        FORMS[as] or raise UsageError, "as: expected one of #{FORMS.keys.map(&:inspect).join(", ")}, got #{as.inspect}"
      end
    end

    # The statements of a {Client#batch}.
    #
    # @since 0.1.0
    class Batch
      # @api private
      attr_reader :sqls, :params

      def initialize
        @sqls = []
        @params = []
      end

      # @param (see Client#query)
      # @return [self]
      # @since 0.1.0
      def query(sql, *params)
        @sqls << sql
        @params << params
        self
      end
      alias execute query
    end

    # A statement of {Client#prepare}.
    #
    # @since 0.1.0
    class Prepared
      # @return [String]
      # @since 0.1.0
      attr_reader :sql

      # @api private
      def initialize(client, sql)
        Lane.check(sql, [])
        @client = client
        @sql = sql.dup.freeze
      end

      # As {Client#query}, without the statement.
      #
      # @return [Result]
      # @since 0.1.0
      def query(*params, timeout: nil, idempotent: false) = @client.__send__(:run, @sql, params, timeout, true, idempotent)

      # @return [Row, nil] the first row
      # @since 0.1.0
      def query_one(*, **) = query(*, **).first

      # @return [Object, nil] the first value of the first row
      # @since 0.1.0
      def query_value(*, **) = query(*, **).value

      # @return [Integer] how many rows were inserted, changed, deleted or returned
      # @since 0.1.0
      def execute(*, **) = query(*, **).affected

      # As {Client#stream}, without the statement.
      #
      # @param as [:row, :array, :hash] what the block gets
      # @yieldparam row [Row, Array, Hash{String => Object}]
      # @return [nil, Enumerator] the latter without a block
      # @since 0.1.0
      def stream(*params, timeout: nil, as: :row, &block)
        form = @client.__send__(:form_of, as)
        return Holder.enumerator { |&each| stream(*params, timeout:, as:, &each) } unless block

        @client.__send__(:run_stream, @sql, params, timeout, true, form, &block)
        nil
      end

      # The same methods, each of which returns at once, with an {Evaluation}.
      #
      # @return [AsyncPrepared]
      # @since 0.1.0
      def async = AsyncPrepared.new(self)
    end

    # What {Async} returns. An error is reported as that of a strand, when nobody has awaited it a second later.
    #
    # @api private
    class Answer < Evaluation
      # @return [Object] of the block
      def fill
        yield
      rescue StandardError => error
        @failed = Machine.current.spin { raise error unless @read }
        raise
      end

      private

      # The runtime calls it, in whatever way the error is got.
      def error_read
        @read = true
        @failed.error if @failed && Machine.current? && @failed.machine.equal?(Machine.current)
      end
    end

    # Leaves the report to {Answer}.
    class Asking < ConcurrentProc
      self.error_log_output = nil
    end
    private_constant :Answer, :Asking

    # Defines methods which begin those of another object, and return an {Evaluation} each.
    #
    # @api private
    module Beginning
      def begins(*names)
        names.each do |name|
          define_method(name) do |*arguments, **options, &block|
            Asking.new(Answer) { Answer.current.fill { @client.__send__(name, *arguments, **options, &block) } }.call_detached
          end
        end
      end

      # Of those that have a connection of their own.
      def begins_with_own(*names)
        names.each do |name|
          define_method(name) do |*arguments, **options, &block|
            places = caller_locations
            call = -> { Holder.made_at(places) { @client.__send__(name, *arguments, **options, &block) } }
            Asking.new(Answer) { Answer.current.fill(&call) }.call_detached
          end
        end
      end
    end
    private_constant :Beginning

    # The methods of a {Client}, each of which begins and returns an {Evaluation}.
    #
    # @since 0.1.0
    class Async
      extend Beginning

      # @api private
      def initialize(client)
        @client = client
      end

      begins :query, :query_one, :query_value, :execute, :batch
      begins_with_own :stream, :script, :transaction, :session, :copy_in, :copy_out, :insert_many

      # A statement whose methods return an {Evaluation} each. See {Client#prepare}.
      #
      # @return [AsyncPrepared]
      # @since 0.1.0
      def prepare(sql) = @client.prepare(sql).async
    end

    # The methods of a {Prepared}, each of which begins and returns an {Evaluation}.
    #
    # @since 0.1.0
    class AsyncPrepared
      extend Beginning

      # @api private
      def initialize(prepared)
        @client = prepared
      end

      begins :query, :query_one, :query_value, :execute
      begins_with_own :stream

      # @return [String]
      # @since 0.1.0
      def sql = @client.sql
    end
  end
end
