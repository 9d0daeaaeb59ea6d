# frozen_string_literal: true

module Ringspun
  # A proc whose runs can wait for each other. Its call methods choose where a run takes place and whether the caller waits.
  #
  # It is a Proc in all other respects. `yield` and `&` call its block without an evaluation.
  class ConcurrentProc
    # A handler of events, until {#cancel}.
    class Handler
      # @api private
      def initialize(lists, of_class, block)
        @lists = lists
        @of_class = of_class
        @cancelled = false
        @block = block
        lists.each { |list| list << self }
      end

      # Removes the handler, also from copies of the proc.
      #
      # @return [Handler] self
      # @since 0.1.0
      def cancel
        @cancelled = true
        @lists.each { |list| list.delete(self) }
        self
      end

      # @api private
      def cancelled? = @cancelled

      # @api private
      def call(concurrent_proc, *arguments)
        @of_class ? concurrent_proc.instance_exec(*arguments, &@block) : @block.call(*arguments)
      end
    end

    # Handlers of a proc; or of a class, for all its procs.
    module Handlers
      # Calls the block whenever one of the events is triggered. A run that ends with an error triggers :error, with the error:
      # first for the class, then for the proc. In a handler of a class, `self` is the proc.
      #
      # @param events [Array<Symbol>]
      # @yieldparam error [Exception]
      # @return [Handler]
      # @raise [UsageError] without a block
      # @since 0.1.0
      def on(*events, &block)
        raise UsageError, "on(#{events.map(&:inspect).join(", ")}) needs a block" unless block

        @handlers ||= {}
        Handler.new(events.map { |event| @handlers[event] ||= [] }, is_a?(Class), block)
      end

      private

      def handlers(event) = @handlers ? @handlers.fetch(event, []).reject(&:cancelled?) : []

      # A copy has the same handlers, in lists of its own.
      def initialize_copy(original)
        super
        @handlers = @handlers&.transform_values(&:dup)
      end
    end

    include Handlers
    extend Handlers

    # @param evaluation_class [Class] the class of its evaluations: Evaluation, or a subclass whose `initialize` takes no
    #   arguments
    # @raise [UsageError] for any other class
    # @since 0.1.0
    def initialize(evaluation_class = nil)
      self.evaluation_class = evaluation_class if evaluation_class
    end

    # Calls the handlers of that event.
    #
    # @param event [Symbol]
    # @param arguments [Array<Object>] the arguments of the handlers
    # @return [Boolean] whether there was a handler
    # @since 0.1.0
    def trigger(event, *arguments)
      called = self.class.__send__(:all_handlers, event) + handlers(event)
      called.each { |handler| handler.call(self, *arguments) }
      !called.empty?
    end

    class << self
      # @yield the code of the proc
      # @return [ConcurrentProc]
      # @raise [UsageError] without a block
      # @since 0.1.0
      def new(evaluation_class = nil, &block)
        raise UsageError, "a concurrent proc needs a block" unless block

        super
      end

      # Sets the log of errors that end runs: an IO, a Logger, or nil for none; $stderr by default. On a subclass, for its procs.
      #
      # @param output [IO, Logger, nil, false]
      # @raise [UsageError] for anything else
      # @since 0.1.0
      def error_log_output=(output)
        @error_log = output ? [writer_to(output)] : []
      end

      # The log message for an error. A subclass may override it.
      #
      # @param concurrent_proc [ConcurrentProc]
      # @param error [Exception]
      # @return [String]
      # @since 0.1.0
      def default_error_log_message(concurrent_proc, error)
        place = concurrent_proc.source_location&.first(2)&.join(":") || "unknown"
        "Concurrent proc at #{place} ended with #{error.full_message(highlight: false)}"
      end

      private

      # The class of evaluations by default.
      def evaluation_class = Evaluation

      # The handlers for that event: the error log, and then those of the classes, the superclass first.
      def all_handlers(event) = (event == :error ? error_log : []) + inherited_handlers(event)

      def error_log = @error_log || superclass.__send__(:error_log)

      def inherited_handlers(event)
        above = equal?(ConcurrentProc) ? [] : superclass.__send__(:inherited_handlers, event)
        above + handlers(event)
      end

      def writer_to(output)
        verb = %i[error puts write].find { |name| output.respond_to?(name) }
        raise UsageError, "error_log_output: expected an IO, a Logger, nil or false, got #{output.inspect}" unless verb

        ->(failed, error) { output.public_send(verb, failed.class.default_error_log_message(failed, error)) }
      end
    end

    # Looks up $stderr at each error, because the program may replace it.
    self.error_log_output = Object.new.tap { |stderr| def stderr.puts(message) = $stderr.puts(message) }
  end

  class << self
    # @param evaluation_class [Class] the class of its evaluations: Evaluation, or a subclass whose `initialize` takes no
    #   arguments
    # @yield the code of the proc
    # @return [ConcurrentProc]
    # @raise [UsageError] without a block
    # @since 0.1.0
    def concurrent_proc(evaluation_class = nil, &block) = ConcurrentProc.new(evaluation_class, &block)

    # Starts a run of the block, which begins after the strands that are ready have had their turn. See
    # {ConcurrentProc#call_detached}.
    #
    # @return [Evaluation]
    # @raise [UsageError] without a block
    # @since 0.1.0
    def concurrently(*, **, &block) = ConcurrentProc.new(&block).call_detached(*, **)
  end
end
