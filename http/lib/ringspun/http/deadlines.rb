# frozen_string_literal: true

module Ringspun
  module HTTP
    # How long a request may take, until all of its answer is sent: `request_timeout:` of {HTTP.listen}.
    #
    # @api private
    class Deadlines
      # @param given [Numeric, #call] seconds, or what has them for an env
      # @raise [UsageError]
      def initialize(given)
        @given = given.respond_to?(:call) ? given : check(given)
      end

      # Runs the block in a scope with a deadline. The program has it as `env["ringspun.scope"]`: strands that it spins there end
      # with the request.
      #
      # May switch strands.
      #
      # @param env [Hash]
      # @return [Array(Integer, Hash, Exception), nil] the block's; nil, nil and an error: it did not come to its end
      def within(env)
        seconds = @given.respond_to?(:call) ? check(@given.call(env)) : @given
        return yield unless seconds

        machine = Machine.current
        due = machine.now + seconds
        left = true
        failed = machine.scope(deadline: seconds) do |scope|
          env["ringspun.scope"] = scope
          yield.tap { left = false }
        end
        left ? [nil, nil, AnswerError.new("the program has cancelled the scope of its request, and so has no answer")] : failed
      rescue Failure => error
        [nil, nil, error.is_a?(TimeoutError) && due && machine.now >= due ? late(env, seconds) : error]
      end

      private

      def late(env, seconds)
        RequestTimeoutError.new("#{env["REQUEST_METHOD"]} #{env["PATH_INFO"]} has no whole answer after #{seconds} s, " \
                                "its request_timeout")
      end

      def check(seconds) = Limits.seconds(:request_timeout, seconds, none: "a proc that has them for an env, or nil for no limit")
    end
    private_constant :Deadlines
  end
end
