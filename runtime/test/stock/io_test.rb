# frozen_string_literal: true

require "test_helper"
require "support/stock"
require "stringio"
require "tempfile"
require "zlib"

# IO objects, and what is built on them.
class StockIOTest < Minitest::Test
  include Stock

  def setup
    super
    @ios = []
  end

  def teardown
    @ios.each(&:close)
    super
  end

  def pipe = IO.pipe.each { |io| @ios << io }

  def test_gets_waits_for_a_line
    reader, writer = pipe
    Ringspun.run do
      line = parked { reader.gets }
      writer.write("one ")
      machine.yield
      assert_predicate line, :alive?
      writer.write("line\nand more")
      assert_equal "one line\n", line.await
      writer.close
      assert_equal "and more", reader.read
    end
  end

  def test_each_line_of_a_writer_that_waits_for_room
    reader, writer = pipe
    lines = Array.new(2000) { |i| "line #{i} #{"x" * 100}\n" }
    Ringspun.run do
      writing = parked { lines.each { |line| writer << line }.then { writer.close } }
      assert_equal lines, reader.each_line.to_a
      writing.join
    end
  end

  # What CRuby writes at once is what the IO has kept and the new piece, and others add to the first while that waits.
  [3, 5, 111].each do |seed|
    define_method("test_an_io_with_a_buffer_that_many_strands_write_to_loses_nothing_#{seed}") do
      random = Random.new(seed)
      lengths = Array.new(10) { Array.new(200) { random.rand(1..(random.rand < 0.3 ? 12_000 : 200)) } }
      reader, writer = pipe
      writer.sync = false
      got = Hash.new(0)
      Ringspun.run do
        reading = Ringspun.spin { reader.each_line { |line| line.each_char { |char| got[char] += 1 } } }
        strands = lengths.map.with_index { |list, i| Ringspun.spin { write_lines(writer, ("a".ord + i).chr, list) } }
        strands.each(&:join)
        writer.close
        reading.join
      end
      assert_equal 2000, got.delete("\n")
      assert_equal lengths.map(&:sum), got.sort.map(&:last)
    end
  end

  def write_lines(io, char, lengths)
    lengths.each { |length| length.odd? ? io.puts(char * length) : io.write("#{char * length}\n") }
    io.flush
  end

  def test_syswrite_waits_although_the_io_has_a_buffer
    reader, writer = pipe
    writer.sync = false
    Ringspun.run do
      full = writer.write_nonblock("x" * 100_000)
      writing = parked { writer.syswrite("y") }
      assert_equal "x" * full, reader.read(full)
      assert_equal 1, writing.await
      assert_equal "y", reader.read(1)
    end
  end

  def test_readpartial_read_nonblock_and_getc
    reader, writer = pipe
    Ringspun.run do
      partial = parked { reader.readpartial(100) }
      assert_equal :wait_readable, reader.read_nonblock(1, exception: false)
      writer.write("some")
      assert_equal "some", partial.await
      char = parked { reader.getc }
      writer.write("é")
      assert_equal "é", char.await
    end
  end

  def test_select
    pairs = Array.new(3) { pipe }
    readers = pairs.map(&:first)
    Ringspun.run do
      chosen = parked { IO.select(readers, nil, nil) }
      pairs[1].last.write("x")
      assert_equal [[readers[1]], [], []], chosen.await
      assert_equal [[readers[1]], pairs.map(&:last), []], IO.select(readers, pairs.map(&:last), nil, 0)
      readers[1].read_nonblock(1)
      assert_nil parked { IO.select(readers, nil, nil, 0.1) }.await
    end
  end

  def test_select_on_a_buffer_that_is_not_empty
    reader, writer = pipe
    Ringspun.run do
      writer.write("one\ntwo\n")
      assert_equal "one\n", reader.gets
      assert_equal [[reader], [], []], IO.select([reader], nil, nil)
    end
  end

  def test_copy_stream_between_pipes
    (from, feed), (drain, to) = pipe, pipe
    bytes = Random.new(1).bytes(300_000)
    Ringspun.run do
      copying = parked { IO.copy_stream(from, to) }
      feeding = machine.spin { feed.write(bytes).tap { feed.close } }
      copied = machine.spin { drain.read(bytes.bytesize) }
      assert_same_bytes bytes, copied.await
      assert_equal [bytes.bytesize] * 2, [copying, feeding].map(&:await)
    end
  end

  def test_copy_stream_from_and_to_files
    bytes = Random.new(2).bytes(200_000)
    Tempfile.create(binmode: true) do |file|
      file.write(bytes)
      file.rewind
      reader, writer = pipe
      Ringspun.run do
        copying = parked { IO.copy_stream(file, writer).tap { writer.close } }
        assert_same_bytes bytes, reader.read
        assert_equal bytes.bytesize, copying.await
        into = StringIO.new
        file.rewind
        assert_equal bytes.bytesize, IO.copy_stream(file, into)
        assert_same_bytes bytes, into.string
      end
    end
  end

  def test_tempfiles_of_many_strands
    Ringspun.run do
      texts = Array.new(20) do |i|
        machine.spin do
          Tempfile.create("strand") do |file|
            100.times { |line| file.write("#{i}: #{line}\n") && machine.yield }
            file.flush.rewind
            file.read
          end
        end
      end
      assert_equal(Array.new(20) { |i| Array.new(100) { |line| "#{i}: #{line}\n" }.join }, machine.await(*texts))
    end
  end

  def test_a_tempfile_read_by_others_while_it_grows
    Ringspun.run do
      reader, writer = pipe
      Tempfile.open("grows") do |file|
        writing = parked { 3.times { file.write("#{reader.gets.chomp} ") && file.flush } }
        read = %w[a b c].map do |word|
          writer.puts(word)
          until_parked(writing) if writing.alive?
          yield_until { File.read(file.path).end_with?("#{word} ") }
          File.read(file.path)
        end
        assert_equal ["a ", "a b ", "a b c "], read
        writing.join
        file.unlink
      end
    end
  end

  def test_gzip_over_a_pipe
    reader, writer = pipe
    text = Array.new(20_000) { |i| "#{Random.new(i).rand}\n" }.join # more than a pipe holds, also when it is packed
    Ringspun.run do
      packing = parked do
        packer = Zlib::GzipWriter.new(writer)
        text.each_line { |line| packer << line }
        packer.close
      end
      assert_same_bytes text, Zlib::GzipReader.new(reader).read
      packing.join
    end
  end

  def test_gzip_line_by_line
    reader, writer = pipe
    Ringspun.run do
      unpacking = parked { Zlib::GzipReader.new(reader).each_line.map(&:chomp) }
      packer = Zlib::GzipWriter.new(writer)
      %w[one two three].each do |word|
        packer.puts(word)
        packer.flush
        until_parked(unpacking)
      end
      packer.close
      assert_equal %w[one two three], unpacking.await
    end
  end

  def test_a_file_locked_by_another_strand
    Tempfile.create do |file|
      Ringspun.run do
        reader, writer = pipe
        locked = Thread::Queue.new
        holding = machine.spin { File.open(file.path) { |mine| locked.push(mine.flock(File::LOCK_EX)) && reader.gets } }
        locked.pop
        refute File.open(file.path) { |mine| mine.flock(File::LOCK_EX | File::LOCK_NB) }
        writer.puts
        holding.join
        assert_equal 0, file.flock(File::LOCK_EX | File::LOCK_NB)
      end
    end
  end

  def test_string_io_as_ever
    reader, writer = pipe
    Ringspun.run do
      copying = parked { StringIO.new.tap { |into| IO.copy_stream(reader, into) }.string }
      IO.copy_stream(StringIO.new("from memory"), writer)
      writer.close
      assert_equal "from memory", copying.await
    end
  end
end
