# frozen_string_literal: true

require_relative "../io/io_case"

# What the tests of Ringspun::Stream share.
class StreamCase < IOCase
  # Two streams that are connected, closed at the end.
  def make_streams(**options)
    @machine.socketpair.map { |fd| keep_stream(Ringspun::Stream.new(fd, **options)) }
  end

  # A stream, and the descriptor of the other side.
  def make_stream(**)
    one, other = make_socketpair
    [keep_stream(Ringspun::Stream.new(one, **).tap { @kept.delete(one) }), other]
  end

  def keep_stream(stream)
    @streams << stream
    stream
  end

  def send_all(descriptor, bytes) = @machine.send(descriptor, bytes)
  def end_sending(descriptor) = @machine.shutdown(descriptor, :WR)

  # What comes in pieces of that size, each only when the last one was taken, as far as this side can tell.
  def dribble(descriptor, bytes, size = 1)
    spin do
      (0...bytes.bytesize).step(size) do |at|
        send_all(descriptor, bytes.byteslice(at, size))
        settle
      end
      end_sending(descriptor)
    end
  end

  # Every way to cut the bytes in two.
  def each_split(bytes)
    (0..bytes.bytesize).each { |at| yield [bytes.byteslice(0, at), bytes.byteslice(at..)].reject(&:empty?) }
  end

  def assert_no_buffer = assert_equal(0, @machine.metrics[:stream_buffers], "a buffer is still in use")

  private

  def with_machine(machine)
    @streams = []
    super
  ensure
    @streams.each { |stream| error_of { stream.close(timeout: 1) } }
    assert_no_buffer
  end
end
