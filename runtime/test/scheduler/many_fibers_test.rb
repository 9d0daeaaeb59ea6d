# frozen_string_literal: true

require "test_helper"
require "support/seeds"

# The hooks that are given a fiber find its strand among many.
class ManyFibersTest < Minitest::Test
  Hit = Class.new(StandardError)

  # A strand that waits in a hook, in its own fiber or in that of an Enumerator, and answers the number that it is interrupted by.
  Waiting = Struct.new(:strand, :fiber, :home) do
    def self.spin(machine, reader, inner:)
      waiting = new
      wait = lambda do
        waiting.fiber = Fiber.current
        reader.wait_readable
      rescue Hit => error
        Integer(error.message)
      end
      waiting.strand = machine.spin do
        waiting.home = Fiber.current
        inner ? Enumerator.new { |all| all << wait.call }.next : wait.call
      end
      machine.yield
      waiting
    end
  end

  def hook = Fiber.scheduler

  def in_run
    reader, writer = IO.pipe
    Ringspun.run { |machine| yield machine, reader }
  ensure
    [reader, writer].each(&:close)
  end

  def test_each_of_random_strands_is_found
    Seeds.of_the_day(3).each do |seed|
      random = Random.new(seed)
      in_run do |machine, reader|
        waiting = []
        400.times do |number|
          if random.rand(5) < 3 || waiting.empty?
            waiting << Waiting.spin(machine, reader, inner: random.rand(4).zero?)
          else
            one = waiting.delete_at(random.rand(waiting.size))
            assert_equal true, hook.fiber_interrupt(one.fiber, Hit.new(number.to_s)), "seed #{seed}"
            assert_equal number, one.strand.await
            assert_equal false, hook.fiber_interrupt(one.fiber, Hit.new("late")) unless waiting.any? { _1.fiber == one.fiber }
          end
        end
        waiting.each { |one| machine.terminate(one.strand) }
      end
    end
  end

  # Strands that were not there at the first question, enough of them for the table to be given up and made again.
  def test_those_that_began_after_the_first_question
    in_run do |machine, reader|
      first = Waiting.spin(machine, reader, inner: false)
      assert hook.fiber_interrupt(first.fiber, Hit.new("1"))
      rest = Array.new(200) { |at| Waiting.spin(machine, reader, inner: at.odd?) }
      500.times { machine.spin {}.await }
      rest.each_with_index { |one, at| assert hook.fiber_interrupt(one.fiber, Hit.new(at.to_s)) }
      assert_equal [1, *0...200], [first, *rest].map { |one| one.strand.await }
    end
  end

  # A fiber that runs one strand after the other stands for the present one.
  def test_a_fiber_that_is_used_again
    in_run do |machine, reader|
      fibers = Array.new(100) do |number|
        one = Waiting.spin(machine, reader, inner: false)
        assert hook.fiber_interrupt(one.fiber, Hit.new(number.to_s))
        assert_equal number, one.strand.await
        one.fiber
      end
      assert_operator fibers.uniq.size, :<, 100
      refute hook.fiber_interrupt(fibers.last, Hit.new("late"))
      refute hook.fiber_interrupt(Fiber.new {}, Hit.new("of nobody"))
    end
  end

  def test_a_fiber_that_its_strand_has_left
    in_run do |machine, reader|
      inner = outer = nil
      strand = machine.spin do
        outer = Fiber.current
        generator = Enumerator.new do |all|
          inner = Fiber.current
          reader.wait_readable
        rescue Hit => error
          all << error.message
        end
        [generator.next, (reader.wait_readable rescue $!.message)]
      end
      machine.yield
      assert hook.fiber_interrupt(inner, Hit.new("inner"))
      machine.yield
      refute hook.fiber_interrupt(inner, Hit.new("left"))
      assert hook.fiber_interrupt(outer, Hit.new("outer"))
      assert_equal %w[inner outer], strand.await
    end
  end

  def test_in_a_forked_child
    in_run do |machine, reader|
      before = Waiting.spin(machine, reader, inner: false)
      refute hook.fiber_interrupt(Fiber.new {}, Hit.new("of nobody"))
      _, status = Process.wait2(fork do
        refute hook.fiber_interrupt(before.fiber, Hit.new("of the parent"))
        inside = Waiting.spin(machine, reader, inner: true)
        assert hook.fiber_interrupt(inside.fiber, Hit.new("7"))
        exit!(inside.strand.await == 7)
      rescue Exception
        exit!(false)
      end)
      assert_predicate status, :success?
      assert hook.fiber_interrupt(before.fiber, Hit.new("8"))
      assert_equal 8, before.strand.await
    end
  end
end
