# frozen_string_literal: true

# Calls of a stream. Who reads from it while another does is refused, so readers take turns.
class RandomWaits
  CALLS_OF.merge!(
    stream_line: -> { @reading.synchronize { @stream.read_line(timeout: limit) } },
    stream_read: -> { reading { @stream.read(@random.rand(1..8), timeout: limit) } },
    stream_partial: -> { reading { @stream.read_partial(timeout: limit) } },
    stream_until: -> { reading { @stream.read_until("n", timeout: limit) } },
    stream_each_line: -> { reading { @stream.each_line(timeout: limit) { break } } },
    stream_each_chunk: -> { reading { @stream.each_chunk(timeout: limit) { break } } },
    stream_peek: -> { reading { @stream.peek(3, timeout: limit) } },
    stream_skip: -> { reading { @stream.skip(3, timeout: limit) } },
    stream_eof: -> { reading { @stream.eof?(timeout: limit) } },
    stream_write: -> { @stream.write("x\n", timeout: limit).then { @stream.flush(timeout: limit) } },
    stream_write_line: -> { @stream.write_line("abc" * @random.rand(1..2000), timeout: limit) },
    stream_write_much: -> { @stream.write("abc" * 200_000, timeout: limit) },
    stream_copy: -> { @reading.synchronize { @stream.copy_to(@pipe[1], 3, timeout: limit) } },
    stream_far: -> { @machine.send(@far, "line\n") },
    stream_far_read: -> { @machine.recv(@far, +"", 100_000) },
    stream_close: -> { with_stream { |stream| reader_of(stream).then { stream.write(some_bytes, timeout: limit) } } },
    stream_close_write: -> { with_stream { |stream| stream.write(some_bytes).then { stream.close_write(timeout: limit) } } }
  )

  private

  def reading(&) = @reading.synchronize(&)

  def some_bytes = "x" * @random.rand(1..300_000)

  # It still waits when the stream is closed.
  def reader_of(stream) = @machine.spin { ending { stream.read_line(timeout: limit) } }

  def with_stream
    near, far = @machine.socketpair
    stream = Ringspun::Stream.new(near)
    yield stream
  ensure
    @machine.scope(shield: true) do
      ending { stream.close(timeout: limit) }
      @machine.close(far)
    end
  end
end
