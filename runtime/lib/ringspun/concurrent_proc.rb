# frozen_string_literal: true

module Ringspun
  # A proc whose runs can wait for each other: each of its calls says where it runs and who waits for it.
  #
  # It is a Proc in all other respects. `yield` and `&` call what it was made of, without an evaluation.
  class ConcurrentProc
    # What is called for an event; {#cancel} takes it back.
    class Handler
      # @api private
      def initialize(handlers, block)
        @handlers = handlers
        @block = block
        handlers << self
      end

      # It is not called any more.
      #
      # @return [Handler] self
      # @since 0.1.0
      def cancel
        @handlers.delete(self)
        self
      end

      # @api private
      def call(concurrent_proc, *arguments) = concurrent_proc.instance_exec(*arguments, &@block)
    end

    # Handlers of a proc, and, for all that are made of it, of a class.
    module Handlers
      # Has the block called, as if it were a method of the proc, whenever that event is triggered. A run that ends by an error
      # triggers :error, with the error: first for the class, then for the proc.
      #
      # @param event [Symbol]
      # @yieldparam error [Exception]
      # @return [Handler]
      # @raise [UsageError] without a block
      # @since 0.1.0
      def on(event, &block)
        raise UsageError, "on(#{event.inspect}) needs a block" unless block

        Handler.new((@handlers ||= {})[event] ||= [], block)
      end

      # @api private
      def handlers(event) = @handlers ? @handlers.fetch(event, []).dup : []
    end

    include Handlers
    extend Handlers

    # @param evaluation_class [Class] of the evaluations of its runs: Evaluation, or a subclass whose `initialize` takes nothing
    # @raise [UsageError] for any other class
    # @since 0.1.0
    def initialize(evaluation_class = nil)
      self.evaluation_class = evaluation_class if evaluation_class
    end

    # Calls the handlers of that event.
    #
    # @param event [Symbol]
    # @param arguments [Array<Object>] what they are given
    # @return [Boolean] whether there was one
    # @since 0.1.0
    def trigger(event, *arguments)
      called = self.class.all_handlers(event) + handlers(event)
      called.each { |handler| handler.call(self, *arguments) }
      !called.empty?
    end

    class << self
      # @yield what it is made of
      # @return [ConcurrentProc]
      # @raise [UsageError] without a block
      # @since 0.1.0
      def new(evaluation_class = nil, &block)
        raise UsageError, "a concurrent proc needs a block" unless block

        super
      end

      # Where the errors that end runs are written to: an IO, a Logger, or nil for nowhere; $stderr unless told otherwise.
      #
      # @param output [IO, Logger, nil, false]
      # @raise [UsageError] for anything else
      # @since 0.1.0
      def error_log_output=(output)
        write = writer_to(output)
        @error_log&.cancel
        @error_log = write && on(:error) { |error| write.call(ConcurrentProc.message_of(self, error)) }
      end

      # @api private
      def message_of(concurrent_proc, error)
        place = concurrent_proc.source_location&.join(":") || "unknown"
        "Concurrent proc at #{place} ended with #{error.full_message(highlight: false)}"
      end

      # @return [Class] of the evaluations of its runs, where none was asked for
      # @api private
      def evaluation_class = Evaluation

      # @api private
      def all_handlers(event)
        above = superclass.respond_to?(:all_handlers) ? superclass.all_handlers(event) : []
        above + handlers(event)
      end

      private

      def writer_to(output)
        if !output then nil
        elsif output.respond_to?(:error) then ->(message) { output.error(message) }
        elsif output.respond_to?(:write) then ->(message) { output.write(message) }
        else
          raise UsageError, "error_log_output: expected an IO, a Logger, nil or false, got #{output.inspect}"
        end
      end
    end

    # Whatever it is then: a program may have put another in its place.
    self.error_log_output = Object.new.tap { |stderr| def stderr.write(message) = $stderr.write(message) }
  end

  class << self
    # @param evaluation_class [Class] of the evaluations of its runs: Evaluation, or a subclass whose `initialize` takes nothing
    # @return [ConcurrentProc]
    # @raise [UsageError] without a block
    # @since 0.1.0
    def concurrent_proc(evaluation_class = nil, &block) = ConcurrentProc.new(evaluation_class, &block)

    # Has the block run when the others that are ready have had their turn. See {ConcurrentProc#call_detached}.
    #
    # @return [Evaluation]
    # @raise [UsageError] without a block
    # @since 0.1.0
    def concurrently(*, **, &block) = ConcurrentProc.new(&block).call_detached(*, **)
  end
end
