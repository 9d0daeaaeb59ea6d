# frozen_string_literal: true

# gc stress: short

require "test_helper"

# What only the C code keeps alive and in place: each test makes garbage, collects and compacts at the moment when one
# reference stands between an object and its end. Few allocations each, so that all of them bear a collection at every one.
class GCTest < Minitest::Test
  def on_machine(&block) = Ringspun.run(&block)

  def collect
    GC.start
    GC.compact if GC.respond_to?(:compact)
  end

  def test_the_value_of_a_strand_that_nobody_holds_but_its_handle
    on_machine do |machine|
      strand = machine.spin { "va" + "lue" }
      machine.yield
      collect
      assert_equal "value", strand.await
    end
  end

  def test_the_block_of_a_strand_that_has_not_started
    on_machine do |machine|
      strand = spin_with(machine, "captured".dup)
      collect
      assert_equal "captured", strand.await
    end
  end

  def test_an_item_on_its_way_to_a_popper
    on_machine do |machine|
      queue = Ringspun::Queue.new
      popper = machine.spin { queue.pop }
      machine.yield
      push_fresh(queue)
      collect
      assert_equal "item 1", popper.await
    end
  end

  def test_the_item_of_a_pusher_that_waits
    on_machine do |machine|
      queue = Ringspun::SizedQueue.new(1)
      queue.push(:first)
      pusher = machine.spin { push_fresh(queue) }
      machine.yield
      collect
      assert_equal [:first, "item 1"], [queue.pop, queue.pop]
      pusher.await
    end
  end

  def test_the_string_of_a_read_in_flight_stays_where_it_is
    on_machine do |machine|
      reader, writer = machine.pipe
      strand = machine.spin { "".dup.tap { |buffer| machine.read(reader, buffer, 8) } }
      machine.yield
      collect
      machine.write(writer, "in place")
      assert_equal "in place", strand.await
      [reader, writer].each { |fd| machine.close(fd) }
    end
  end

  def test_the_bytes_of_a_write_in_flight
    on_machine do |machine|
      reader, writer = machine.pipe
      bytes = "b" * 100_000
      strand = machine.spin { machine.write(writer, bytes) }
      machine.yield
      bytes.replace("changed")
      collect
      received = "".dup
      buffer = "".dup
      received << buffer while received.bytesize < 100_000 && machine.read(reader, buffer, 65_536).positive?
      assert_equal 100_000, strand.await
      assert_equal 100_000, received.count("b")
      [reader, writer].each { |fd| machine.close(fd) }
    end
  end

  def test_the_error_of_a_child_and_those_after_it
    error = assert_raises(RuntimeError) do
      on_machine do |machine|
        machine.scope do |scope|
          scope.spin do
            machine.park
          ensure
            collect
            raise ArgumentError, "sec" + "ond"
          end
          scope.spin { raise "fir" + "st" }
        end
      end
    end
    assert_equal ["first", %w[second]], [error.message, Ringspun.suppressed(error).map(&:message)]
  end

  def test_a_message_from_another_thread
    on_machine do |machine|
      strand = machine.spin { machine.park }
      machine.yield
      Thread.new { machine.schedule(strand, "mes" + "sage") }.join
      collect
      assert_equal "message", strand.await
    end
  end

  def test_a_parked_strand_whose_handle_is_gone
    on_machine do |machine|
      seen = []
      queue = Ringspun::Queue.new
      nil.tap { machine.spin { seen << queue.pop } }
      machine.yield
      collect
      queue.push("still there")
      machine.yield
      assert_equal ["still there"], seen
    end
  end

  private

  def spin_with(machine, value) = machine.spin { value }

  def push_fresh(queue) = queue.push(format("item %d", 1))
end
