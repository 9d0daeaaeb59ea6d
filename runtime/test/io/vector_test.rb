# frozen_string_literal: true

require_relative "io_case"

module VectorTests
  def test_readv_fills_one_buffer_after_the_other_and_keeps_their_sizes
    on_machine do |machine|
      reader, writer = make_pipe
      machine.write(writer, "abcdefgh")
      buffers = [+"--", IO::Buffer.new(3), +"----"]
      buffers[1].set_string("---")
      bytes = machine.readv(reader, buffers)
      assert_moved 8, bytes
      whole = "abcdefgh"[0, bytes].ljust(9, "-")
      assert_equal [2, 3, 4], buffers.map(&:size)
      assert_equal whole[0, bytes], buffers.map { |buffer| text_of(buffer) }.join[0, bytes]
    end
  end

  def test_readv_waits_and_returns_what_is_there
    on_machine do |machine|
      reader, writer = make_pipe
      strings = [+"--", +"", +"------"]
      strand = waiting(/readv/) { machine.readv(reader, strings) }
      strings.each { |string| assert_raises(RuntimeError) { string.replace("changed") } }
      machine.write(writer, "abc")
      bytes = strand.await
      assert_moved 3, bytes
      assert_equal "abc"[0, bytes], strings.join[0, bytes]
      strings.each { |string| refute_locked(string) }
    end
  end

  # What Ruby has found out about a String's characters it keeps until it is told of a change.
  def test_strings_that_were_looked_at_while_readv_waited
    on_machine(faults: false) do |machine|
      reader, writer = make_pipe
      strings = ["a" * 8, "b" * 2000, +"cc"]
      strand = waiting(/readv/) { machine.readv(reader, strings) }
      assert(strings.all?(&:ascii_only?))
      copies = strings.map(&:dup)
      machine.write(writer, "\xC3\xA9" * 1004)
      assert_equal 2008, strand.await
      assert_equal [false, false, true], strings.map(&:ascii_only?)
      assert_equal [4, 1000, 2], strings.map(&:length)
      assert_equal ["\u00e9" * 4, "\u00e9" * 1000, "cc"], strings
      copies.each { |copy| copy << "!" }
      assert_equal "\u00e9" * 1000, strings[1]
    end
  end

  def test_readv_at_the_end_is_0
    on_machine do |machine|
      reader, writer = make_pipe
      close(writer)
      strings = [+"keep", +"this"]
      assert_equal 0, machine.readv(reader, strings)
      assert_equal [4, 4], strings.map(&:size)
      assert_equal %w[keep this], strings if undisturbed?
    end
  end

  def test_readv_waits_until_the_end
    on_machine do |machine|
      reader, writer = make_pipe
      strand = waiting(/readv/) { machine.readv(reader, [+"abc"]) }
      close(writer)
      assert_equal 0, strand.await
    end
  end

  def test_writev_writes_all_buffers
    on_machine do |machine|
      reader, writer = make_pipe
      buffer = IO::Buffer.new(3)
      buffer.set_string("BUF")
      assert_equal 12, machine.writev(writer, ["one", "", buffer, "", "two", "end"])
      close(writer)
      assert_equal "oneBUFtwoend", read_to_end(reader)
      refute_predicate buffer, :locked?
    end
  end

  def test_writev_larger_than_the_pipe_goes_out_whole
    on_machine do |machine|
      reader, writer = make_pipe
      parts = Array.new(60) { |i| sample([0, 1, 10_000, 3333][i % 4], i) }
      strand = waiting(/writev/) { machine.writev(writer, parts).tap { close(writer) } }
      assert_bytes parts.join, read_to_end(reader)
      assert_equal parts.sum(&:bytesize), strand.await
    end
  end

  def test_writev_takes_the_same_string_several_times
    on_machine do |machine|
      reader, writer = make_pipe
      string = "ab"
      assert_equal 6, machine.writev(writer, [string, string, string])
      close(writer)
      assert_equal "ababab", read_to_end(reader)
    end
  end

  def test_writev_of_nothing_never_waits
    on_machine do |machine|
      _, writer = make_pipe
      fill(writer)
      assert_equal 0, machine.writev(writer, ["", ""])
    end
  end

  # More than the kernel takes at once.
  PARTS = [1023, 1024, 1025, 5000].freeze

  def test_writev_of_many_parts
    on_machine(faults: false) do |machine|
      reader, writer = make_pipe
      PARTS.each do |count|
        parts = Array.new(count) { |i| i.even? ? i.to_s : IO::Buffer.for(i.to_s) }
        whole = Array.new(count, &:to_s).join
        assert_equal whole.bytesize, machine.writev(writer, parts)
        assert_bytes whole, read_exactly(reader, whole.bytesize)
        parts.each { |part| refute_predicate(part, :locked?) if part.is_a?(IO::Buffer) }
      end
    end
  end

  def test_readv_into_many_buffers
    on_machine(faults: false) do |machine|
      reader, writer = make_pipe
      PARTS.each do |count|
        buffers = Array.new(count) { |i| i % 3 == 0 ? IO::Buffer.new(2) : +"--" }
        buffers[-1] = IO::Buffer.new(4).slice(1, 2)
        [count * 2, (count * 2) - 1, 1].each do |bytes|
          whole = Array.new(count, &:to_s).join[0, bytes]
          machine.write(writer, whole)
          strings = buffers.grep(String).each { |string| string.replace("--") }
          assert_equal whole.bytesize, machine.readv(reader, buffers)
          assert_bytes whole, buffers.map { |buffer| text_of(buffer) }.join[0, whole.bytesize]
          assert(strings.all? { |string| string.bytesize == 2 })
        end
      end
    end
  end

  def test_many_buffers_of_which_one_is_wrong
    on_machine(faults: false) do |machine|
      reader, writer = make_pipe
      twice = +"--"
      many = Array.new(1100) { +"x" }
      [[*many, 5], [*many, "frozen"], [twice, *many, twice]].each do |list|
        assert_raises(Ringspun::UsageError, FrozenError) { machine.readv(reader, list) }
      end
      assert_raises(Ringspun::UsageError) { machine.writev(writer, [*Array.new(1100, "x"), 5]) }
      assert_equal "new", twice.replace("new")
      [[], "x", nil].each { |none| assert_raises(Ringspun::UsageError) { machine.writev(writer, none) } }
    end
  end

  def test_writev_writes_what_the_strings_were_when_it_was_called
    on_machine do |machine|
      reader, writer = make_pipe
      strings = [+"short", +"", "m" * 200_000, +"l" * 100]
      before = strings.join
      list = strings.dup
      strand = waiting(/writev/) { machine.writev(writer, list).tap { close(writer) } }
      strings[0].replace("changed to something longer than it was")
      strings[1] << "grown"
      strings[3].clear
      list.clear
      assert_bytes before, read_to_end(reader)
      assert_equal before.bytesize, strand.await
    end
  end

  def test_a_list_that_changes_while_readv_waits_changes_nothing
    on_machine do |machine|
      reader, writer = make_pipe
      string = +"----"
      list = [string]
      strand = waiting(/readv/) { machine.readv(reader, list) }
      list.clear << "frozen"
      machine.write(writer, "abcd")
      bytes = strand.await
      assert_equal "abcd"[0, bytes], string[0, bytes]
      refute_locked(string)
    end
  end

  def test_readv_refuses_a_buffer_that_stands_there_twice
    on_machine do |machine|
      reader, writer = make_pipe
      machine.write(writer, "abcdef")
      twice, other, buffer = +"12", +"34", IO::Buffer.new(2)
      error = assert_raises(Ringspun::UsageError) { machine.readv(reader, [other, twice, twice]) }
      assert_match(/twice/, error.message)
      assert_raises(Ringspun::UsageError) { machine.readv(reader, [buffer, other, buffer]) }
      assert_equal %w[12 34], [twice, other]
      [twice, other].each { |string| refute_locked(string) }
      refute_predicate buffer, :locked?
      assert_equal "abcdef", read_exactly(reader, 6), "nothing was taken"
    end
  end

  # An answer of 0 would look like the end of the stream.
  def test_readv_refuses_buffers_without_room
    on_machine do |machine|
      reader, writer = make_pipe
      machine.write(writer, "ab")
      [[], [+""], [+"", +""]].each { |list| assert_raises(Ringspun::UsageError) { machine.readv(reader, list) } }
      refute_locked(+"")
      assert_equal "ab", read_exactly(reader, 2)
    end
  end

  def test_readv_refuses_a_buffer_of_another_readv
    on_machine do |machine|
      reader, writer = make_pipe
      shared = +"1234"
      free = +"5678"
      strand = waiting(/readv/) { machine.readv(reader, [shared]) }
      error = assert_raises(Ringspun::UsageError) { machine.readv(reader, [free, shared]) }
      assert_match(/in use by another operation/, error.message)
      refute_locked(free)
      machine.write(writer, "abcd")
      assert_moved 4, strand.await
    end
  end

  private

  def text_of(buffer) = buffer.is_a?(String) ? buffer : buffer.get_string
end

class VectorTest < IOCase
  include VectorTests

  def test_a_datagram_of_many_parts_is_one
    on_machine(faults: false) do |machine|
      one, other = make_socketpair(:UNIX, :DGRAM)
      assert_equal 3000, machine.writev(one, Array.new(3000, "x"))
      assert_equal 3000, machine.recv(other, +"", 5000)
    end
  end

  def test_writev_to_a_descriptor_that_blocks
    on_machine do |machine|
      reader, writer = keep(*IO.pipe)
      writer.nonblock = false
      parts = ["", "", sample(100_000), "", sample(5000), "end", ""]
      strand = waiting(/writev/) { machine.writev(writer, parts).tap { close(writer) } }
      assert_bytes parts.join, read_to_end(reader)
      assert_equal parts.sum(&:bytesize), strand.await
    end
  end

  def test_writev_cut_off_by_the_reader_says_how_much_went_out
    on_machine do |machine|
      reader, writer = make_pipe
      strand = waiting(/writev/) { machine.writev(writer, ["a" * 30_000, "b" * 60_000]) }
      close(reader)
      assert_equal 65_536, strand.await
      assert_raises(Errno::EPIPE) { machine.writev(writer, ["x"]) }
    end
  end
end

class SimulatedVectorTest < IOCase
  include Simulated
  include VectorTests
end
