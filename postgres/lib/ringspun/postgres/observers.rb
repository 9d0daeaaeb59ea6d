# frozen_string_literal: true

require_relative "observed_call"

module Ringspun
  module Postgres
    # Who hears of the statements of a pool: `on_statement:`, `on_notice:`, `log:`, and what {Observers.add} has added. A pool
    # that has none does nothing for it.
    #
    # They are called one after the other where the statement was asked, in its strand or thread, when the connection is free for
    # others: so a hook may wait, and ask the pool. What it asks is told to nobody. Whatever it raises is a warning, and the
    # caller gets its answer. Only what is to end the caller, as a cancellation, ends the call as well.
    #
    # @api private
    class Observers
      # In the storage of a fiber, and of those that begin in it: a hook is at work.
      MUTED = :ringspun_postgres_muted

      # Different failures of hooks that are told. Each is told once.
      TOLD_MAX = 100

      # Notices that are kept of connections that have ended.
      LATE_MAX = 10_000
      private_constant :MUTED, :TOLD_MAX, :LATE_MAX

      @added = []

      class << self
        # For pools that are made from now on.
        #
        # @param observer [#wanted?, #call] gets each {Execution}, when it wants to
        def add(observer) = @added |= [observer]

        attr_reader :added

        # @return [Observers, nil] nil: there is nobody
        # @raise [UsageError]
        def of(options, on_statement: nil, on_notice: nil, log: nil, log_slower_than: nil)
          { on_statement:, on_notice: }.each { |name, hook| check(name, hook) }
          log_slower_than &&= Postgres.seconds(:log_slower_than, log_slower_than)
          statements = [*added, on_statement, log && SlowLog.new(log, log_slower_than)].compact
          new(options.database, statements, on_notice) if on_notice || statements.any?
        end

        def check(name, hook)
          return if hook.nil? || hook.respond_to?(:call)

          raise UsageError, "#{name}: expected what answers to call, got #{hook.inspect}"
        end
      end

      def initialize(database, statements, on_notice)
        @database = database
        @statements = statements
        @on_notice = on_notice
        @late = Thread::Queue.new
        @told = {}
      end

      # Those of a connection that has ended, which nobody has taken: told with the next answer, or when the pool is closed.
      # From any thread.
      #
      # @param bodies [Array<String>] of notices
      def late(bodies)
        bodies.each { |body| @late << Notice.new(body, nil) if @late.size < LATE_MAX } if @on_notice
      end

      # Calls the hook. May switch strands.
      def tell_late
        guard(:on_notice) { @on_notice.call(@late.pop) } until @late.empty?
      end

      # The same, and notices go to another one.
      def with_notices_to(hook) = self.class.new(@database, @statements, hook)

      # @param kind [Symbol] as {Execution} has it
      # @param sqls [Array<String>] of a batch: one for each result
      # @param session [Session, nil] which asks
      # @yieldparam call [ObservedCall, nil] nil: nobody is to hear of it
      # @return [Object] of the block
      def observe(kind, sqls, session = nil)
        return yield(nil) if Fiber[MUTED]

        call = ObservedCall.new(kind, sqls, @database)
        value = yield call
      rescue Exception => error
        finish(call, session) { call.failed(error) } if call
        raise
      else
        finish(call, session) { call.returned(value) } if call
        value
      end

      private

      # @yieldreturn [Array<Execution>]
      def finish(call, session)
        executions = yield
        session&.__send__(:give_notices, call)
        tell_late
        call.notices.each { |notice| guard(:on_notice) { @on_notice.call(notice) } } if @on_notice
        executions.each { |execution| tell(execution) } if @statements.any?
      end

      # --- hooks ---

      def tell(execution)
        @statements.each do |hook|
          guard(:on_statement) { hook.call(execution) } if !hook.respond_to?(:wanted?) || hook.wanted?
        end
      end

      def guard(name)
        before = Fiber[MUTED]
        Fiber[MUTED] = true
        yield
      rescue StandardError, ScriptError => error
        report(name, error)
      ensure
        Fiber[MUTED] = before
      end

      def report(name, error)
        key = [error.class, error.backtrace&.first]
        return if @told.key?(key) || @told.size >= TOLD_MAX

        @told[key] = true
        Warnings.tell("ringspun: #{name} of a pool of Postgres has raised #{error.class}, which is told once: " \
                      "#{error.message}\n#{Array(error.backtrace).first(5).map { |line| "\t#{line}" }.join("\n")}")
      end

      # Tells a Logger of statements that took long.
      class SlowLog
        SECONDS = 1.0

        # @raise [UsageError]
        def initialize(log, seconds)
          raise UsageError, "log: expected a Logger, which answers to warn, got #{log.inspect}" unless log.respond_to?(:warn)

          @log = log
          @seconds = seconds || SECONDS
        end

        def call(execution) = execution.duration >= @seconds && @log.warn("ringspun: #{execution}")
      end
      private_constant :SlowLog
    end
    private_constant :Observers
  end
end
