# frozen_string_literal: true

require "test_helper"
require "support/strands"

# What an `on_error:` does that is no error of it: exit, an interrupt, a signal, a kill, a throw.
class EndsInHandlersTest < Minitest::Test
  include Strands

  def reported(&) = capture_io(&).last

  # What fails besides is no reason for the program to go on: not the block, nor a strand that had failed before.
  ENDS = {
    SystemExit => -> { exit 5 }, Interrupt => -> { raise Interrupt }, SignalException => -> { raise SignalException, "TERM" }
  }.freeze
  BESIDE = {
    "a run" => ->(told) { Ringspun.run(on_error: told) { machine.spin { raise "x" } && machine.yield || raise("block") } },
    "a run that goes on" => ->(told) { Ringspun.run(on_error: told) { Fiber.schedule { raise "x" } && machine.sleep } },
    "a run inside" => ->(told) {
      Ringspun.run {
        Ringspun.run(on_error: told) {
          Fiber.schedule {
            raise "x"
          } && raise("block")
        }
      }
    },
    "a scope" => ->(told) {
      Ringspun.run {
        machine.scope(on_error: told) { |scope|
          scope.spin {
            raise "x"
          } && machine.sleep
        }
      }
    },
    "a scope whose block fails" => lambda do |told|
      Ringspun.run { machine.scope(on_error: told) { |s| s.spin { raise "x" } && machine.yield || raise("block") } }
    end,
    "a scope that takes its time" => lambda do |told|
      Ringspun.run do
        machine.scope(on_error: told) do |scope|
          scope.spin { raise "x" }
          machine.sleep
        ensure
          machine.shield { 20.times { machine.yield } }
        end
      end
    end,
    "a machine" => lambda do |told|
      alone = Ringspun::Machine.new(on_error: told)
      alone.spin { raise "x" } && alone.yield || raise("block")
    ensure
      alone.close
    end
  }.freeze

  def test_what_ends_the_program_in_a_handler_beside_what_fails
    ENDS.to_a.product(BESIDE.to_a).each do |(error, act), (name, body)|
      run = -> { instance_exec(->(*) { act.call }, &body) }
      reported { on_thread { assert_instance_of(error, assert_raises(error, name, &run)) } }
    end
  end

  def test_a_kill_in_a_handler_beside_what_fails
    BESIDE.each do |name, body|
      goes_on = false
      reported do
        Thread.new do
          instance_exec(->(*) { Thread.current.kill }, &body)
          goes_on = true
        ensure
          Ringspun::Machine.current.close if Ringspun::Machine.current?
        end.join
      end
      refute goes_on, name
    end
  end

  def test_a_throw_in_a_handler_at_the_end
    BESIDE.slice("a run", "a machine").each do |name, body|
      reported { on_thread { assert_equal :thrown, catch(:tag) { instance_exec(->(*) { throw :tag, :thrown }, &body) }, name } }
    end
  end

  # The machine of a thread that has ended without closing it.
  def test_exit_in_a_handler_at_the_end_of_the_program
    answer = child(<<~RUBY, fresh: true) # its end is what this is about
      Thread.new { Ringspun::Machine.new(on_error: ->(*) { exit 6 }).tap { |m| m.spin { raise "x" } && m.yield } }.join
      at_exit { puts "end" }
    RUBY
    assert_equal ["end\n", 6], [answer.out, answer.status.exitstatus]
  end

  def test_exit_in_a_handler_of_a_forked_child
    answer = child(<<~RUBY)
      Ringspun.run do
        machine.spin do
          next unless fork.nil?

          Ringspun.run(on_error: ->(*) { exit 7 }) { machine.spin { raise "x" } && machine.yield }
        end.await
        Process.wait
        puts $?.exitstatus
      end
    RUBY
    assert_equal "7\n", answer.out
  end

  # The first of what ends a program wins over all that is merely an error, whenever that came.
  def test_exit_of_a_strand_that_unwinds
    error = assert_raises(SystemExit) do
      machine.scope do |scope|
        scope.spin do
          machine.sleep
        ensure
          exit 8
        end
        scope.spin { raise Failure, "first" }
      end
    end
    assert_equal [8, ["first"]], [error.status, Ringspun.suppressed(error).map(&:message)]
  end
end
