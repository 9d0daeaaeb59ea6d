# frozen_string_literal: true

module Concurrently
  # Logs where the evaluations of {Concurrently::Proc}s begin, wait, resume and end, in this order:
  #
  #     .---- BEGIN 2s main.rb:4
  #     '-> SUSPEND 2s main.rb:6:in `block in <main>'
  #     |  SCHEDULE 2s from main.rb:12:in `block in <main>'
  #     .--- RESUME 2s main.rb:6:in `block in <main>'
  #     '-----> END 2s main.rb:4
  #
  # The last line of an evaluation is END, CANCEL if it was cancelled, or ERROR. Debug costs nothing until it is enabled.
  module Debug
    LIBRARY = "#{File.expand_path("..", __dir__)}/".freeze
    private_constant :LIBRARY

    @begun = {}.compare_by_identity # logged evaluation => source location of its proc
    @waiters = {}.compare_by_identity # evaluation => the evaluations that wait for its result
    @callers = {}.compare_by_identity # evaluation that has not waited yet => the evaluation that called it, and where

    class << self
      # Logs from now on, at the level `debug`.
      #
      # @param logger [Logger, nil] nil: stops to log
      # @param filter [Array<String>, false] parts of paths: the first line of a backtrace that contains one is logged; an
      #   evaluation is logged only if the source location of its proc contains one
      # @return [true]
      # @since 0.1.0
      def enable(logger, filter = false)
        @logger = logger
        @filter = filter
        install unless @installed
        Proc.__send__(:trace=, logger ? Proc : nil)
        true
      end

      # @api private
      def traced(evaluation, place)
        @callers[evaluation] = @calls if @calls
        @calls = nil
        log_begin(evaluation, place)
        value = yield
      rescue Evaluation::Cancelled
        log_end("'--> CANCEL", evaluation)
        raise
      rescue Exception
        log_end("'---> ERROR", evaluation)
        raise
      else
        log_end("'-----> END", evaluation)
        value
      ensure
        @callers.delete(evaluation)
      end

      # Logs a wait of the current evaluation, around the block.
      #
      # @api private
      def suspended(places)
        evaluation = Evaluation.current
        log_if_begun("'-> SUSPEND", evaluation, places)
        let_caller_wait(*@callers.delete(evaluation))
        yield
      ensure
        log_if_begun(".--- RESUME", evaluation, places)
      end

      # {suspended}, for Proc#call.
      #
      # @api private
      def calls(places, &)
        @calls = [Evaluation.current, places]
        suspended(places, &)
      end

      # {suspended}, while it waits for the result of one of the evaluations.
      #
      # @api private
      def waits_for(evaluations, places, &)
        waiter = Evaluation.current
        evaluations.each { |evaluation| (@waiters[evaluation] ||= {}.compare_by_identity)[waiter] = true }
        suspended(places, &)
      ensure
        evaluations.each { |evaluation| @waiters[evaluation]&.delete(waiter) }
        @waiters.delete_if { |_, waiters| waiters.empty? }
      end

      # @api private
      def concludes(evaluation, places, &)
        evaluation.equal?(Evaluation.current) ? yield : suspended(places, &)
        @waiters.fetch(evaluation, {}).each_key { |waiter| log_schedule(waiter, places) }
      end

      # @api private
      def log_schedule(evaluation, places)
        place = @logger && places.find { |each| shown?(each) }
        @logger.debug("#{@begun.key?(Evaluation.current) ? "|" : " "}  SCHEDULE #{id_of(evaluation)} from #{place}") if place
      end

      private

      def install
        @installed = true
        Proc.prepend(Runs)
        KernelMethods.prepend(Waits)
        IOMethods.prepend(IOWaits)
        Evaluation.prepend(Awaits)
      end

      # In the gem, Proc#call returns to its caller at the first wait of the proc, and the caller then waits for the result.
      def let_caller_wait(caller = nil, places = nil)
        return unless caller

        log_if_begun(".--- RESUME", caller, places)
        log_if_begun("'-> SUSPEND", caller, places)
      end

      def log_begin(evaluation, place)
        return unless @logger && shown?(place)

        @begun[evaluation] = place
        @logger.debug(".---- BEGIN #{id_of(evaluation)} #{place}")
      end

      def log_if_begun(what, evaluation, places)
        return unless @logger && @begun.key?(evaluation)

        place = places.find { |each| shown?(each) }
        @logger.debug("#{what} #{id_of(evaluation)} #{place}") if place
      end

      def log_end(what, evaluation)
        place = @begun.delete(evaluation)
        @logger.debug("#{what} #{id_of(evaluation)} #{place}") if @logger && place
      end

      def id_of(evaluation) = evaluation.__id__.to_s(36)

      def shown?(place) = @filter ? @filter.any? { |part| place.include?(part) } : !place.start_with?(LIBRARY)
    end

    # Prepended to Proc: logs runs.
    module Runs
      CALL = ::Proc.instance_method(:call)
      private_constant :CALL

      def call(...) = Debug.calls(caller) { super }
      def [](...) = Debug.calls(caller) { super }
      def call_nonblock(...) = Debug.suspended(caller) { super }

      def traced_call(...)
        Debug.traced(Evaluation.current, (source_location&.first(2) || ["unknown"]).join(":")) { CALL.bind_call(self, ...) }
      end
    end

    # Prepended to KernelMethods: logs waits for a time, for {Evaluation#resume!}, and for the first of several evaluations.
    module Waits
      private

      def wait(...) = Debug.suspended(caller) { super }
      def await_resume!(...) = Debug.suspended(caller) { super }

      def await_fastest(*arguments)
        evaluations = arguments.last.is_a?(Hash) ? arguments[0...-1] : arguments
        waits = evaluations.all?(Evaluation) && evaluations.none?(&:concluded?)
        waits ? Debug.waits_for(evaluations, caller) { super } : super
      end
    end

    # Prepended to IOMethods: logs waits for an IO. As in the gem, each of them switches strands, as the log says.
    module IOWaits
      def await_readable(limit = nil) = Debug.suspended(caller) { super(**(limit || {}), poll_first: false) }
      def await_writable(limit = nil) = Debug.suspended(caller) { super(**(limit || {}), poll_first: false) }
    end

    # Prepended to Evaluation: logs waits for a result, and the calls that end waits.
    module Awaits
      def await_result(*limit)
        return super if concluded?

        result, = Debug.waits_for([self], caller) { super(*limit) { |value| [value] } }
        result = yield result if block_given?
        result.is_a?(Exception) ? raise(result) : result
      end

      def conclude_to(result)
        return super if concluded?

        Debug.concludes(self, caller) { super }
        :concluded
      end

      def resume!(*)
        Debug.log_schedule(self, caller)
        super
      end
    end
    private_constant :Runs, :Waits, :IOWaits, :Awaits
  end
end
