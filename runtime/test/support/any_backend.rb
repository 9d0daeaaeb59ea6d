# frozen_string_literal: true

# Included by the classes of tests to which it is all the same which backend their process takes: that are on simulated machines,
# or about the house. RINGSPUN_BACKEND_ONLY=1 leaves them out, where another process runs them.
module AnyBackend
  LEFT_OUT = ENV["RINGSPUN_BACKEND_ONLY"] == "1"

  def self.included(test_class)
    test_class.extend(Nothing) if LEFT_OUT
  end

  module Nothing
    def runnable_methods = []
  end
end
