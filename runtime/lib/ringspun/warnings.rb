# frozen_string_literal: true

module Ringspun
  # Warnings of what goes on all the same. Where the standard error takes nothing, as a disk that is full or a pipe whose reader
  # has ended, Kernel#warn raises in whoever had something to tell.
  #
  # @api private
  module Warnings
    # May switch strands.
    #
    # @param text [String]
    # @return [nil]
    def self.tell(text)
      warn(text)
    rescue SystemCallError, IOError
      nil # nobody is left to be told
    end
  end
  private_constant :Warnings
end
