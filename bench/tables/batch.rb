# frozen_string_literal: true

require "socket"

Bench.table "batch" do
  title "Batch of 32"
  about "32 recvs that go to the kernel together. The floor is a bare ring in C, `engine` is Ringspun's engine without Ruby, " \
        "32 strands which start a recv each: what it costs above the floor is its own. Armed: a byte comes after all wait. " \
        "Ready: it is there, so the kernel does the least. In Ruby what is ready never gets so far."
  size batches: 20_000
  quick batches: 2_000
  warm_up batches: 5
  row "armed", ready: false
  row "ready", ready: true, skipped: { ringspun: "what is ready is taken without the ring" }
  proof { |batches:, **| { received: 32 * batches } }
  columns :real_ns, :cpu_ns, :rate, :syscalls
  against_floor :cpu_ns
  against_peer :cpu_ns
  syscalls(:batches, few: 100, many: 200) { |batches:, **| 32 * batches }

  variant("engine", "engine_batch.c") { |batches:, ready:| [ready ? "ready" : "armed", batches] }

  # Strands on sockets of the machine's own. The pause lets all of them wait in the kernel before the bytes are sent.
  # Fewer batches, because of the pause.
  contender "ringspun", requires: "ringspun", size: { batches: 1_000 } do |meter, batches:, **|
    received = 0
    meter.operations = 32 * batches
    Ringspun.run do |machine|
      pairs = Array.new(32) { machine.socketpair(:UNIX, :STREAM) }
      meter.measure do
        waiting = pairs.map do |reader, _|
          machine.spin do
            buffer = String.new(capacity: 1)
            batches.times do
              bytes = machine.recv(reader, buffer, 1)
              received += bytes
            end
          end
        end
        batches.times do
          machine.sleep(0.0002)
          pairs.each { |_, writer| machine.send(writer, "x") }
        end
        machine.join(*waiting)
      end
    ensure
      pairs&.flatten&.each { |fd| machine.close(fd) }
    end
    { received: }
  end

  floor("ring_batch.c") { |batches:, ready:| [ready ? "ready" : "armed", batches] }

  targets "engine: cpu_ns <= floor + 100 at ready", "cpu_ns <= 1.1 x ringspun epoll at armed"
end
