# frozen_string_literal: true

module Ringspun
  VERSION = "0.1.0"
end
