# frozen_string_literal: true

module Ringspun
  # A proc whose runs can wait for each other. Its call methods choose where a run takes place and whether the caller waits.
  class ConcurrentProc
    # A handler of events, until it is cancelled.
    class Handler
      def initialize(lists, of_class, block)
        @lists = lists
        @of_class = of_class
        @block = block
        lists.each { |list| list << self }
      end

      def cancel
        @cancelled = true
        @lists.each { |list| list.delete(self) }
        self
      end

      def cancelled? = @cancelled

      def call(concurrent_proc, *arguments)
        @of_class ? concurrent_proc.instance_exec(*arguments, &@block) : @block.call(*arguments)
      end
    end

    # Handlers of a proc; or of a class, for all its procs.
    module Handlers
      # Calls the block whenever one of the events is triggered. A run that ends with an error triggers :error, with the error:
      # first for the class, then for the proc. In a handler of a class, `self` is the proc.
      def on(*events, &block)
        raise UsageError, "on(#{events.map { |event| event.inspect }.join(", ")}) needs a block" unless block

        @handlers ||= {}
        Handler.new(events.map { |event| @handlers[event] ||= [] }, is_a?(Class), block)
      end

      def __handlers(event) = @handlers ? (@handlers[event] || []).reject { |handler| handler.cancelled? } : []

      # A copy has the same handlers, in lists of its own.
      def initialize_copy(original)
        super
        return unless (handlers = original.instance_variable_get(:@handlers))

        @handlers = {}
        handlers.each { |event, list| @handlers[event] = list.dup }
      end
    end

    include Handlers
    extend Handlers

    # A run with arguments.
    class Start
      def call = @options.empty? ? @block.call(*@arguments, &@given) : @block.call(*@arguments, **@options, &@given)
    end

    # For a run that was concluded before it began.
    NOTHING = Proc.new { nil }

    def initialize(evaluation_class = nil, &block)
      raise UsageError, "a concurrent proc needs a block" unless block

      evaluation_class ||= self.class.evaluation_class
      unless evaluation_class.is_a?(Class) && evaluation_class <= Evaluation
        raise UsageError, "expected Evaluation or a subclass of it, got #{evaluation_class.inspect}"
      end

      @evaluation_class = evaluation_class
      @block = block
    end

    # What `call` goes on with: runs the proc now, on the caller's own stack; returns its result, or raises its error.
    def __call
      evaluation = nil # set by Evaluation.current, which finds it on the stack
      begin
        result = @block.call
        returned = true
      rescue Exception => error
        result = __failed(evaluation, error)
        returned = true
      ensure
        evaluation.__leave(Evaluation.__left) if evaluation && !returned
      end
      __result(evaluation, result)
    end

    # The same with arguments.
    def __call_with(*arguments, **options, &block)
      evaluation = nil
      begin
        result = options.empty? ? @block.call(*arguments, &block) : @block.call(*arguments, **options, &block)
        returned = true
      rescue Exception => error
        result = __failed(evaluation, error)
        returned = true
      ensure
        evaluation.__leave(Evaluation.__left) if evaluation && !returned
      end
      __result(evaluation, result)
    end

    def arity = @block.arity
    def lambda? = @block.lambda?
    def parameters = @block.parameters
    def source_location = @block.source_location
    def to_proc = @block

    # Calls the handlers of that event; returns whether there was one.
    def trigger(event, *arguments)
      called = self.class.__all_handlers(event) + __handlers(event)
      called.each { |handler| handler.call(self, *arguments) }
      !called.empty?
    end

    # Errors that end a run and go no further; all others leave through the root.
    def self.__rescueable?(error)
      error.is_a?(StandardError) || error.is_a?(ScriptError) || error.is_a?(SystemStackError)
    end

    # The error of a handler does not replace the one that it handles.
    def __trigger_error(error)
      trigger(:error, error)
    rescue Cancelled
      raise
    rescue Exception => another
      Ringspun.__warn("an error handler raises #{another.inspect}")
    end

    # What a call has come to that has raised this error.
    def __failed(evaluation, error)
      rescueable = ConcurrentProc.__rescueable?(error)
      __trigger_error(error) if rescueable
      return error if evaluation.nil?
      return error if evaluation.concluded? && (rescueable || evaluation.__concluded_by?(error))

      evaluation.__leave(error.is_a?(Cancelled) ? Evaluation.__terminated : error)
      raise error
    end

    class << self
      # The class of evaluations by default.
      def evaluation_class = Evaluation

      # The log of errors that end runs: what has `error` (a logger) or `puts`; nil or false for none.
      def error_log_output=(output)
        @error_log = output ? [writer_to(output)] : []
      end

      def default_error_log_message(concurrent_proc, error)
        place = (concurrent_proc.source_location || ["unknown"])[0, 2].join(":")
        "Concurrent proc at #{place} ended with #{error.message} (#{error.class})\n#{(error.backtrace || []).join("\n")}"
      end

      def __all_handlers(event) = (event == :error ? __error_log : []) + __inherited_handlers(event)
      def __error_log = @error_log || superclass.__error_log

      def __inherited_handlers(event)
        above = equal?(ConcurrentProc) ? [] : superclass.__inherited_handlers(event)
        above + __handlers(event)
      end

      private

      def writer_to(output)
        # Every object has Kernel#puts.
        verb = [:error, :puts, :write].find { |name| output.respond_to?(name) && output.method(name).owner != Kernel }
        raise UsageError, "error_log_output: expected an IO, a logger, nil or false, got #{output.inspect}" unless verb

        Proc.new { |failed, error| output.__send__(verb, failed.class.default_error_log_message(failed, error)) }
      end
    end
  end

  # The handle to a run of a concurrent proc.
  class Evaluation
    class Error < Ringspun::Error; end
    class TimeoutError < Error; end
    Cancelled = Ringspun::Cancelled
    NOT_GIVEN = Object.new

    def self.__terminated
      TerminatedError.new("the evaluation was cancelled, with its scope or its strand, before it had a result")
    end

    # Of a call that `return` has left.
    def self.__left = TerminatedError.new("the evaluation was left before it had a result")

    def self.__timed_out(within)
      raise current.class.const_get(:TimeoutError), "evaluation timed out after #{within} second(s)"
    end

    # What `await_result` goes on with: waits until it is concluded, and returns its result; raises it if it is an exception.
    # The block's value replaces the result. When `within` seconds have passed: returns `timeout_result`, or raises a
    # TimeoutError. May switch strands.
    def __await_result(**options, &block)
      __raise_or_return(block ? block.call(__result_or_timeout(**options)) : __await_within(**options))
    end

    def __await_within(within: nil, timeout_result: NOT_GIVEN)
      result = __await(within, timeout_result)
      NOT_GIVEN.equal?(result) ? Evaluation.__timed_out(within) : result
    end

    # A timeout is given to the block like any other error, but not what cancels the caller.
    def __result_or_timeout(**options)
      __await_within(**options)
    rescue TimeoutError => error
      error
    end

    # Concludes it with a result from outside. A run that has not begun never begins. In a run that waits, Cancelled is raised,
    # and this returns :concluded when the run has unwound. An Error if it is concluded already. May switch strands.
    def conclude_to(result)
      raise self.class.const_get(:Error), "already concluded" if concluded?

      __conclude_to(result)
      :concluded
    end

    # Ends the wait of the evaluation: the call that waits returns the value. Returns :resumed at once; an Error where it does not
    # wait, or waits for what cannot be ended so.
    def resume!(value = nil)
      refused = __resume(value)
      raise self.class.const_get(:Error), refused if refused

      :resumed
    end

    def [](key) = @data && @data[key]

    def []=(key, value)
      (@data ||= {})[key] = value
    end

    def key?(key) = @data ? @data.key?(key) : false
    def keys = @data ? @data.keys : []
  end

  class Machine
    # What the run that this strand is has come to by this error.
    def __failed(error)
      concurrent_proc = __proc
      return error unless concurrent_proc
      return Evaluation.__terminated if error.is_a?(Cancelled)

      if ConcurrentProc.__rescueable?(error)
        concurrent_proc.__trigger_error(error)
      elsif !__raised_by_caller?
        __raise_in_root(error)
      end
      error
    end
  end

  module KernelMethods
    private

    # A ConcurrentProc, whose evaluations are of that class.
    def concurrent_proc(evaluation_class = nil, &block) = Ringspun::ConcurrentProc.new(evaluation_class, &block)

    # Parks the calling evaluation until Evaluation#resume! is called for it, and returns the argument of that.
    # When `within` seconds have passed: returns `timeout_result`, or raises an Evaluation::TimeoutError. May switch strands.
    def await_resume!(within: nil, timeout_result: Ringspun::Evaluation::NOT_GIVEN)
      result = Ringspun.machine.__await_resume(within, timeout_result)
      Ringspun::Evaluation.__timed_out(within) if Ringspun::Evaluation::NOT_GIVEN.equal?(result)
      result
    end

    # Waits until the first of the evaluations is concluded, and returns that evaluation. May switch strands, with the same limit.
    def await_fastest(first, second, *more, within: nil, timeout_result: Ringspun::Evaluation::NOT_GIVEN)
      all = [first, second, *more]
      other = all.find { |one| !one.is_a?(Ringspun::Evaluation) }
      raise Ringspun::UsageError, "await_fastest: expected evaluations, got #{other.inspect}" if other

      fastest = all.find { |evaluation| evaluation.concluded? }
      return fastest if fastest

      result = Ringspun.machine.__await_fastest(all, within, timeout_result)
      Ringspun::Evaluation.__timed_out(within) if Ringspun::Evaluation::NOT_GIVEN.equal?(result)
      result
    end
  end

  extend KernelMethods
  class << self
    public :concurrently, :concurrent_proc, :await_resume!, :await_fastest
  end

  # The constant of mruby-io. Names of globals are interned when a state is opened, in memory that all threads share.
  ConcurrentProc.error_log_output = Object.const_defined?(:STDERR) ? STDERR : nil
end

module Kernel
  include Ringspun::KernelMethods
end
