# frozen_string_literal: true

# Beside a Ruby thread that never waits, like a request that computes. It holds Ruby's global lock for its whole time slice, and a
# library that releases the lock around a system call waits for the end of that slice.
beside_a_busy_thread = lambda do |busy, &work|
  next work.call unless busy

  stop = false
  thread = Thread.new do
    turns = 0
    turns += 1 until stop
    turns
  end
  work.call
ensure
  stop = true
  thread&.join
end

# `start` runs a block beside the others, and `finish` awaits it. Sends until the time is over, and counts what has
# arrived.
stock = lambda do |meter, seconds, bytes, start, finish|
  reader, writer = IO.pipe
  payload = Bench.payload(0, bytes)
  sent = received = 0
  meter.measure do
    deadline = meter.now + seconds
    writing = start.call do
      while meter.now < deadline
        writer.write(payload)
        sent += bytes
      end
      writer.close
    end
    reading = start.call do
      buffer = String.new(capacity: bytes)
      received += buffer.bytesize while reader.readpartial(bytes, buffer)
    rescue EOFError
      reader.close
    end
    [writing, reading].each(&finish)
  end
  meter.operations = received / bytes
  { lost: sent - received }
end

Bench.table "beside_cpu" do
  title "Beside a busy thread"
  about "Pairs of a 1 KB write and its read on a pipe: alone, and while a Ruby thread computes beside them. Ruby gives each " \
        "of the two threads half of the time at best."
  size seconds: 2.0, bytes: 1024
  quick seconds: 0.3
  warm_up seconds: 0.05
  row "alone", busy: false, quick: false
  row "busy", busy: true
  proof { |**| { lost: 0 } }
  columns :rate, :real_ns
  against_peer :real_ns

  # A thread for the writer and one for the reader.
  contender "threads" do |meter, seconds:, bytes:, busy:|
    beside_a_busy_thread.call(busy) { stock.call(meter, seconds, bytes, Thread.method(:new), :join) }
  end

  # A task for each. The scheduler runs in this thread; the busy one has none.
  contender "async", requires: "async" do |meter, seconds:, bytes:, busy:|
    beside_a_busy_thread.call(busy) do
      Sync { |task| stock.call(meter, seconds, bytes, task.method(:async), :wait) }
    end
  end

  # The stock classes in strands.
  contender "ringspun fs", requires: "ringspun" do |meter, seconds:, bytes:, busy:|
    beside_a_busy_thread.call(busy) do
      Ringspun.run { |machine| stock.call(meter, seconds, bytes, machine.method(:spin), :await) }
    end
  end

  # A strand for each, on the machine of this thread.
  contender "ringspun", requires: "ringspun" do |meter, seconds:, bytes:, busy:|
    sent = received = 0
    payload = Bench.payload(0, bytes)
    beside_a_busy_thread.call(busy) do
      Ringspun.run do |machine|
        reader, writer = machine.pipe
        meter.measure do
          deadline = meter.now + seconds
          writing = machine.spin do
            sent += machine.write(writer, payload) while meter.now < deadline
            machine.close(writer)
          end
          reading = machine.spin do
            buffer = String.new(capacity: bytes)
            while (read = machine.read(reader, buffer, bytes)).positive?
              received += read
            end
            machine.close(reader)
          end
          machine.join(writing, reading)
        end
      end
    end
    meter.operations = received / bytes
    { lost: sent - received }
  end

  targets "rate >= 100_000 at busy", "cpu_ns <= 1.1 x ringspun epoll",
          "real_ns flat within 200% at alone and busy",
          "ringspun fs: real_ns flat within 200% at alone and busy"
end
