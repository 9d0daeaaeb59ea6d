# frozen_string_literal: true

require_relative "io_case"

# Who may touch a buffer while an op has it, and where its bytes are meanwhile.
module BufferTests
  CHANGES = {
    replace: ->(string) { string.replace("other") },
    append: ->(string) { string << "more" },
    clear: ->(string) { string.clear },
    store: ->(string) { string[0] = "X" },
    setbyte: ->(string) { string.setbyte(0, 1) },
    squeeze: ->(string) { string.upcase! },
    grow: ->(string) { string.prepend("x" * 100) },
    freeze: ->(string) { string.freeze }
  }.freeze

  # Short enough to live inside its object, and too long for that.
  SIZES = [4, 4000].freeze

  # What waits for bytes on a socket, with the buffer that it fills; each answers how many came.
  READS = {
    read: ->(machine, socket, buffer) { machine.read(socket, buffer, 4) },
    recv: ->(machine, socket, buffer) { machine.recv(socket, buffer, 4) },
    recvmsg: ->(machine, socket, buffer) { machine.recvmsg(socket, buffer, 4).first },
    readv: ->(machine, socket, buffer) { machine.readv(socket, [buffer]) }
  }.freeze

  READS.each do |name, operation|
    define_method("test_a_string_that_#{name}_fills_cannot_be_changed") do
      on_machine do |machine|
        one, other = make_socketpair
        SIZES.each do |size|
          string = "k" * size
          strand = waiting(/#{name} /) { operation.call(machine, one, string) }
          before = string.b
          CHANGES.each do |change_name, change|
            assert_raises(RuntimeError, "#{change_name} of #{size} bytes") { change.call(string) }
          end
          assert_equal before, string.b
          machine.write(other, "abcd")
          bytes = strand.await
          assert_equal "abcd"[0, bytes], name == :readv ? string[0, bytes] : string
          refute_locked(string)
          read_exactly(one, 4 - bytes)
        end
      end
    end

    define_method("test_an_io_buffer_that_#{name}_fills_cannot_be_freed") do
      on_machine do |machine|
        one, other = make_socketpair
        buffer = IO::Buffer.new(4)
        buffer.set_string("kept")
        strand = waiting(/#{name} /) { operation.call(machine, one, buffer) }
        [-> { buffer.free }, -> { buffer.resize(100_000) }, -> { buffer.transfer }].each do |change|
          assert_raises(IO::Buffer::LockedError, &change)
        end
        assert_predicate buffer, :locked?
        assert_equal "kept", buffer.get_string if undisturbed?
        machine.write(other, "abcd")
        bytes = strand.await
        assert_equal "abcd"[0, bytes], buffer.get_string(0, bytes)
        refute_predicate buffer, :locked?
        buffer.free
      end
    end
  end

  def test_one_string_cannot_serve_two_reads
    on_machine do |machine|
      reader, writer = make_pipe
      other_reader, other_writer = make_pipe
      string = +""
      strand = waiting(/read/) { machine.read(reader, string) }
      2.times do
        error = assert_raises(Ringspun::UsageError) { machine.read(other_reader, string) }
        assert_match(/in use by another operation; give every one its own/, error.message)
        # The second time there is something to read at once.
        machine.write(other_writer, "at once") if strand.alive?
      end
      assert_raises(Ringspun::UsageError) { machine.readv(other_reader, [string]) }
      machine.write(writer, "mine")
      bytes = strand.await
      assert_equal "mine"[0, bytes], string
    end
  end

  def test_one_io_buffer_cannot_serve_two_reads
    on_machine do |machine|
      reader, writer = make_pipe
      other_reader, other_writer = make_pipe
      buffer = IO::Buffer.new(8)
      strand = waiting(/read/) { machine.read(reader, buffer) }
      machine.write(other_writer, "at once")
      error = assert_raises(Ringspun::UsageError) { machine.read(other_reader, buffer) }
      assert_match(/in use by another operation/, error.message)
      assert_raises(Ringspun::UsageError) { machine.readv(other_reader, [buffer]) }
      assert_raises(IO::Buffer::LockedError) { buffer.free }
      machine.write(writer, "mine")
      bytes = strand.await
      assert_equal "mine"[0, bytes], buffer.get_string(0, bytes)
    end
  end

  # A copy shares its bytes with the original until one of them changes.
  def test_a_copy_made_while_a_string_is_read_into_costs_no_byte
    on_machine do |machine|
      reader, writer = make_pipe
      [[:dup, 0], [:dup, 1500], [:+@, 0], [:b, 0], [:itself, 0]].each do |copy, offset|
        string = String.new("o" * 2000, capacity: 4000)
        strand = waiting(/read/) { machine.read(reader, string, 100, offset) }
        copies = [string.__send__(copy), string[0..], string[100, 1800]]
        GC.start if copy == :dup
        machine.write(writer, "abcdef")
        bytes = strand.await
        assert_equal ("o" * offset) + "abcdef"[0, bytes], string
        assert_equal 3, copies.size
        read_exactly(reader, 6 - bytes)
      end
    end
  end

  def test_a_string_written_while_it_is_read_into
    on_machine do |machine|
      reader, writer = make_pipe
      other_reader, other_writer = make_pipe
      string = "o" * 2000
      strand = waiting(/read/) { machine.read(reader, string, 5000) }
      machine.write(other_writer, string)
      filled = fill(other_writer)
      write = waiting(/write/) { machine.write(other_writer, string) }
      machine.write(writer, "abcdef")
      bytes = strand.await
      assert_equal "abcdef"[0, bytes], string
      read_exactly(other_reader, 2000 + filled)
      assert_equal 2000, write.await
    end
  end

  def test_a_write_sends_what_the_string_was
    on_machine do |machine|
      CHANGES.except(:freeze).each_value do |change|
        [5, 600, 100_000].each do |size|
          reader, writer = make_pipe
          filled = fill(writer)
          string = sample(size)
          before = string.dup
          strand = waiting(/write/) { machine.write(writer, string).tap { close(writer) } }
          change.call(string)
          refute_equal before, string
          assert_equal filled, read_exactly(reader, filled).size
          assert_bytes before, read_to_end(reader)
          assert_equal size, strand.await
        end
      end
    end
  end

  def test_a_message_sends_what_the_string_was
    on_machine do |machine|
      one, other = make_socketpair
      fill(one)
      string = +"the message"
      sends = [waiting(/send/) { machine.send(one, string) }, waiting(/sendmsg/) { machine.sendmsg(one, string) }]
      string.replace("something else altogether")
      machine.shutdown(other, :WR)
      reading = spin { read_to_end(other) }
      sent = await_all(sends)
      machine.shutdown(one, :WR)
      tail = reading.await.delete("x")
      assert_equal 11, sent.first
      assert_equal "the message" + "the message"[0, sent.last], tail
    end
  end

  def test_an_io_buffer_that_is_written_cannot_be_freed
    on_machine do |machine|
      reader, writer = make_pipe
      buffer = IO::Buffer.new(200_000)
      strands = [waiting(/write/) { machine.write(writer, buffer) }]
      assert_raises(IO::Buffer::LockedError) { buffer.free }
      read_exactly(reader, 200_000)
      strands.first.await
      strand = waiting(/writev/) { machine.writev(writer, [buffer, buffer, "end"]).tap { close(writer) } }
      assert_raises(IO::Buffer::LockedError) { buffer.free }
      assert_equal 400_003, read_to_end(reader).size
      strand.await
      refute_predicate buffer, :locked?
      buffer.free
    end
  end

  # The memory of a slice is another buffer's, and the slice's lock does not hold that.
  def test_a_slice_whose_buffer_is_freed_while_it_is_read_into
    on_machine do |machine|
      { read: ->(io, slice) { machine.read(io, slice) }, readv: ->(io, slice) { machine.readv(io, [slice]) } }
        .each_value do |operation|
          reader, writer = make_pipe
          buffer = IO::Buffer.new(1000)
          strand = waiting { operation.call(reader, buffer.slice(100, 8)) }
          buffer.free
          neighbours = Array.new(amount(20)) { "n" * 1000 }
          machine.write(writer, "abcdefgh")
          assert_raises(Ringspun::UsageError) { strand.await }
          assert_equal ["n" * 1000], neighbours.uniq
        end
    end
  end

  def test_a_slice_is_filled_in_place
    on_machine do |machine|
      reader, writer = make_pipe
      buffer = IO::Buffer.new(20)
      buffer.set_string("." * 20)
      slice = buffer.slice(4, 8)
      machine.write(writer, "abcd") # there at once
      assert_moved 2, first = machine.read(reader, slice, 2, 1)
      read_exactly(reader, 4 - first)
      strand = waiting(/read/) { machine.read(reader, slice, 4, 2) }
      machine.write(writer, "wxyz")
      second = strand.await
      assert_equal ".....", buffer.get_string(0, 5)
      assert_equal "wxyz"[0, second], buffer.get_string(6, second)
      assert_equal "........", buffer.get_string(12)
      read_exactly(reader, 4 - second)

      slices = [buffer.slice(0, 3), +"--", buffer.slice(17, 3)]
      strand = waiting(/readv/) { machine.readv(reader, slices) }
      machine.write(writer, "12345678")
      third = strand.await
      text = slices.map { |part| part.is_a?(String) ? part : part.get_string }.join
      assert_equal "12345678"[0, third], text[0, third]
    end
  end

  def test_a_slice_is_written_as_it_was
    on_machine do |machine|
      reader, writer = make_pipe
      one, other = make_socketpair
      buffer = IO::Buffer.new(1000)
      buffer.set_string(sample(1000))
      before = buffer.get_string(10, 900)
      filled = fill(writer)
      fill(one)
      strands = [waiting(/write/) { machine.write(writer, buffer.slice(10, 900)) },
                 waiting(/writev/) { machine.writev(writer, [buffer.slice(10, 400), buffer.slice(410, 500)]) },
                 waiting(/send/) { machine.send(one, buffer.slice(10, 900)) }]
      buffer.free
      read_exactly(reader, filled)
      assert_bytes before * 2, read_exactly(reader, 1800)
      everything = spin { read_to_end(other) }
      assert_equal [900, 900, 900], await_all(strands)
      machine.shutdown(one, :WR)
      assert_bytes before, everything.await.byteslice(-900, 900)
    end
  end

  def test_a_collection_while_ops_have_buffers
    on_machine(faults: false) do |machine|
      pipes = Array.new(6) { make_pipe }
      # Nothing but the op knows the buffer: not even a local variable of the strand.
      strands = pipes.first(4).each_with_index.map do |(reader, _), i|
        case i
        when 0 then waiting(/read/) { machine.read(reader, String.new(capacity: 5000)) }
        when 1 then waiting(/readv/) { machine.readv(reader, [+"1234", IO::Buffer.new(4), +"x" * 1000]) }
        when 2 then waiting(/read/) { machine.read(reader, IO::Buffer.new(100_000)) }
        else waiting(/read/) { machine.read(reader, +"") }
        end
      end
      writes = pipes.last(2).each_with_index.map do |(_, writer), i|
        fill(writer)
        waiting(/write/) { i.zero? ? machine.write(writer, "y" * 5) : machine.writev(writer, ["ab" * 2, "cd" * 3000]) }
      end
      collect
      pipes.first(4).each { |_, writer| machine.write(writer, "z" * 900) }
      assert_equal [900, 900, 900, 900], await_all(strands)
      pipes.last(2).each { |reader, _| assert_equal 65_536, read_exactly(reader, 65_536).size }
      assert_equal [5, 6004], await_all(writes)
      assert_equal "yyyyy", read_exactly(pipes[4].first, 5)
      assert_equal "abab" + "cd" * 3000, read_exactly(pipes[5].first, 6004)
    end
  end

  # The bytes of a short String stand in its object, and a compacting collector moves objects.
  def test_short_strings_are_not_moved_away_from_under_a_readv
    on_machine(faults: false) do |machine|
      lists = Array.new(amount(40)) { Array.new(10) { |i| +"abcdefgh#{i}" } }
      pipes = lists.map { make_pipe }
      strands = lists.zip(pipes).map { |list, (reader, _)| waiting(/readv/) { machine.readv(reader, list) } }
      collect
      expected = lists.map { |list| sample(list.sum(&:bytesize), list.object_id) }
      expected.zip(pipes) { |bytes, (_, writer)| machine.write(writer, bytes) }
      await_all(strands)
      lists.zip(expected) { |list, bytes| assert_bytes bytes, list.join }
    end
  end

  def test_short_strings_are_not_moved_away_from_under_a_writev
    on_machine(faults: false) do |machine|
      pipes = Array.new(amount(40)) { make_pipe.tap { |_, writer| fill(writer) } }
      lists = Array.new(amount(40)) { |n| Array.new(10) { |i| "#{n}+#{i};" } }
      before = lists.map(&:join)
      strands = lists.zip(pipes).map { |list, (_, writer)| waiting(/writev/) { machine.writev(writer, list) } }
      collect
      pipes.zip(before) do |(reader, _), text|
        read_exactly(reader, 65_536)
        assert_equal text, read_exactly(reader, text.bytesize)
      end
      await_all(strands)
    end
  end

  private

  # Leaves holes, so that there is something to move.
  def collect
    holes = Array.new(amount(20_000)) { |i| "hole #{i}" }
    holes.each_index { |i| holes[i] = nil if i.even? }
    GC.start
    GC.compact
    GC.verify_compaction_references(toward: :empty, expand_heap: false) unless GCStress::WANTED
    Array.new(amount(20_000)) { |i| "over #{i}" }
  end
end

class BufferTest < IOCase
  include BufferTests
end

class SimulatedBufferTest < IOCase
  include Simulated
  include BufferTests
end
