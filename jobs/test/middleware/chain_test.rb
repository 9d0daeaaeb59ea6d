# frozen_string_literal: true

require "jobs_helper"

class ChainTest < Minitest::Test
  include AnyBackend

  Chain = Ringspun::Jobs::Chain

  # Notes its name on both sides of what it surrounds.
  class Noting
    def initialize(name = "?") = @name = name

    def call(notes, _job, _queue)
      notes << @name
      yield
    ensure
      notes << "/#{@name}"
    end
  end

  class Other < Noting; end
  class Third < Noting; end

  def invoked(chain)
    notes = []
    chain.invoke(notes, {}, "default") { notes << "-" }
    notes
  end

  def test_the_first_is_outermost
    assert_equal %w[a b - /b /a], invoked(Chain.new.add(Noting, "a").add(Other, "b"))
  end

  def test_an_empty_chain_only_calls_the_block
    chain = Chain.new
    assert_empty chain
    assert_equal 5, chain.invoke(1, 2, 3) { 5 }
  end

  def test_it_is_put_where_it_is_to_be
    chain = Chain.new.add(Other, "b").prepend(Noting, "a")
    chain.insert_before(Other, Third, "c")
    assert_equal [Noting, Third, Other], chain.to_a
    chain.insert_after(Noting, Other, "b")
    assert_equal [Noting, Other, Third], chain.to_a
    assert_equal [Noting, Third], chain.remove(Other).to_a
    assert_empty chain.clear
  end

  def test_none_is_in_it_twice
    chain = Chain.new.add(Noting, "a").add(Other, "b").add(Noting, "c")
    assert_equal %w[b c - /c /b], invoked(chain)
  end

  def test_one_that_does_not_yield_stops_it
    reached = false
    chain = Chain.new.add(->(*) { :stopped }).add(Noting)
    assert_equal(:stopped, chain.invoke([], {}, "q") { reached = true })
    refute reached
  end

  def test_what_is_no_class_is_used_as_it_is
    around = ->(notes, _job, _queue, &block) { [notes, block.call] }
    assert_equal([[], 7], Chain.new.add(around).invoke([], {}, "q") { 7 })
  end

  def test_a_change_meanwhile_is_for_the_next_call
    chain = Chain.new
    chain.add(Other, "b").prepend(lambda { |_notes, *, &block|
      chain.clear
      block.call
    })
    assert_equal %w[b - /b], invoked(chain)
    assert_equal %w[-], invoked(chain)
  end

  def test_what_cannot_be_is_refused
    chain = Chain.new
    assert_match(/must have a method/, assert_raises(Ringspun::Jobs::ConfigError) { chain.add(String) }.message)
    assert_match(/must have a method/, assert_raises(Ringspun::Jobs::ConfigError) { chain.add(5) }.message)
    assert_match(/for a class/, assert_raises(Ringspun::Jobs::ConfigError) { chain.add(-> {}, 1) }.message)
    error = assert_raises(Ringspun::Jobs::ConfigError) { chain.insert_before(Noting, Other) }
    assert_match(/Noting is not in the chain/, error.message)
    assert_empty chain
  end
end
