# frozen_string_literal: true

# The stock classes, which threads and Async's scheduler share. `write` on a pipe is unbuffered (the writer of IO.pipe has sync
# on), and `readpartial` into a reused buffer is the cheapest stock read that waits in a scheduler: `sysread` raises EAGAIN.
stock_group = lambda do |group, chunks, bytes, tally, start|
  reader, writer = IO.pipe
  payload = Bench.payload(group, bytes)
  writing = start.call do
    chunks.times { writer.write(payload) }
    writer.close
  end
  reading = start.call do
    buffer = String.new(capacity: bytes)
    received = 0
    while received < chunks * bytes
      reader.readpartial(bytes, buffer)
      received += buffer.bytesize
    end
    reader.close
    tally << [received, buffer == payload]
  end
  [writing, reading]
end

proof_of = ->(tally) { { bytes: tally.sum(&:first), intact: tally.count(&:last) } }

Bench.table "pipe" do
  title "I/O: pipe"
  about "50 groups, each a pipe, a writer that writes 1 KB 10,000 times, and a reader that reads until the same " \
        "bytes have arrived; 48 of them, as UringMachine 1.0.6 has them in its own script; and 48 with 16 KB, 5,000 times. " \
        "`syscalls/op` is for a write and its read."
  size groups: 50, chunks: 10_000, bytes: 1024
  quick chunks: 500
  warm_up chunks: 50
  row "C=50x2"
  row "C=48x2", quick: false, groups: 48
  row "C=48x2, 16 KB", quick: false, groups: 48, chunks: 5_000, bytes: 16_384
  columns :user, :system, :total, :real, :syscalls
  syscalls(:chunks, few: 100, many: 200) { |groups:, chunks:, **| groups * chunks }
  proof { |groups:, chunks:, bytes:| { bytes: groups * chunks * bytes, intact: groups } }

  # A thread for each writer and reader.
  contender "threads" do |meter, groups:, chunks:, bytes:|
    tally = []
    meter.measure do
      groups.times.flat_map { |group| stock_group.call(group, chunks, bytes, tally, Thread.method(:new)) }.each(&:join)
    end
    proof_of.call(tally)
  end

  # `Sync` at the root and tasks below it, as in Async's guide (https://socketry.github.io/async/guides/best-practices/); its
  # scheduler uses the selector that io-event chooses for this machine.
  contender "async", requires: "async" do |meter, groups:, chunks:, bytes:|
    tally = []
    meter.measure do
      Sync do |task|
        groups.times.flat_map { |group| stock_group.call(group, chunks, bytes, tally, task.method(:async)) }.each(&:wait)
      end
    end
    proof_of.call(tally)
  end

  # The same under our scheduler, a strand for each.
  contender "ringspun fs", requires: "ringspun" do |meter, groups:, chunks:, bytes:|
    tally = []
    meter.measure do
      Ringspun.run do |machine|
        groups.times { |group| stock_group.call(group, chunks, bytes, tally, machine.method(:spin)) }
      end
    end
    proof_of.call(tally)
  end

  # A fiber for each writer and reader, and UringMachine's own calls on descriptors.
  uringmachine do |meter, ring, groups:, chunks:, bytes:|
    tally = []
    meter.measure do
      Bench::UringMachine.run(ring) do |machine|
        groups.times.flat_map do |group|
          reader, writer = UM.pipe
          payload = Bench.payload(group, bytes)
          writing = machine.spin do
            chunks.times { machine.write(writer, payload) }
            machine.close_async(writer)
          end
          reading = machine.spin do
            buffer = String.new(capacity: bytes)
            received = 0
            received += machine.read(reader, buffer, bytes) while received < chunks * bytes
            machine.close_async(reader)
            tally << [received, buffer == payload]
          end
          [writing, reading]
        end
      end
    end
    proof_of.call(tally)
  end

  # The stock classes on its fiber scheduler.
  uringmachine_fs do |meter, groups:, chunks:, bytes:|
    tally = []
    meter.measure do
      Bench::UringMachine.schedule do |start|
        groups.times { |group| stock_group.call(group, chunks, bytes, tally, start) }
      end
    end
    proof_of.call(tally)
  end

  # The machine's own calls on descriptors, a strand for each writer and reader.
  contender "ringspun", requires: "ringspun" do |meter, groups:, chunks:, bytes:|
    tally = []
    meter.measure do
      Ringspun.run do |machine|
        strands = groups.times.flat_map do |group|
          reader, writer = machine.pipe
          payload = Bench.payload(group, bytes)
          writing = machine.spin do
            chunks.times { machine.write(writer, payload) }
            machine.close(writer)
          end
          reading = machine.spin do
            buffer = String.new(capacity: bytes)
            received = 0
            received += machine.read(reader, buffer, bytes) while received < chunks * bytes
            machine.close(reader)
            tally << [received, buffer == payload]
          end
          [writing, reading]
        end
        machine.join(*strands)
      end
    end
    proof_of.call(tally)
  end

  stream = ->(groups:, chunks:, bytes:) { ["pipe", groups, chunks, bytes] }
  floor("stream.c", &stream)
  ring_floor("stream.c", &stream)

  targets "total <= 1.6 x floor", "total <= 2 x best floor", "total <= 0.30 x async at C=50x2", "total <= 0.9 x best peer",
          "total <= 1.1 x ringspun epoll",
          "ringspun fs: total <= 0.6 x async", "ringspun fs: total <= 1.03 x best peer",
          "total <= 0.55 x uringmachine at C=48x2", "ringspun fs: total <= 1.03 x uringmachine fs",
          "ringspun fs: total <= 1.5 x ringspun"
end
