# frozen_string_literal: true

module Bench
  # What the command line asks for cannot be done; the message says why.
  class Invalid < StandardError; end
end
