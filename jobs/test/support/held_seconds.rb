# frozen_string_literal: true

require "ringspun/jobs"

# How long a job in a child of the quarantine may hold the thread beside others, as a test has it.
module HeldSeconds
  LIMITS = Ringspun::Jobs::Quarantine.const_get(:GroupProcess)

  # @param seconds [Float] for the children that the block makes
  def self.set(seconds)
    before = LIMITS.__send__(:remove_const, :HELD_SECONDS)
    LIMITS.const_set(:HELD_SECONDS, seconds)
    yield
  ensure
    LIMITS.__send__(:remove_const, :HELD_SECONDS)
    LIMITS.const_set(:HELD_SECONDS, before)
  end
end
