# frozen_string_literal: true

# RINGSPUN_GC_STRESS=1: a collection at every allocation, and compaction, so that a reference which the C code forgot
# to mark or to pin is found by the test that uses it.
module GCStress
  WANTED = ENV["RINGSPUN_GC_STRESS"] == "1"
  GC.auto_compact = true if WANTED && GC.respond_to?(:auto_compact=)

  def before_setup
    super
    GC.stress = WANTED
  end

  def after_teardown
    GC.stress = false
    super
  end
end
