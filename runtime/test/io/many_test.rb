# frozen_string_literal: true

# pass: crowds

require_relative "io_case"

# Much at once. What limits it is the number of stacks that a process can have, so that a hundred thousand ops come in
# several waves.
class ManyTest < IOCase
  def test_a_hundred_thousand_ops_that_wait_on_a_few_descriptors
    on_machine do |machine|
      pipes = Array.new(4) { make_pipe }
      done = 0
      most = wave_size
      ops = amount(100_000) / 4 * 4
      until done == ops
        wave = [ops - done, most].min
        strands = Array.new(wave) do |i|
          reader, = pipes[i % 4]
          if i.even? then machine.spin { machine.poll(reader, :readable) && 1 }
          else machine.spin { machine.read(reader, +"", 1) }
          end
        end
        strands.each { |strand| until_waits(strand) } # a collection may have put some behind the last
        assert_equal wave, machine.metrics[:ops_in_flight]
        pipes.each { |_, writer| machine.write(writer, "x" * (wave / 4 + 1)) }
        assert_equal wave, strands.sum(&:await)
        pipes.each { |reader, _| machine.read(reader, +"", 100_000) }
        done += wave
      end
      assert_nothing_in_flight
    end
  end

  def test_many_waits_end_together_when_their_scope_is_cancelled
    on_machine do |machine|
      reader, = make_pipe
      strands = nil
      machine.scope do |scope|
        strands = Array.new(wave_size) { scope.spin { machine.read(reader, +"") } }
        strands.each { |strand| until_waits(strand) }
        scope.cancel
      end
      assert_equal [false], strands.map(&:alive?).uniq
      assert_nothing_in_flight
    end
  end

  def test_many_waits_end_together_when_their_descriptor_is_closed
    on_machine do |machine|
      reader, = make_pipe
      strands = Array.new(wave_size) { machine.spin { error_of { machine.read(reader, +"") }.class } }
      until_waits(strands.last)
      close(reader)
      assert_equal [Ringspun::ClosedError], strands.map(&:await).uniq
    end
  end

  def test_closing_one_of_many_descriptors_touches_no_other
    on_machine do |machine|
      count = amount(500) / 2 * 2
      pipes = Array.new(count) { make_pipe }
      strands = pipes.map { |reader, _| machine.spin { error_of { machine.read(reader, +"") }.class } }
      until_waits(strands.last)
      pipes.each_with_index { |(reader, _), i| close(reader) if i.odd? }
      pipes.each_with_index { |(_, writer), i| machine.write(writer, "y") if i.even? }
      assert_equal [NilClass, Ringspun::ClosedError] * (count / 2), strands.map(&:await)
    end
  end

  def test_five_thousand_sleepers
    on_machine do |machine|
      order = []
      sleepers = Array.new(amount(5000)) do |i|
        machine.spin do
          machine.sleep((i * 37 % 5000) / 1_000_000.0)
          order << i
        end
      end
      await_all(sleepers)
      assert_equal sleepers.size, order.uniq.size
    end
  end

  def test_a_thousand_descriptors_ready_at_once
    on_machine do |machine|
      pairs = Array.new(amount(1000)) { make_socketpair }
      strands = pairs.map { |one, _| machine.spin { machine.recv(one, +"") } }
      until_waits(strands.last)
      # More than one harvest fetches.
      pairs.each { |_, other| machine.send(other, "ready") }
      assert_equal [5], await_all(strands).uniq
      assert_nothing_in_flight
    end
  end

  private

  # Two mappings a stack.
  def wave_size
    limit = File.read("/proc/sys/vm/max_map_count").to_i - mappings
    [limit / 2 * 3 / 4, amount(20_000)].min / 4 * 4
  end
end
