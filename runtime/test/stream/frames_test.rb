# frozen_string_literal: true

require_relative "over_tls"
require "support/seeds"

# Frames, lines and bodies larger than a buffer of a stream first holds: a read asks for more than lies behind what earlier reads
# have taken.
module StreamFramesTests
  def test_a_read_of_more_than_is_left_behind_what_was_read
    on_machine do
      from, to = make_streams
      bytes = sample(IOCase::LARGE)
      writer = waiting { to.write(bytes) }
      assert_bytes bytes.byteslice(0, 20_000), from.read(20_000)
      assert_bytes bytes.byteslice(20_000, 50_000), from.read(50_000)
      assert_bytes bytes.byteslice(70_000..), from.read(IOCase::LARGE - 70_000)
      writer.join
    end
  end

  def test_frames_of_random_lengths
    each_seed do |random, from, to|
      frames = Array.new(amount(60)) { random.bytes(length(random, 65_536)) }
      writer = write_all(to, frames.map { |frame| [frame.bytesize].pack("N") + frame }, random)
      frames.each do |frame|
        length = from.read(4).unpack1("N")
        assert_bytes frame.byteslice(0, 3), from.peek([length, 3].min) if length.positive? && random.rand(4).zero?
        assert_bytes frame, length.zero? ? "" : from.read(length)
      end
      writer.join
      assert_predicate from, :eof?
    end
  end

  def test_lines_of_random_lengths
    each_seed do |random, from, to|
      lines = Array.new(amount(60)) { (97 + random.rand(26)).chr * length(random, 60_000) }
      writer = write_all(to, lines.map { |line| "#{line}\n" }, random)
      expected = lines.each
      from.each_line { |line| assert_bytes expected.next, line }
      assert_raises(StopIteration) { expected.next }
      writer.join
    end
  end

  def test_bodies_that_come_one_behind_the_other
    each_seed do |random, from, to|
      bodies = Array.new(amount(40)) { random.bytes(10_000 + random.rand(50_000)) }
      writer = write_all(to, bodies.map { |body| "POST / HTTP/1.1\r\ncontent-length: #{body.bytesize}\r\n\r\n#{body}" }, random)
      bodies.each do |body|
        assert_equal "POST / HTTP/1.1", from.read_line
        length = Integer(from.read_line[/\d+/])
        assert_equal "", from.read_line
        assert_bytes body, from.read(length)
      end
      writer.join
      assert_nil from.read_line
    end
  end

  private

  def each_seed
    Seeds.of_the_day(3).each do |seed|
      on_machine do
        yield Random.new(seed), *make_streams
      end
    rescue Minitest::Assertion => error
      raise error, "#{error.message}\nRINGSPUN_SEED=#{seed} runs it again"
    end
  end

  # Short ones as well, so that what was taken is now much and now little of what is there.
  def length(random, most) = random.rand(most >> random.rand(8))

  def write_all(stream, parts, random)
    spin do
      parts.each do |part|
        stream.write(part)
        settle if random.rand(3).zero?
      end
      end_sending(stream)
    end
  end

  def end_sending(stream) = stream.close_write
end

class StreamFramesTest < StreamCase
  include StreamFramesTests
end

class SimulatedStreamFramesTest < StreamCase
  include StreamFramesTests
  include Simulated
end

class TLSStreamFramesTest < StreamCase
  include StreamFramesTests
  include OverTLS
end
