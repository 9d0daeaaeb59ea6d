# frozen_string_literal: true

require "socket"

# Long enough for all readers to wait in the kernel again before the next messages are sent.
pause = 0.001

# Sends in rounds, and sleeps until all messages of a round have arrived.
send_rounds = lambda do |tally, sockets, rounds, sleep, &send|
  rounds.times do |round|
    loop do
      sleep.call(pause)
      break if tally[:arrived] >= round * sockets
    end
    sockets.times(&send)
  end
end

# The stock classes, which threads and Async's scheduler share.
stock = lambda do |meter, sockets, rounds, bytes, start, finish|
  pairs = Array.new(sockets) { UNIXSocket.pair }
  payloads = Array.new(sockets) { |index| Bench.payload(index, bytes) }
  tally = { arrived: 0, intact: 0 }
  meter.operations = sockets * rounds
  meter.measure do
    waiting = pairs.zip(payloads).map do |(reader, _), payload|
      start.call do
        buffer = String.new(capacity: bytes)
        rounds.times do
          tally[:intact] += 1 if reader.recv(bytes, 0, buffer) == payload
          tally[:arrived] += 1
        end
      end
    end
    send_rounds.call(tally, sockets, rounds, method(:sleep)) { |index| pairs[index].last.send(payloads[index], 0) }
    waiting.each(&finish)
  end
  { intact: tally[:intact] }
ensure
  pairs&.flatten&.each(&:close)
end

Bench.table "armed" do
  title "Armed receives"
  about "1,000 strands wait in recv, each on its socket; then one strand sends 64 bytes to each, waits a moment, and does it " \
        "again. An operation is a message. There is no time on the clock, because most of it is that moment."
  size sockets: 1_000, rounds: 100, bytes: 64
  quick rounds: 5
  warm_up sockets: 50, rounds: 2
  proof { |sockets:, rounds:, **| { intact: sockets * rounds } }
  columns :cpu_ns, :syscalls
  against_floor :cpu_ns
  against_peer :cpu_ns
  syscalls(:rounds, few: 2, many: 5) { |sockets:, rounds:, **| sockets * rounds }

  # A thread for each socket. Fewer rounds, because for each message the kernel switches threads.
  contender "threads", size: { rounds: 20 } do |meter, sockets:, rounds:, bytes:|
    stock.call(meter, sockets, rounds, bytes, Thread.method(:new), :join)
  end

  # A task for each socket.
  contender "async", requires: "async" do |meter, sockets:, rounds:, bytes:|
    Sync { |task| stock.call(meter, sockets, rounds, bytes, task.method(:async), :wait) }
  end

  # The stock classes in strands.
  contender "ringspun fs", requires: "ringspun" do |meter, sockets:, rounds:, bytes:|
    Ringspun.run { |machine| stock.call(meter, sockets, rounds, bytes, machine.method(:spin), :await) }
  end

  # A fiber for each socket, and UringMachine's own calls on descriptors.
  contender "uringmachine", requires: "uringmachine" do |meter, sockets:, rounds:, bytes:|
    machine = UM.new
    pairs = Array.new(sockets) { UM.socketpair(UM::AF_UNIX, UM::SOCK_STREAM, 0) }
    payloads = Array.new(sockets) { |index| Bench.payload(index, bytes) }
    tally = { arrived: 0, intact: 0 }
    meter.operations = sockets * rounds
    meter.measure do
      fibers = pairs.zip(payloads).map do |(reader, _), payload|
        machine.spin do
          buffer = String.new(capacity: bytes)
          rounds.times do
            machine.recv(reader, buffer, bytes, 0)
            tally[:intact] += 1 if buffer == payload
            tally[:arrived] += 1
          end
        end
      end
      send_rounds.call(tally, sockets, rounds, machine.method(:sleep)) do |index|
        machine.send(pairs[index].last, payloads[index], bytes, 0)
      end
      machine.join(*fibers)
    end
    { intact: tally[:intact] }
  ensure
    pairs&.flatten&.each { |fd| machine.close(fd) }
  end

  # A strand for each socket, and the machine's own calls on descriptors.
  contender "ringspun", requires: "ringspun" do |meter, sockets:, rounds:, bytes:|
    tally = { arrived: 0, intact: 0 }
    meter.operations = sockets * rounds
    Ringspun.run do |machine|
      pairs = Array.new(sockets) { machine.socketpair(:UNIX, :STREAM) }
      payloads = Array.new(sockets) { |index| Bench.payload(index, bytes) }
      meter.measure do
        waiting = pairs.zip(payloads).map do |(reader, _), payload|
          machine.spin do
            buffer = String.new(capacity: bytes)
            rounds.times do
              machine.recv(reader, buffer, bytes)
              tally[:intact] += 1 if buffer == payload
              tally[:arrived] += 1
            end
          end
        end
        send_rounds.call(tally, sockets, rounds, machine.method(:sleep)) do |index|
          machine.send(pairs[index].last, payloads[index])
        end
        machine.join(*waiting)
      end
    ensure
      pairs&.flatten&.each { |fd| machine.close(fd) }
    end
    { intact: tally[:intact] }
  end

  floor("messages.c") { |sockets:, rounds:, bytes:| [sockets, rounds, bytes, 1] }

  targets "cpu_ns <= 0.8 x ringspun epoll"
end
