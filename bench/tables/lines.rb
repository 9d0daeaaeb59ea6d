# frozen_string_literal: true

require "socket"

# A process that sends the lines while the contender reads them. Yields the other end.
with_lines = lambda do |lines, bytes, &block|
  near, far = UNIXSocket.pair
  sender = fork do
    near.close
    block_of = "#{"x" * (bytes - 1)}\n" * 800
    (lines / 800).times { far.write(block_of) }
    exit!(0)
  end
  far.close
  block.call(near)
ensure
  near.close unless near.closed?
  Process.wait(sender)
end

# By the methods of IO, which its like have too.
read_lines = lambda do |meter, lines, io|
  meter.operations = lines
  meter.measure do
    sum = 0
    while (line = io.gets(chomp: true))
      sum += line.bytesize
    end
    { bytes: sum }
  end
end

stock = ->(meter, lines, bytes) { with_lines.call(lines, bytes) { |socket| read_lines.call(meter, lines, socket) } }

Bench.table "lines" do
  title "Lines from a socket"
  about "100 MB of lines of 80 bytes, which another process sends through a unix socket; the contender makes a String of " \
        "each. An operation is a line."
  size lines: 1_250_400, bytes: 80
  quick lines: 125_600
  warm_up lines: 8_000
  row "80 B"
  proof { |lines:, bytes:| { bytes: lines * (bytes - 1) } }
  columns :real_ns, :cpu_ns, :rate
  against_peer :cpu_ns, :real_ns

  # IO#gets, in the main thread.
  contender "threads" do |meter, lines:, bytes:|
    stock.call(meter, lines, bytes)
  end

  # The same in a task.
  contender "async", requires: "async" do |meter, lines:, bytes:|
    Sync { stock.call(meter, lines, bytes) }
  end

  # io-stream, on which Async's own protocols are built.
  contender "io-stream", requires: File.join(Bench::ROOT, "bench/peers/io_stream") do |meter, lines:, bytes:|
    with_lines.call(lines, bytes) do |socket|
      Sync { read_lines.call(meter, lines, IO::Stream::Buffered.wrap(socket)) }
    end
  end

  # IO#gets again, in a strand.
  contender "ringspun fs", requires: "ringspun" do |meter, lines:, bytes:|
    Ringspun.run { stock.call(meter, lines, bytes) }
  end

  contender "ringspun", requires: "ringspun" do |meter, lines:, bytes:|
    with_lines.call(lines, bytes) do |socket|
      Ringspun.run do
        meter.operations = lines
        Ringspun::Stream.open(socket) do |stream|
          meter.measure do
            sum = 0
            while (line = stream.read_line)
              sum += line.bytesize
            end
            { bytes: sum }
          end
        end
      end
    end
  end

  targets "cpu_ns <= 0.83 x threads", "cpu_ns <= 1.0 x io-stream", "cpu_ns <= 1.1 x ringspun epoll"
end
