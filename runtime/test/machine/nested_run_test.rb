# frozen_string_literal: true

require "test_helper"
require "support/strands"

# Ringspun.run inside another one: a strand belongs to the innermost run that its spinner is in, and each run returns when its own
# have ended. What a single run does is in run_test.rb.
class NestedRunTest < Minitest::Test
  include Strands

  # The ways to begin a strand. Each lets a gate hold it.
  WAYS = {
    spin: ->(machine, &block) { machine.spin(&block) },
    schedule: ->(_, &block) { Fiber.schedule(&block) },
    call_detached: ->(_, &block) { Ringspun.concurrent_proc(&block).call_detached },
    call_nonblock: ->(_, &block) { Ringspun.concurrent_proc(&block).call_nonblock }
  }.freeze

  def on_real_and_virtual_time(&block)
    Ringspun.run(&block)
    simulate(&block)
  end

  WAYS.each do |name, begin_one|
    define_method(:"test_it_waits_for_what_was_begun_by_#{name}") do
      on_real_and_virtual_time do |machine|
        seen = []
        gate = Ringspun::Queue.new
        machine.spin { machine.yield.then { gate << :open } }
        Ringspun.run do
          begin_one.call(machine) { gate.pop.then { seen << :inner } }
          nil
        end
        assert_equal [:inner], seen
      end
    end
  end

  def test_it_waits_for_strands_of_its_strands_and_not_for_others
    on_real_and_virtual_time do |machine|
      seen = []
      other = parked { machine.park }
      Ringspun.run do
        machine.spin do
          machine.scope { |scope| scope.spin { machine.spin { 3.times { machine.yield }.then { seen << :inner } } } }
        end
      end
      assert_equal [:inner], seen
      assert_predicate other, :alive?
      machine.schedule(other)
    end
  end

  def test_what_strands_outside_of_it_spin_meanwhile_belongs_to_the_outer_run
    on_real_and_virtual_time do |machine|
      spun = nil
      outside = parked { machine.park.then { spun = machine.spin { machine.park } } }
      Ringspun.run do
        machine.schedule(outside)
        yield_until { spun }
      end
      until_parked(spun)
      machine.schedule(spun)
    end
  end

  def test_two_strands_that_each_call_run
    on_real_and_virtual_time do |machine|
      seen = []
      gates = { a: Ringspun::Queue.new, b: Ringspun::Queue.new }
      runs = gates.to_h do |name, gate|
        [name, machine.spin do
          Ringspun.run { machine.spin { gate.pop.then { seen << name } } }
          seen << :"#{name}_returned"
        end]
      end
      until_parked(*runs.values)
      gates[:b] << 1
      runs[:b].join
      assert_equal %i[b b_returned], seen
      gates[:a] << 1
      runs[:a].join
      assert_equal %i[b b_returned a a_returned], seen
    end
  end

  def test_from_within_a_generator
    on_real_and_virtual_time do |machine|
      seen = []
      runs = Enumerator.new do |yielder|
        Ringspun.run do
          machine.spin { machine.park.then { seen << :inner } }.then { |strand| yielder << strand }
          machine.spin { seen << :late }
        end
        yielder << :returned
      end
      inner = until_parked(runs.next)
      outer = parked { machine.park.then { seen << :outer } } # the generator stands still: it governs nothing that is spun here
      machine.schedule(inner)
      assert_equal :returned, runs.next
      assert_equal %i[inner late], seen
      machine.schedule(outer)
    end
  end

  def test_from_an_on_error
    seen = []
    told = lambda do |error, _|
      Ringspun.run { |machine| machine.spin { machine.yield.then { seen << error.message } } }
      seen << :told
    end
    Ringspun.run(on_error: told) { |machine| machine.spin { raise Failure, "of a strand" } }
    assert_equal ["of a strand", :told], seen
  end

  def test_from_a_signal_handler
    seen = []
    before = trap("USR1") do
      Ringspun.run { |machine| machine.spin { machine.yield.then { seen << :inner } } }
      seen << :handled
    end
    Ringspun.run do
      Process.kill(:USR1, Process.pid)
      Thread.pass until seen.any?
      assert_equal %i[inner handled], seen
    end
  ensure
    trap("USR1", before)
  end

  # --- errors ---

  def test_an_error_of_its_block_cancels_its_own_strands_and_no_others
    on_real_and_virtual_time do |machine|
      seen = []
      other = parked { machine.park.then { seen << :other } }
      error = assert_raises(Failure) do
        Ringspun.run do
          until_parked(machine.spin do
            machine.sleep
          ensure
            seen << :unwound
          end)
          raise Failure, "of the block"
        end
      end
      machine.schedule(other)
      other.join
      assert_equal ["of the block", %i[unwound other]], [error.message, seen]
    end
  end

  def test_an_error_of_a_strand_that_nobody_joins_does_not_cancel_the_others
    seen = []
    _, err = capture_io do
      Ringspun.run do |machine|
        Ringspun.run do
          machine.spin { raise Failure, "of a strand" }
          machine.spin { 3.times { machine.yield }.then { seen << :other } }
        end
        assert_match(/ended with an error that nobody joined: .*of a strand/, $stderr.string)
      end
    end
    assert_equal [[:other], 1], [seen, err.scan("of a strand").size]
  end

  def test_the_innermost_on_error_is_called_before_the_run_returns
    told = []
    teller = ->(name) { ->(error, _) { told << [name, error.message] } }
    Ringspun.run(on_error: teller[:outer]) do |machine|
      Ringspun.run(on_error: teller[:inner]) do
        machine.spin { raise Failure, "1" }
        Ringspun.run { machine.spin { raise Failure, "2" } }
        Ringspun.run(on_error: teller[:innermost]) { Fiber.schedule { raise Failure, "3" } }
      end
      assert_equal [[:inner, "2"], [:innermost, "3"], [:inner, "1"]].sort, told.sort
      Ringspun.run { machine.spin { raise Failure, "4" } }
      assert_equal [:outer, "4"], told.last
      machine.spin { raise Failure, "5" }
    end
    assert_equal [[:outer, "5"], 5], [told.last, told.size]
  end

  def test_an_error_that_somebody_joins_is_told_to_nobody
    Ringspun.run do |machine|
      Ringspun.run(on_error: ->(*) { flunk }) do
        assert_raises(Failure) { machine.spin { raise Failure }.join }
      end
    end
  end

  def test_exit_in_a_strand_of_it_ends_the_outermost_run
    seen = []
    error = assert_raises(SystemExit) do
      Ringspun.run do |machine|
        Ringspun.run do
          machine.spin { exit 3 }
          machine.sleep
        ensure
          seen << :unwound
        end
      end
    end
    assert_equal [3, [:unwound]], [error.status, seen]
  end

  def test_a_deadline_around_it_cancels_its_strands
    on_real_and_virtual_time do |machine|
      seen = []
      assert_raises(Ringspun::TimeoutError) do
        machine.timeout(0.01) do # must pass
          Ringspun.run do
            machine.spin do
              machine.sleep
            ensure
              seen << :unwound
            end
          end
        end
      end
      assert_equal [:unwound], seen
    end
  end

  def test_a_strand_that_libraries_share_belongs_to_the_outermost_run
    on_real_and_virtual_time do |machine|
      shared = nil
      Ringspun.run { shared = machine.__send__(:spin_shared) { machine.park } }
      until_parked(shared)
      machine.schedule(shared)
    end
  end

  # --- one that does not return ---

  def test_the_inspector_names_the_strand_that_keeps_it
    Ringspun.run do |machine|
      kept = nil
      outer = machine.spin { Ringspun.run { kept = machine.spin { machine.park } } }
      yield_until { kept }
      until_parked(outer, kept)
      lines = machine.describe_strands.lines.map(&:strip)
      at = lines.index { |line| line.end_with?("waits for the strands of a run to end") && line.include?(outer.inspect) }
      assert_equal "#{kept.inspect}: waits for Machine#schedule", lines[at + 1]
      assert_same outer, kept.owner
      machine.schedule(kept)
    end
  end

  # --- in a forked child ---

  def test_in_a_forked_child
    assert_child "strand\nafter\nin two\nnested strand\nnested after\n", <<~'RUBY'
      def in_child = machine.waitid(fork { yield.then { $stdout.flush } })
      Ringspun.run do
        in_child do
          Ringspun.run { |machine| machine.spin { machine.sleep(0.001).then { puts "strand" } } }
          puts "after"
        end
        Ringspun.run do
          in_child do
            Ringspun.run do |machine|
              machine.spin { puts "in two" }
              Ringspun.run { machine.spin { machine.sleep(0.001).then { puts "nested strand" } } }
              puts "nested after"
            end
          end
        end
      end
    RUBY
  end

  def test_errors_in_a_forked_child
    assert_child "told: of a strand\nraised: of the block\n", <<~'RUBY'
      Ringspun.run(on_error: ->(*) { puts "the parent's" }) do |machine|
        machine.waitid(fork do
          Ringspun.run(on_error: ->(error, _) { puts "told: #{error.message}" }) { |machine| machine.spin { raise "of a strand" } }
          Ringspun.run { raise "of the block" }
        rescue => error
          puts "raised: #{error.message}"
        end)
      end
    RUBY
  end

  def test_a_signal_cancels_the_run_of_a_forked_child
    assert_child "strand\nensured\nInterrupt\nafter\n", <<~'RUBY'
      Ringspun.run do |machine|
        machine.waitid(fork do
          Ringspun.run do |machine|
            machine.spin do
              puts "strand"
              machine.sleep
            ensure
              puts "ensured"
            end
            machine.yield
            Process.kill(:INT, Process.pid)
            machine.sleep
          end
        rescue Interrupt => error
          puts error.class
          puts "after"
        end)
      end
    RUBY
  end

  def test_a_fork_inside_one_whose_child_returns_from_it
    assert_child "child's own\nchild after\nparent after\n", <<~'RUBY'
      Ringspun.run do |machine|
        pid = Ringspun.run do
          child = fork
          machine.spin { machine.sleep(0.001).then { puts "child's own" } } unless child
          child
        end
        puts "child after" unless pid
        machine.waitid(pid) && puts("parent after") if pid
      end
    RUBY
  end
end
