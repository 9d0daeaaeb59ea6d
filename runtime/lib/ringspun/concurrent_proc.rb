# frozen_string_literal: true

module Ringspun
  # A proc whose runs can wait for each other: each of its calls says where it runs and who waits for it.
  #
  # It is a Proc in all other respects. `yield` and `&` call what it was made of, without an evaluation.
  class ConcurrentProc
    # @param evaluation_class [Class] of the evaluations of its runs: Evaluation, or a subclass whose `initialize` takes nothing
    # @raise [UsageError] for any other class
    # @since 0.1.0
    def initialize(evaluation_class = nil)
      self.evaluation_class = evaluation_class if evaluation_class
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

      # @return [Class] of the evaluations of its runs, where none was asked for
      # @api private
      def evaluation_class = Evaluation
    end
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
