# frozen_string_literal: true

# pass: collections

require "test_helper"
require "support/scheduled"

# The compiler of Ruby, where each of its allocations is a collection.
class SchedulerCompilationTest < Minitest::Test
  include Scheduled

  def test_compilation_under_gc_stress
    assert_both(RubyVM::InstructionSequence) do
      stress, GC.stress = GC.stress, true
      RubyVM::InstructionSequence.compile_file(File::NULL).class
    ensure
      GC.stress = stress
    end
  end
end
