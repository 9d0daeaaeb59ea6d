# frozen_string_literal: true

module Ringspun
  module Jobs
    # Does what a strand must bring to its end also where it is cancelled, as at Ctrl-C: a wait would be refused there, and what
    # comes after it would not be done.
    #
    # @api private
    module Shielded
      # May switch strands. Threads that have no machine just call the block.
      #
      # @return [Object] the block's value
      def self.call(&) = Machine.current? ? Ringspun.shield(&) : yield
    end
    private_constant :Shielded
  end
end
