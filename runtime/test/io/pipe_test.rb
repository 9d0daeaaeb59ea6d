# frozen_string_literal: true

# stream io: ring

require_relative "io_case"

module PipeTests
  def test_a_read_returns_what_is_there
    on_machine do |machine|
      reader, writer = make_pipe
      assert_equal 5, machine.write(writer, "hello")
      string = +"something longer than that"
      bytes = machine.read(reader, string, 100)
      assert_moved 5, bytes
      assert_equal "hello"[0, bytes], string
    end
  end

  def test_a_read_takes_at_most_its_length
    on_machine do |machine|
      reader, writer = make_pipe
      machine.write(writer, "hello")
      string = +""
      assert_moved 3, machine.read(reader, string, 3)
      assert_equal "hello", string + read_exactly(reader, 5 - string.size)
    end
  end

  def test_a_read_waits_for_the_first_byte
    on_machine do |machine|
      reader, writer = make_pipe
      string = +""
      strand = waiting(/\Aread on descriptor #{reader}\z/) { machine.read(reader, string) }
      machine.write(writer, "z")
      assert_equal 1, strand.await
      assert_equal "z", string
      assert_nothing_in_flight
    end
  end

  def test_the_end_is_0_and_an_empty_string
    on_machine do |machine|
      reader, writer = make_pipe
      machine.write(writer, "a")
      close(writer)
      string = +"old"
      assert_equal 1, machine.read(reader, string)
      assert_equal 0, machine.read(reader, string)
      assert_equal "", string
      assert_equal 0, machine.read(reader, string), "the end stays"
    end
  end

  def test_the_end_wakes_every_reader_that_waits
    on_machine do |machine|
      reader, writer = make_pipe
      strands = Array.new(3) { waiting(/read/) { machine.read(reader, +"") } }
      close(writer)
      assert_equal [0, 0, 0], await_all(strands)
    end
  end

  def test_a_read_of_no_bytes_never_waits
    on_machine do |machine|
      reader, writer = make_pipe
      string = +"old"
      assert_equal 0, machine.read(reader, string, 0)
      assert_equal "", string
      assert_equal 0, machine.read(reader, IO::Buffer.new(8), 0)
      machine.write(writer, "kept")
      assert_equal 0, machine.read(reader, string, 0)
      assert_equal "kept", read_exactly(reader, 4)
    end
  end

  def test_a_read_behind_an_offset_keeps_what_stands_before
    on_machine do |machine|
      reader, writer = make_pipe
      machine.write(writer, "XY")
      string = +"abcdef"
      bytes = machine.read(reader, string, 10, 3)
      assert_moved 2, bytes
      assert_equal "abc" + "XY"[0, bytes], string
    end
  end

  def test_a_read_into_an_io_buffer_changes_only_what_was_read
    on_machine do |machine|
      reader, writer = make_pipe
      buffer = IO::Buffer.new(16)
      buffer.set_string("-" * 16)
      machine.write(writer, "abcd")
      bytes = machine.read(reader, buffer, 8, 4)
      assert_moved 4, bytes
      # With faults a kernel may have scribbled behind what it answers, but never outside of what it was given.
      assert_equal "----" + "abcd"[0, bytes], buffer.get_string(0, 4 + bytes)
      assert_equal "----", buffer.get_string(12)
      assert_equal 16, buffer.size
    end
  end

  def test_a_read_into_an_io_buffer_waits
    on_machine do |machine|
      reader, writer = make_pipe
      buffer = IO::Buffer.new(4)
      strand = waiting(/read/) { machine.read(reader, buffer) }
      assert_predicate buffer, :locked?
      machine.write(writer, "wxyz1")
      bytes = strand.await
      assert_moved 4, bytes
      assert_equal "wxyz"[0, bytes], buffer.get_string(0, bytes)
      refute_predicate buffer, :locked?
    end
  end

  def test_without_a_length_a_string_takes_16384_bytes
    on_machine do |machine|
      reader, writer = make_pipe
      machine.write(writer, "x" * 20_000)
      assert_moved 16_384, machine.read(reader, +"")
      assert_operator machine.read(reader, +"y" * 60_000), :<=, 16_384, "the String's own size says nothing"
    end
  end

  def test_writes_larger_than_the_pipe_go_out_whole
    on_machine do |machine|
      reader, writer = make_pipe
      bytes = sample(IOCase::LARGE / 10)
      strand = waiting(/write/) { machine.write(writer, bytes).tap { close(writer) } }
      assert_bytes bytes, read_to_end(reader)
      assert_equal bytes.bytesize, strand.await
    end
  end

  def test_an_io_buffer_larger_than_the_pipe_goes_out_whole
    on_machine do |machine|
      reader, writer = make_pipe
      bytes = sample(IOCase::LARGE / 10)
      buffer = IO::Buffer.new(bytes.bytesize)
      buffer.set_string(bytes)
      strand = waiting(/write/) { machine.write(writer, buffer).tap { close(writer) } }
      assert_bytes bytes, read_to_end(reader)
      assert_equal bytes.bytesize, strand.await
      refute_predicate buffer, :locked?
    end
  end

  def test_writing_nothing_never_waits
    on_machine do |machine|
      _, writer = make_pipe
      assert_equal 0, machine.write(writer, "")
      fill(writer)
      assert_equal 0, machine.write(writer, "")
    end
  end

  def test_a_write_without_a_reader_is_epipe
    on_machine do |machine|
      reader, writer = make_pipe
      close(reader)
      assert_raises(Errno::EPIPE) { machine.write(writer, "x") }
      assert_raises(Errno::EPIPE) { machine.writev(writer, %w[x y]) }
    end
  end

  def test_a_write_that_waits_is_epipe_when_the_reader_goes
    on_machine do |machine|
      reader, writer = make_pipe
      fill(writer)
      strand = waiting(/write/) { machine.write(writer, "x" * 100) }
      close(reader)
      assert_raises(Errno::EPIPE) { strand.await }
    end
  end

  def test_a_write_cut_off_by_the_reader_says_how_much_went_out_and_the_next_is_epipe
    on_machine do |machine|
      reader, writer = make_pipe
      strand = waiting(/write/) { machine.write(writer, "x" * IOCase::LARGE) }
      got = read_exactly(reader, 1000)
      machine.yield
      close(reader)
      written = strand.await
      assert_operator written, :>=, got.size
      assert_operator written, :<, IOCase::LARGE
      assert_raises(Errno::EPIPE) { machine.write(writer, "x") }
    end
  end

  def test_readers_are_served_in_the_order_in_which_they_came
    on_machine(faults: false) do |machine|
      reader, writer = make_pipe
      served = []
      strands = Array.new(10) do |i|
        waiting(/read/) do
          string = +""
          machine.read(reader, string, 1)
          served << [i, string]
        end
      end
      "abcdefghij".each_char do |character|
        machine.write(writer, character)
        machine.yield until served.last&.last == character
      end
      await_all(strands)
      assert_equal "abcdefghij".chars.each_with_index.map { |character, i| [i, character] }, served
    end
  end

  def test_readers_that_one_write_serves_are_served_in_order
    on_machine(faults: false) do |machine|
      reader, writer = make_pipe
      strands = Array.new(4) { waiting(/read/) { (+"").tap { |string| machine.read(reader, string, 1) } } }
      machine.write(writer, "abc")
      assert_equal %w[a b c], await_all(strands.first(3))
      assert_equal :parked, strands.last.state
      machine.write(writer, "d")
      assert_equal "d", strands.last.await
    end
  end

  def test_writers_are_served_in_the_order_in_which_they_came
    on_machine(faults: false) do |machine|
      reader, writer = make_pipe
      full = waiting(/write/) { machine.write(writer, "-" * 70_000) }
      strands = Array.new(5) { |i| waiting(/write/) { machine.write(writer, i.to_s * 50_000) } }
      all = read_exactly(reader, 70_000 + 5 * 50_000)
      await_all([full, *strands])
      assert_equal %w[- 0 1 2 3 4], all.squeeze.chars
    end
  end

  def test_every_byte_arrives_once_with_many_readers_and_writers
    on_machine do |machine|
      reader, writer = make_pipe
      # A write of up to 4096 bytes into a pipe is one piece, whoever else writes.
      records = Array.new(amount(200) / 20 * 20 + 20) { |i| [i].pack("n") * 16 }
      writers = records.each_slice(20).map { |some| spin { some.each { |record| machine.write(writer, record) } } }
      chunks = []
      readers = Array.new(3) do
        spin do
          string = +""
          chunks << string.dup while machine.read(reader, string, 500).positive?
        end
      end
      await_all(writers)
      close(writer)
      await_all(readers)
      assert_equal records.sum(&:bytesize), chunks.sum(&:bytesize)
      assert_equal records.join.unpack("n*").tally.values.sum * 2, chunks.join.bytesize
      assert_equal records.join.bytes.tally, chunks.join.bytes.tally
    end
  end

  def test_a_closed_pipe_tells_its_waiters
    on_machine do |machine|
      reader, writer = make_pipe
      strands = [waiting(/read/) { machine.read(reader, +"") },
                 waiting(/readv/) { machine.readv(reader, [+"abc"]) },
                 waiting(/poll/) { machine.poll(reader, :readable) }]
      close(reader)
      strands.each do |strand|
        error = assert_raises(Ringspun::ClosedError) { strand.await }
        assert_match(/descriptor #{reader}/, error.message)
      end
      assert_raises(Errno::EPIPE) { machine.write(writer, "x") }
      assert_nothing_in_flight
    end
  end

  def test_a_closed_pipe_tells_its_writers
    on_machine do |machine|
      _, writer = make_pipe
      fill(writer)
      strands = [waiting(/write/) { machine.write(writer, "more") },
                 waiting(/writev/) { machine.writev(writer, %w[more still]) },
                 waiting(/poll/) { machine.poll(writer, :writable) }]
      close(writer)
      strands.each { |strand| assert_raises(Ringspun::ClosedError) { strand.await } }
      assert_nothing_in_flight
    end
  end

  def test_a_closed_descriptor_is_refused
    on_machine do |machine|
      reader, writer = make_pipe
      [reader, writer].each { |io| close(io) }
      calls = [-> { machine.read(reader, +"") }, -> { machine.write(writer, "x") }, -> { machine.readv(reader, [+"x"]) },
               -> { machine.writev(writer, ["x"]) }, -> { machine.poll(reader, :readable) }, -> { machine.close(reader) },
               -> { machine.statx(reader) }, -> { machine.fsync(writer) }]
      calls.each do |call|
        error = assert_raises(Ringspun::ClosedError, &call)
        assert_match(/descriptor \d+ is not open/, error.message)
      end
    end
  end

  def test_a_waiter_does_not_meet_the_next_owner_of_the_number
    on_machine do |machine|
      reader, writer = make_pipe
      strand = waiting(/read/) { machine.read(reader, +"") }
      close(reader)
      close(writer)
      again, other = make_pipe
      assert_equal [reader, writer], [again, other], "the numbers are free again"
      machine.write(other, "for the next one")
      assert_raises(Ringspun::ClosedError) { strand.await }
      assert_equal "for the next one", read_exactly(again, 16)
    end
  end

  def test_poll_says_what_the_pipe_is_ready_for
    on_machine do |machine|
      reader, writer = make_pipe
      assert_equal IO::WRITABLE, machine.poll(writer, :writable)
      strand = waiting(/poll/) { machine.poll(reader, %i[readable priority]) }
      machine.write(writer, "x")
      assert_equal IO::READABLE, strand.await
      assert_equal IO::READABLE, machine.poll(reader, IO::READABLE)
      assert_equal "x", read_exactly(reader, 1), "poll takes nothing"
    end
  end

  def test_poll_counts_an_end_as_ready
    on_machine do |machine|
      reader, writer = make_pipe
      strand = waiting(/poll/) { machine.poll(reader, :readable) }
      close(writer)
      assert_operator strand.await & 16, :>, 0, "POLLHUP"
    end
  end

  def test_readers_and_pollers_wait_side_by_side
    on_machine do |machine|
      reader, writer = make_pipe
      pollers = Array.new(3) { waiting(/poll/) { machine.poll(reader, :readable) } }
      string = +""
      strand = waiting(/read/) { machine.read(reader, string, 1) }
      machine.write(writer, "ab")
      strand.await
      assert_equal "a", string
      assert_equal [IO::READABLE] * 3, await_all(pollers)
    end
  end
end

class PipeTest < IOCase
  include PipeTests

  def test_a_pipe_is_non_blocking_and_closed_on_exec
    on_machine do
      make_pipe.each do |descriptor|
        io = IO.for_fd(descriptor, autoclose: false)
        assert_predicate io, :nonblock?
        assert_predicate io, :close_on_exec?
      end
    end
  end
end

class SimulatedPipeTest < IOCase
  include Simulated
  include PipeTests

  # A number is given anew as soon as its descriptor is closed, before the strand that has closed it goes on. A cancelled strand
  # gets it at once.
  def test_numbers_that_are_given_anew_while_others_close
    on_machine do |machine|
      strands = Array.new(4) { |number| spin { 10.times { use_a_pipe("x" * (number + 1)) } } }
      unwinding = Array.new(4) do
        spin do
          10.times do
            machine.scope(deadline: 0) do
              machine.sleep(1)
            ensure
              use_a_pipe("y")
            end
          rescue Ringspun::TimeoutError
            nil
          end
        end
      end
      await_all(strands + unwinding)
    end
  end

  private

  # What is written would be refused where the number counted as one that is being closed.
  def use_a_pipe(bytes)
    reader, writer = @machine.pipe
    @machine.write(writer, bytes)
    assert_equal bytes.size, @machine.read(reader, +"")
  ensure
    [reader, writer].compact.each { |descriptor| @machine.close(descriptor) }
  end
end
