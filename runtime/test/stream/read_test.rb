# frozen_string_literal: true

require_relative "over_tls"

# Stream's reading half: whatever way the bytes come, none is lost, doubled or returned to the wrong call.
module StreamReadTests
  TEXT = "one\ntwo\r\n\nfour|five||\r\nlast"

  # What reading does, as a program that takes everything apart in all the ways that there are.
  def self.take_apart(stream)
    [stream.read_line, stream.peek(4), stream.read_line, stream.read_line(chomp: false), stream.read_until("|"),
     stream.read(2), stream.skip(2), stream.read_until("||"), stream.read_line(limit: 3), stream.eof?, stream.read_partial(1),
     stream.read, stream.eof?, stream.read_line, stream.read_partial, stream.read(1), stream.read, stream.read_until("x")]
  end

  APART = ["one", "two\r", "two", "\n", "four", "fi", nil, "", "", false, "l", "ast", true, nil, nil, nil, "", nil].freeze

  def test_bytes_that_come_in_two_pieces
    each_split(TEXT) do |pieces|
      on_machine(faults: false) do
        stream, other = make_stream
        sender = spin do
          pieces.each do |piece|
            send_all(other, piece)
            settle
          end
          end_sending(other)
        end
        assert_equal APART, StreamReadTests.take_apart(stream)
        sender.join
      end
    end
  end

  def test_bytes_that_come_one_by_one
    on_machine do
      stream, other = make_stream
      sender = dribble(other, TEXT)
      assert_equal APART, StreamReadTests.take_apart(stream)
      sender.join
    end
  end

  def test_everything_is_there_at_once
    on_machine do
      stream, other = make_stream
      send_all(other, TEXT)
      end_sending(other)
      assert_equal APART, StreamReadTests.take_apart(stream)
    end
  end

  def test_into_a_buffer
    on_machine do
      stream, other = make_stream(encoding: Encoding::UTF_8)
      sender = dribble(other, "Öl and #{"x" * 5_000} and so on")
      buffer = +"what was there"
      assert_same buffer, stream.read(3, buffer)
      assert_equal "Öl", buffer
      assert_same buffer, stream.read(5_005, buffer)
      assert_equal " and #{"x" * 5_000}", buffer
      assert_same buffer, stream.read_partial(1, buffer)
      assert_equal " ", buffer
      assert_same buffer, stream.read(nil, buffer)
      assert_equal "and so on", buffer
      assert_predicate buffer, :ascii_only?
      sender.join
    end
  end

  def test_a_buffer_shares_nothing_with_its_copies
    on_machine do
      stream, other = make_stream
      sender = spin { 3.times { |number| send_all(other, number.to_s * 4096) } }
      buffer = stream.read(4096)
      copies = [buffer.dup, buffer[1..], { buffer => true }.keys.first]
      stream.read(4096, buffer)
      copies << buffer.dup
      stream.read_partial(4096, buffer)
      assert_equal ["0" * 4096, "0" * 4095, "0" * 4096, "1" * 4096], copies
      sender.join
    end
  end

  def test_a_buffer_at_the_end_and_before
    on_machine do
      stream, other = make_stream
      send_all(other, "ab")
      end_sending(other)
      buffer = +"kept"
      assert_raises(Ringspun::EndOfStreamError) { stream.read(3, buffer) }
      assert_equal "kept", buffer
      stream.skip(2)
      %i[read read_partial].each do |reading|
        assert_nil stream.public_send(reading, 3, buffer.replace("kept"))
        assert_empty buffer
      end
      assert_same buffer, stream.read(nil, buffer.replace("kept"))
      assert_empty buffer
    end
  end

  def test_what_is_no_buffer
    on_machine do
      stream, other = make_stream
      send_all(other, "ab")
      error = assert_raises(Ringspun::UsageError) { stream.read(1, :b) }
      assert_match(/read: the buffer must be a String, got :b/, error.message)
      assert_raises(FrozenError) { stream.read_partial(1, "frozen") }
      # Meanwhile, by somebody else.
      buffer = +"kept"
      spin do
        buffer.freeze
        send_all(other, "cd")
      end
      assert_raises(FrozenError) { stream.read(4, buffer) }
      assert_equal %w[kept abcd], [buffer, stream.read(4)]
    end
  end

  def test_each_line
    on_machine do
      stream, other = make_stream
      lines = Array.new(amount(2_000)) { |i| "#{i}#{"x" * (i % 97)}" }
      sender = spin do
        send_all(other, "#{lines.join("\n")}\n")
        end_sending(other)
      end
      received = []
      assert_nil(stream.each_line { |line| received << line })
      assert_equal lines, received
      sender.join
    end
  end

  def test_each_line_as_an_enumerator_with_options
    on_machine do
      stream, other = make_stream
      send_all(other, "a\nb\nccc\n")
      lines = stream.each_line(chomp: false, limit: 2)
      assert_equal ["a\n", "b\n"], lines.first(2)
      assert_raises(Ringspun::LimitError) { stream.each_line(limit: 2).next }
    end
  end

  def test_each_chunk
    on_machine do
      stream, other = make_stream
      expected = sample(100_000)
      sender = spin do
        send_all(other, expected)
        end_sending(other)
      end
      received = +"".b
      assert_nil(stream.each_chunk { |bytes| received << bytes })
      assert_bytes expected, received
      sender.join
    end
  end

  def test_a_block_that_breaks_leaves_the_rest
    on_machine do
      stream, other = make_stream
      send_all(other, "a\nb\nc\n")
      assert_equal("b", stream.each_line { |line| break line if line == "b" })
      assert_equal "c", stream.read_line
    end
  end

  def test_large_reads
    on_machine(faults: false) do
      stream, other = make_stream
      expected = sample(amount(1_000_000))
      sender = spin { send_all(other, expected) }
      assert_equal expected.byteslice(0, 10), stream.peek(10)
      assert_bytes expected, stream.read(expected.bytesize)
      sender.join
    end
  end

  def test_an_idle_stream_holds_no_buffer
    on_machine do
      stream, other = make_stream
      reader = waiting(/recv on/) { stream.read_line }
      assert_no_buffer
      send_all(other, "x\n")
      assert_equal "x", reader.await
      assert_no_buffer
    end
  end

  # --- what is not there in time ---

  def test_a_call_has_a_time
    on_machine do
      stream, other = make_stream
      send_all(other, "abc")
      %i[read_line eof? read].each do |method|
        stream.eof? # the bytes have come
        next if method == :eof?

        error = assert_raises(Ringspun::TimeoutError) { stream.public_send(method, timeout: 0.01) }
        assert_equal "#{method}: timed out after 0.01 s", error.message
      end
      assert_raises(Ringspun::TimeoutError) { stream.read(4, timeout: 0.01) }
      assert_raises(Ringspun::TimeoutError) { stream.read_until("|", timeout: 0.01) }
      assert_raises(Ringspun::TimeoutError) { stream.peek(4, timeout: 0.01) }
      assert_equal "abc", stream.read_partial(timeout: 0)
      assert_raises(Ringspun::TimeoutError) { stream.eof?(timeout: 0.01) }
      assert_raises(Ringspun::TimeoutError) { stream.read_partial(timeout: 0) }
    end
  end

  def test_a_stream_has_a_time
    on_machine do |machine|
      stream, other = make_stream(timeout: 0.01)
      assert_in_delta 0.01, stream.timeout
      assert_equal "read_line: timed out after 0.01 s", assert_raises(Ringspun::TimeoutError) { stream.read_line }.message
      stream.timeout = nil
      assert_nil stream.timeout
      assert_raises(Ringspun::TimeoutError) { machine.timeout(0.02) { stream.read_line } }
      send_all(other, "x\n")
      assert_equal "x", stream.read_line
    end
  end

  # Cancelled between any two bytes, whatever it was reading.
  def test_a_reader_that_is_cancelled_has_taken_nothing
    calls = [[:read_line], [:read, 9], [:read_until, "|"], [:peek, 9], [:read], [:each_line]]
    calls.each do |call, *arguments|
      8.times do |came|
        on_machine(faults: false) do |machine|
          stream, other = make_stream
          reader = waiting(/recv on/) { call == :each_line ? stream.each_line { flunk } : stream.public_send(call, *arguments) }
          came.times do |i|
            send_all(other, i.to_s)
            settle
          end
          machine.terminate(reader)
          assert_raises(Ringspun::TerminatedError) { reader.await }
          assert_nothing_in_flight
          send_all(other, "rest\n")
          assert_equal "#{"0123456".byteslice(0, came)}rest", stream.read_line, "#{call} after #{came} bytes"
        end
      end
    end
  end

  def test_a_skip_that_is_cut_short_is_finished_by_the_next_reader
    on_machine do
      stream, other = make_stream
      send_all(other, "123")
      assert_raises(Ringspun::TimeoutError) { stream.skip(6, timeout: 0.01) }
      send_all(other, "456line\n")
      assert_equal "line", stream.read_line
    end
  end

  # --- ends and limits ---

  def test_the_stream_ends_too_early
    on_machine do
      stream, other = make_stream
      send_all(other, "abc")
      end_sending(other)
      assert_match(/read: .* after 3 of 5 bytes/, assert_raises(Ringspun::EndOfStreamError) { stream.read(5) }.message)
      assert_match(/after 3 bytes without/, assert_raises(Ringspun::EndOfStreamError) { stream.read_until("\n") }.message)
      assert_equal "abc", stream.peek(5)
      assert_equal "ab", stream.read(2)
      assert_match(/skip: .* 1 of 2/, assert_raises(Ringspun::EndOfStreamError) { stream.skip(2) }.message)
      assert_nil stream.read(1)
      assert_equal "", stream.peek(1)
    end
  end

  def test_a_line_without_end
    on_machine(faults: false) do
      stream, other = make_stream
      sender = spin { send_all(other, "x" * 1_000_000) }
      2.times do
        error = assert_raises(Ringspun::LimitError) { stream.read_line(limit: 10_000) }
        assert_match(/read_line: no end within the limit of 10000 bytes/, error.message)
      end
      assert_raises(Ringspun::LimitError) { stream.read_line }
      assert_raises(Ringspun::LimitError) { stream.read_until("ab", limit: 70_000) }
      assert_operator stream.read_partial.bytesize, :<, 300_000
      stream.close
      error_of { sender.join }
    end
  end

  # It gives way to them between two pieces, and knows how much of what they have left it has searched.
  def test_a_search_while_others_read_and_search
    on_machine(faults: false) do |machine|
      stream, other = make_stream
      sender = spin { send_all(other, "#{"x" * 300_000}mark") }
      found = taken = nil
      strands = [spin { found = stream.read_until("mark", limit: 400_000) }]
      strands << spin { taken = take_meanwhile(machine, stream) { found } }
      [sender, *strands].each(&:join)
      assert_equal 300_000, found.bytesize + taken
    end
  end

  def test_a_limit_is_one_for_bytes_that_an_earlier_call_has_searched
    on_machine do
      stream, other = make_stream
      send_all(other, "x" * 200)
      end_sending(other)
      stream.peek(201)
      2.times { assert_raises(Ringspun::LimitError) { stream.read_line(limit: 100) } }
      assert_raises(Ringspun::LimitError) { stream.each_line(limit: 199) { flunk } }
      assert_equal "x" * 200, stream.read_line(limit: 200)
    end
  end

  def test_a_limit_does_not_wait_for_more_bytes_when_an_earlier_call_has_searched
    on_machine do
      stream, other = make_stream
      send_all(other, "x" * 200)
      stream.peek(200)
      2.times { assert_raises(Ringspun::LimitError) { stream.read_line(limit: 100, timeout: 60) } }
    end
  end

  def test_a_limit_is_for_what_comes_before_the_end
    on_machine do
      stream, other = make_stream
      send_all(other, "12345\r\n12345\n123456\n")
      assert_equal "12345", stream.read_line(limit: 6)
      assert_equal "12345", stream.read_line(limit: 5)
      assert_raises(Ringspun::LimitError) { stream.read_line(limit: 5) }
      assert_equal "123456", stream.read_line(limit: 6)
    end
  end

  def test_the_other_side_closes
    on_machine do
      stream, other = make_stream
      send_all(other, "ab")
      close(other)
      assert_equal "ab", stream.read_line
      assert_nil stream.read_line
      assert_predicate stream, :eof?
    end
  end

  def test_one_strand_at_a_time
    on_machine do
      stream, other = make_stream
      first = waiting(/recv/) { stream.read_line }
      assert_match(/another strand reads/, assert_raises(Ringspun::UsageError) { stream.read_line }.message)
      send_all(other, "x\n")
      assert_equal "x", first.await
    end
  end

  # It would be taken away from the one that waits for the rest of it.
  def test_another_strand_gets_nothing_of_what_has_come_to_the_first
    on_machine do
      stream, other = make_stream
      first = waiting(/recv/) { stream.read_line }
      send_all(other, "abc")
      2.times { settle }
      [[:read_partial], [:skip, 5], [:peek, 1], [:read_until, "b"]].each do |call|
        assert_match(/another strand reads/, assert_raises(Ringspun::UsageError) { stream.public_send(*call) }.message)
      end
      send_all(other, "def\nnext\n")
      assert_equal "abcdef", first.await
      assert_equal "next", stream.read_line
    end
  end

  # They have come, and the reader has had no turn yet: a message from another thread is taken first, and wakes this strand first.
  def test_it_is_closed_when_bytes_have_just_come
    on_machine(faults: false) do |machine|
      stream, other = make_stream
      reader = waiting(/recv/) { stream.read_line }
      machine.yield # its turn begins anew: one that has lasted for long ends where the bytes are sent
      send_all(other, "line\nrest")
      closer = machine.running
      until machine.metrics[:ops_in_flight].zero?
        thread = Thread.new { machine.schedule(closer) }
        Thread.pass while thread.alive?
        machine.park
      end
      assert_equal :ready, reader.state
      stream.close
      assert_raises(Ringspun::ClosedError) { reader.await }
      assert_no_buffer
    end
  end

  def test_it_is_closed_while_a_strand_reads
    on_machine do
      stream, = make_stream
      reader = waiting(/recv/) { stream.read_line }
      stream.close
      assert_raises(Ringspun::ClosedError) { reader.await }
      assert_predicate stream, :closed?
      assert_nil stream.close
      %i[read_line read read_partial eof? flush close_write].each do |method|
        assert_raises(Ringspun::ClosedError) { stream.public_send(method) }
      end
    end
  end

  # The number may be another's by then.
  def test_the_descriptor_is_closed_by_others
    on_machine do |machine|
      one, other = make_socketpair
      stream = Ringspun::Stream.new(one)
      stream.write("x")
      close(one)
      strangers = make_socketpair
      assert_raises(Ringspun::ClosedError) { stream.read_line }
      assert_raises(Ringspun::ClosedError) { stream.flush }
      assert_raises(Ringspun::ClosedError) { stream.write("x") }
      assert_equal 0, machine.recv(other, +"")
      assert_raises(Ringspun::ClosedError) { stream.close }
      assert_predicate stream, :closed?
      strangers.each { |fd| assert_equal 1, machine.send(fd, "y") }
      strangers.each { |fd| assert_equal "y", read_exactly(fd, 1) }
    end
  end

  # The same result as of a model that knows everything at once.
  def test_readers_against_a_model
    on_machine(faults: false) do
      amount(60).times do |seed|
        random = Random.new(seed)
        text = Array.new(random.rand(200)) { "ab\r\n|"[random.rand(5)] }.join
        stream, other = make_stream
        sender = dribble(other, text, 1 + random.rand(9))
        model = text.dup
        until model.empty?
          assert_equal(*one_step(random, model, stream), "seed #{seed}")
        end
        assert_nil stream.read_line
        sender.join
        stream.close
        close(other)
      end
    end
  end

  private

  # Takes a byte and searches for another mark, again and again, as far as the bytes go that another strand has read.
  def take_meanwhile(machine, stream)
    taken = 0
    until yield
      begin
        taken += stream.read(1).bytesize
        stream.read_until("y", limit: 1)
      rescue Ringspun::UsageError, Ringspun::LimitError
        nil
      end
      machine.yield
    end
    taken
  end

  # What the model says, and the stream.
  def one_step(random, model, stream)
    case random.rand(4)
    when 0 then [model.slice!(/\A.*?(\n|\z)/m).sub(/\r?\n\z/, ""), stream.read_line]
    when 1 then [model.slice!(0, wanted = [1 + random.rand(7), model.size].min), stream.read(wanted)]
    when 2 then [model[0, wanted = 1 + random.rand(7)], stream.peek(wanted)]
    else
      mark = ["|", "\r\n", "||"][random.rand(3)]
      return [model[0, 1], stream.peek(1)] unless model.include?(mark)

      [model.slice!(0, model.index(mark) + mark.size).delete_suffix(mark), stream.read_until(mark)]
    end
  end
end

class StreamReadTest < StreamCase
  include StreamReadTests

  # The first read has 16 KB, and finds more than that.
  def test_what_flows_is_read_in_large_pieces
    on_machine do |machine|
      stream, other = make_stream
      bytes = sample(100_000)
      send_all(other, bytes)
      before = machine.metrics[:ops_inline]
      assert_equal bytes, stream.read(bytes.bytesize)
      assert_includes 1..4, machine.metrics[:ops_inline] - before
    end
  end

  def test_the_encoding_of_what_it_returns
    on_machine do
      stream, other = make_stream
      send_all(other, "ä\nö")
      assert_equal Encoding::BINARY, stream.read_line.encoding
      stream, other = make_stream(encoding: "UTF-8")
      send_all(other, "ä\nö")
      assert_equal "ä", stream.read_line
      assert_equal "ö", stream.read_partial
    end
  end

  def test_pipes_and_files
    on_machine do |machine|
      reader, writer = IO.pipe
      from, to = [reader, writer].map { |io| keep_stream(Ringspun::Stream.new(io)) }
      line = machine.spin { from.read_line }
      to.write_line("x")
      assert_equal "x", line.await
      assert_same reader, from.to_io
      Dir.mktmpdir do |folder|
        File.write("#{folder}/file", "a\nb\n")
        file = Ringspun::Stream.new(File.open("#{folder}/file"))
        assert_equal %w[a b], file.each_line.to_a
        file.close
      end
    end
  end

  def test_wrong_use
    on_machine do
      stream, = make_stream
      assert_raises(Ringspun::UsageError) { Ringspun::Stream.new("socket") }
      error = assert_raises(Ringspun::UsageError) { Ringspun::Stream.new(Struct.new(:to_io).new($stdin)) }
      assert_match(/over a descriptor or an IO, got #<struct/, error.message)
      assert_raises(Ringspun::UsageError) { Ringspun::Stream.new(stream.to_io, high_water: 0) }
      assert_raises(Ringspun::UsageError) { Ringspun::Stream.allocate.read_line }
      assert_raises(Ringspun::UsageError) { stream.dup }
      assert_raises(Ringspun::UsageError) { stream.read(-1) }
      assert_raises(Ringspun::UsageError) { stream.read_partial(0) }
      assert_raises(Ringspun::UsageError) { stream.peek(0) }
      assert_raises(Ringspun::UsageError) { stream.read_line(limit: 0) }
      assert_raises(Ringspun::UsageError) { stream.read_until("") }
      assert_raises(Ringspun::UsageError) { stream.read_until(nil) }
      assert_raises(ArgumentError) { stream.read_line(limits: 1) }
    end
  end
end

class SimulatedStreamReadTest < StreamCase
  include StreamReadTests
  include Simulated
end

class TLSStreamReadTest < StreamCase
  include StreamReadTests
  include OverTLS
end
