# frozen_string_literal: true

# Every Ruby test of the runtime starts from here. Around each test: nothing may be left over (descriptors, strands,
# ops in flight), a skip must be a known one, and a test that hangs ends the process with all backtraces.

require "minitest/autorun"

# Before ringspun, because it forks: the watching process must not hold a machine's descriptors.
require_relative "support/gc_stress"
require_relative "support/watchdog"

require "ringspun"

require_relative "support/any_backend"
require_relative "support/children"
require_relative "support/leaks"
require_relative "support/skips"

class Minitest::Test
  include Children
  include Leaks

  # Prepended, because they stand between Minitest and every test, whatever a test class defines.
  prepend GCStress
  prepend Skips
  prepend Watchdog
end
