# frozen_string_literal: true

require "socket"

# The stock classes, which threads and Async's scheduler share: `send` and `recv` make the system calls of the same name, without
# the buffering of IO.
stock_group = lambda do |group, chunks, bytes, fresh, tally, start|
  reader, writer = UNIXSocket.pair
  payload = Bench.payload(group, bytes)
  writing = start.call do
    chunks.times { writer.send(payload, 0) }
    writer.close
  end
  reading = start.call do
    buffer = String.new(capacity: bytes)
    received = 0
    while received < chunks * bytes
      fresh ? buffer = reader.recv(bytes) : reader.recv(bytes, 0, buffer)
      received += buffer.bytesize
    end
    reader.close
    tally << [received, buffer == payload]
  end
  [writing, reading]
end

proof_of = ->(tally) { { bytes: tally.sum(&:first), intact: tally.count(&:last) } }

Bench.table "socketpair" do
  title "I/O: socketpair"
  about "50 groups, each a pair of unix stream sockets, a writer that sends 1 KB 10,000 times, and a reader that " \
        "receives until the same bytes have arrived; and 48 with 16 KB, 5,000 times, received into one String or into a new " \
        "one every time. `syscalls/op` is for a send and its recv."
  size groups: 50, chunks: 10_000, bytes: 1024, fresh: false
  quick chunks: 500
  warm_up chunks: 50
  row "N=50"
  row "N=48, 16 KB", quick: false, groups: 48, chunks: 5_000, bytes: 16_384
  row "N=48, 16 KB, new Strings", quick: false, groups: 48, chunks: 5_000, bytes: 16_384, fresh: true
  columns :user, :system, :total, :real, :syscalls
  syscalls(:chunks, few: 100, many: 200) { |groups:, chunks:, **| groups * chunks }
  proof { |groups:, chunks:, bytes:, **| { bytes: groups * chunks * bytes, intact: groups } }

  # A thread for each writer and reader.
  contender "threads" do |meter, groups:, chunks:, bytes:, fresh:|
    tally = []
    meter.measure do
      groups.times.flat_map { |group| stock_group.call(group, chunks, bytes, fresh, tally, Thread.method(:new)) }.each(&:join)
    end
    proof_of.call(tally)
  end

  # `Sync` at the root and tasks below it, as in Async's guide: https://socketry.github.io/async/guides/best-practices/
  contender "async", requires: "async" do |meter, groups:, chunks:, bytes:, fresh:|
    tally = []
    meter.measure do
      Sync do |task|
        groups.times.flat_map { |group| stock_group.call(group, chunks, bytes, fresh, tally, task.method(:async)) }.each(&:wait)
      end
    end
    proof_of.call(tally)
  end

  # The same under our scheduler, a strand for each.
  contender "ringspun fs", requires: "ringspun" do |meter, groups:, chunks:, bytes:, fresh:|
    tally = []
    meter.measure do
      Ringspun.run do |machine|
        groups.times { |group| stock_group.call(group, chunks, bytes, fresh, tally, machine.method(:spin)) }
      end
    end
    proof_of.call(tally)
  end

  # A fiber for each writer and reader, and UringMachine's own calls on descriptors.
  uringmachine do |meter, ring, groups:, chunks:, bytes:, fresh:|
    tally = []
    meter.measure do
      Bench::UringMachine.run(ring) do |machine|
        groups.times.flat_map do |group|
          reader, writer = UM.socketpair(UM::AF_UNIX, UM::SOCK_STREAM, 0)
          payload = Bench.payload(group, bytes)
          writing = machine.spin do
            chunks.times { machine.send(writer, payload, bytes, UM::MSG_WAITALL) }
            machine.close_async(writer)
          end
          reading = machine.spin do
            buffer = String.new(capacity: bytes)
            received = 0
            while received < chunks * bytes
              buffer = +"" if fresh
              received += machine.recv(reader, buffer, bytes, 0)
            end
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
  uringmachine_fs do |meter, groups:, chunks:, bytes:, fresh:|
    tally = []
    meter.measure do
      Bench::UringMachine.schedule do |start|
        groups.times { |group| stock_group.call(group, chunks, bytes, fresh, tally, start) }
      end
    end
    proof_of.call(tally)
  end

  # The machine's own calls on descriptors, a strand for each writer and reader.
  contender "ringspun", requires: "ringspun" do |meter, groups:, chunks:, bytes:, fresh:|
    tally = []
    meter.measure do
      Ringspun.run do |machine|
        strands = groups.times.flat_map do |group|
          reader, writer = machine.socketpair(:UNIX, :STREAM)
          payload = Bench.payload(group, bytes)
          writing = machine.spin do
            chunks.times { machine.send(writer, payload, 0) }
            machine.close(writer)
          end
          reading = machine.spin do
            buffer = String.new(capacity: bytes)
            received = 0
            while received < chunks * bytes
              buffer = +"" if fresh
              received += machine.recv(reader, buffer, bytes, 0)
            end
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

  stream = ->(groups:, chunks:, bytes:, **) { ["socketpair", groups, chunks, bytes] }
  floor("stream.c", &stream)
  ring_floor("stream.c", &stream)

  targets "total <= 2.2 x floor", "total <= 2 x best floor", "total <= 0.40 x async at N=50", "total <= 0.9 x best peer",
          "total <= 1.1 x ringspun epoll",
          "total <= 1.1 x floor at N=48, 16 KB", "total <= 1.5 x floor at N=48, 16 KB, new Strings",
          "ringspun fs: total <= 0.6 x async at N=50",
          "total <= 0.8 x uringmachine at N=48, 16 KB, new Strings",
          "ringspun fs: total <= 1.03 x async", "ringspun fs: total <= 1.03 x uringmachine fs",
          "ringspun fs: total <= 1.5 x ringspun"
end
