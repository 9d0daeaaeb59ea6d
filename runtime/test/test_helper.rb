# frozen_string_literal: true

# Every Ruby test of the runtime starts from here. Around each test: nothing may be left over (descriptors, strands,
# ops in flight), and a skip must be a known one.

require "minitest/autorun"

require "ringspun"

require_relative "support/any_backend"
require_relative "support/children"
require_relative "support/gc_stress"
require_relative "support/held_up"
require_relative "support/leaks"
require_relative "support/skips"
require_relative "support/supervised"

class Minitest::Test
  include Children
  include Leaks

  # Prepended, because they stand between Minitest and every test, whatever a test class defines.
  prepend HeldUp
  prepend GCStress
  prepend Skips
end
