# frozen_string_literal: true

require_relative "hook_case"

# A wake that is none: whoever calls unblock for a strand that waits for something else.
class SchedulerSpuriousTest < HookCase
  each_stream do |name, on|
    define_method("test_nothing_is_written_twice#{on}") do
      Ringspun.run do
        reader, writer = stream(name)
        bytes = sample(LARGE * 3)
        strand = waiting do
          @fiber = Fiber.current
          writer.write(bytes).tap { writer.close }
        end
        poke = -> { Fiber.scheduler.unblock(nil, @fiber) }
        arrived = "".b
        while (chunk = reader.read(200_000))
          arrived << chunk
          poke.call
          settle
          poke.call
        end
        assert_bytes bytes, arrived
        assert_equal bytes.bytesize, strand.await
      end
    end

    define_method("test_nothing_is_written_twice_by_wakes_of_a_thread#{on}") do
      Ringspun.run do
        reader, writer = stream(name)
        bytes = sample(LARGE)
        strand = machine.spin do
          @fiber = Fiber.current
          writer.write(bytes).tap { writer.close }
        end
        yield_until { @fiber }
        scheduler = Fiber.scheduler
        poking = true
        thread = Thread.new { scheduler.unblock(:spurious, @fiber) && Thread.pass while poking }
        assert_bytes bytes, reader.read
        assert_equal bytes.bytesize, strand.await
      ensure
        poking = false
        thread&.join
      end
    end

    define_method("test_nothing_is_read_that_has_not_come#{on}") do
      Ringspun.run do
        reader, writer = stream(name)
        @taken = []
        strand = machine.spin do
          @fiber = Fiber.current
          3.times { @taken << reader.readpartial(10) }
        end
        until_parked(strand)
        %w[one two three].each do |word|
          5.times { Fiber.scheduler.unblock(nil, @fiber) && settle }
          assert_equal :parked, strand.state
          writer.write(word)
          # The next only when this one was taken, or two would come as one.
          yield_until { @taken.include?(word) }
        end
        strand.await
        assert_equal %w[one two three], @taken
      end
    end

    # After a number of wake-ups in vain io_uring lets a thread of the kernel's wait, which takes its buffers in another way, and
    # may then be the first itself.
    define_method("test_bytes_that_somebody_else_takes_first#{on}") do
      Ringspun.run do
        reader, writer = stream(name)
        taken = +""
        strand = machine.spin { loop { taken << reader.readpartial(100) } }
        until_parked(strand)
        take_first([[reader, writer]])
        words = Array.new(20) { |i| "word #{i} " }
        words.each do |word|
          writer.write(word)
          yield_until { taken.end_with?(word) }
        end
        machine.terminate(strand)
        assert_equal words.join, taken.delete("?")
      end
    end
  end

  # However many threads of the kernel's wait, each for a stream of its own.
  def test_many_streams_whose_bytes_somebody_else_takes_first
    Ringspun.run do
      pairs = Array.new(12) { pair }
      taken = Array.new(12) { +"" }
      strands = pairs.each_with_index.map { |(reader, _), i| machine.spin { loop { taken[i] << reader.readpartial(100) } } }
      until_parked(*strands)
      take_first(pairs)
      pairs.each_with_index.reverse_each do |(_, writer), i|
        writer.write("!")
        yield_until { taken[i].end_with?("!") }
      end
      strands.each { |strand| machine.terminate(strand) }
    end
    assert_nothing_in_flight
  end

  def test_selects_and_sleeps_and_waits_go_on
    Ringspun.run do
      reader, writer = pipe
      fibers = []
      strands = [-> { IO.select([reader]) }, -> { reader.wait_readable }, -> { machine.park }].map do |wait|
        waiting do
          fibers << Fiber.current
          wait.call
        end
      end
      3.times { fibers.each { |fiber| Fiber.scheduler.unblock(self, fiber) } && settle }
      assert_equal %i[parked parked parked], strands.map(&:state)
      writer.write("x")
      machine.schedule(strands.last, :value)
      assert_equal [[[reader], [], []], reader, :value], strands.map(&:await)
    end
  end

  private

  # Wakes those who wait for the readers' bytes, which are gone by then.
  def take_first(pairs)
    200.times do
      polls = machine.metrics[:polls]
      yield_until { machine.metrics[:polls] > polls }
      pairs.each do |reader, writer|
        writer.write_nonblock("?")
        reader.read_nonblock(1, exception: false)
      end
    end
  end
end
