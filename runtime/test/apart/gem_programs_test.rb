# frozen_string_literal: true

require "test_helper"
require "support/seeds"
require "random/gem_programs"

# `require "concurrently"` beside the gem of that name: random programs log the same with both.
class GemProgramsTest < Minitest::Test
  PROGRAMS = 150

  def setup = GC.stress = false

  def virtual? = false

  def test_random_programs
    found = []
    GemPrograms.open do |programs|
      Seeds.of_the_day(PROGRAMS).each do |seed|
        program = GemPrograms.draw(seed, virtual: virtual?)
        next unless programs.difference(program)

        found << "RINGSPUN_SEED=#{seed} bin/test runtime/test/apart/gem_programs_test.rb -n /#{self.class.name}/\n" \
                 "#{programs.explain(program)}"
        break
      end
    end
    assert_empty found, found.first
  end
end

# The same without IO, where time is virtual.
class GemProgramsInVirtualTimeTest < GemProgramsTest
  include AnyBackend

  def virtual? = true

  def test_a_difference_is_found
    steps = [[0, "call_nonblock", 1, true], [0, "raise", "broken"], [1, "put", "key", 1], [1, "wait", 1]]
    program = GemPrograms::Program.new(seed: 0, virtual: true, steps:)
    GemPrograms.open do |programs|
      assert_nil programs.difference(program)
      programs.players.last.define_singleton_method(:play) { |each| super(each.with(steps: each.steps - [[1, "wait", 1]])) }
      assert_equal [[0, "call_nonblock", 1, true], [1, "wait", 1]].map { |step| "  #{step.inspect}\n" }.join,
                   programs.explain(program)[/\A.*(?=what the gem)/m]
    end
  end
end
