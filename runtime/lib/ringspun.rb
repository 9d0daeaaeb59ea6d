# frozen_string_literal: true

require_relative "ringspun/version"

# Fibers, spun on a ring: strands, scopes and synchronisation on a C engine.
module Ringspun
  # A checkout builds one extension per Ruby beside each other; an installed gem has just its own.
  built = File.join(__dir__, "ringspun", RUBY_VERSION[/\d+\.\d+/], "native.so")
  require File.exist?(built) ? built : "ringspun/native"
end

require_relative "ringspun/errors"
require_relative "ringspun/machine"
require_relative "ringspun/run"
require_relative "ringspun/simulation"
