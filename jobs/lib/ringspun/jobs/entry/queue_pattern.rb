# frozen_string_literal: true

module Ringspun
  module Jobs
    # What a worker may be told in place of the name of a queue: `*` is all queues, `mail_*` those whose names begin so.
    #
    # @api private
    module QueuePattern
      class << self
        # @param name [String]
        # @return [Boolean] whether it is one, and no name
        def ===(name) = name.end_with?("*")

        # @param pattern [String]
        # @param queue [String]
        # @return [Boolean]
        def match?(pattern, queue) = queue.start_with?(pattern.chomp("*"))
      end
    end
    private_constant :QueuePattern
  end
end
