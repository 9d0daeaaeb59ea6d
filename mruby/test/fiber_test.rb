# frozen_string_literal: true

# What a program does with fibers of its own, and with those that strands run on: it works, or is refused.
class FiberTest < Minitest::Test
  include Strands

  def test_a_strand_cannot_yield_its_own_fiber
    assert_raises(FiberError) { in_strand { Fiber.yield } }
    assert_raises(FiberError) { Fiber.yield }
    assert_goes_on
  end

  def test_the_fiber_of_a_strand_that_waits_cannot_be_resumed
    in_scope do |scope|
      fiber = nil
      strand = scope.spin { (fiber = Fiber.current) and wait(0.001) and :value }
      machine.yield
      assert_raises(FiberError) { fiber.resume }
      assert_raises(FiberError) { fiber.transfer }
      assert_equal :value, strand.await
    end
  end

  def test_the_fiber_of_the_root_cannot_be_resumed
    root = Fiber.current
    in_scope do |scope|
      strand = scope.spin do
        assert_raises(FiberError) { root.resume }
        assert_raises(FiberError) { root.transfer }
        :value
      end
      assert_equal :value, strand.await
    end
  end

  def test_a_generator_that_waits_cannot_be_resumed
    in_scope do |scope|
      generator = Fiber.new { wait(0.001) and :value }
      strand = scope.spin { generator.resume }
      machine.yield
      assert_raises(FiberError) { generator.resume }
      assert_raises(FiberError) { generator.transfer }
      assert_equal :value, strand.await
    end
  end

  def test_the_fiber_of_a_strand_that_has_ended_cannot_be_resumed
    fiber = in_strand { Fiber.current }
    assert_raises(FiberError) { fiber.resume }
    assert_raises(FiberError) { fiber.transfer }
    assert_goes_on
  end

  def test_a_generator_goes_on_in_another_strand
    generator = Fiber.new { 3.times { |step| wait(0.001) and Fiber.yield(step) } }
    assert_equal [0, 1, 2], (0...3).map { in_strand { generator.resume } }
  end

  def test_fibers_that_transfer_may_not_wait
    in_strand do
      mine = Fiber.current
      error = nil
      other = Fiber.new do
        error = assert_raises(Ringspun::UsageError) { wait(0) }
        mine.transfer
      end
      other.transfer
      assert_includes error.message, "Fiber#transfer"
      assert_same true, wait(0)
    end
    assert_goes_on
  end

  def test_a_scope_in_a_generator_governs_what_is_inside
    generator = Fiber.new { machine.timeout(0.001) { Fiber.yield or wait(60) } }
    generator.resume
    assert_same true, wait(0.01) # its deadline is not the root's
    assert_raises(Ringspun::TimeoutError) { generator.resume }
    assert_goes_on
  end

  def test_a_generator_is_dropped_in_the_middle_of_a_scope
    ended = []
    in_scope do |scope|
      2.times { scope.spin { drop_generator(ended) } }
    end
    GC.start
    machine.yield
    assert_goes_on
    assert_equal 2, ended.size
  end

  def test_the_stack_of_a_strand_is_too_deep
    3.times do # for the fiber runs another one afterwards
      assert_raises(SystemStackError) { in_strand { too_deep } }
      assert_equal 10, in_strand { (0...10).map { |one| wait(0) and one }.size }
    end
    assert_goes_on
  end

  def test_a_wait_at_the_end_of_a_deep_stack
    assert_same true, in_strand { deep(50) { wait(0.001) } }
  end

  def test_jumps_out_of_a_strand
    [-> { in_scope { |scope| scope.spin { break } } }, -> { returns_from_strand }].each do |block|
      assert_raises(LocalJumpError) { block.call }
      assert_goes_on
    end
    assert_equal :next, in_strand { next :next }
  end

  private

  def in_strand(&block) = in_scope { |scope| scope.spin(&block).await }
  def too_deep = too_deep + 1
  def deep(count, &block) = count == 0 ? block.call : deep(count - 1, &block)

  def returns_from_strand
    in_scope { |scope| scope.spin { return 1 } }
  end

  def drop_generator(ended)
    begin_generator(ended)
    GC.start
    wait(0.01)
    GC.start
  end

  def begin_generator(ended)
    Fiber.new do
      Ringspun.run do |machine|
        machine.scope do |scope|
          scope.spin { wait(0.001) and ended << :ended }
          Fiber.yield
        end
      end
    end.resume
  end

  def assert_goes_on
    assert_equal [0, 1], (in_scope { |scope| Array.new(2) { |one| scope.spin { wait(0.001) and one } }.map(&:await) })
  end
end
