# frozen_string_literal: true

require "socket"

# Runs the block in a process of its own, in a thread for each of its sockets. It succeeds if all blocks return true.
beside = lambda do |own, others, &work|
  fork do
    others.each(&:close)
    exit!(own.map { |socket| Thread.new { work.call(socket) } }.all?(&:value))
  end
end

# TCP connections from a process that sends, and to one that takes everything. Yields the pairs of sockets between which to
# forward, and checks that all bytes have come.
with_ends = lambda do |connections, bytes, &block|
  server = TCPServer.new("127.0.0.1", 0)
  connect = ->(_) { [TCPSocket.new("127.0.0.1", server.addr[1]), server.accept] }
  (sources, froms), (tos, targets) = Array.new(2) { Array.new(connections, &connect).transpose }
  piece = Bench.payload(1, 65_536)
  sender = beside.call(sources, froms + tos + targets) do |socket|
    (bytes / piece.bytesize).times { socket.write(piece) }
    socket.close.nil?
  end
  taker = beside.call(targets, sources + froms + tos) do |socket|
    buffer = String.new(capacity: 262_144)
    came = 0
    came += buffer.bytesize until socket.recv(262_144, 0, buffer).to_s.empty?
    came == bytes
  end
  (sources + targets).each(&:close)
  block.call(froms.zip(tos))
ensure
  [*froms, *tos].each { |socket| socket.close unless socket.closed? }
  server.close
  raise "bytes are missing" unless [sender, taker].map { |pid| Process.wait2(pid).last.success? }.all?
end

copy = lambda do |from, to|
  IO.copy_stream(from, to).tap { to.close_write }
end

stock = lambda do |meter, connections, bytes, start, finish|
  bytes /= connections
  meter.operations = bytes * connections / 65_536
  with_ends.call(connections, bytes) do |pairs|
    meter.measure { { bytes: pairs.map { |from, to| start.call { copy.call(from, to) } }.sum(&finish) } }
  end
end

Bench.table "splice_forwarder" do
  title "Forwarding"
  about "N TCP connections whose bytes go on to N others; a process sends, and another takes them. `copied` is what came into " \
        "the program on the way. An operation is 64 KiB."
  size bytes: 1 << 30
  quick bytes: 1 << 26
  warm_up bytes: 1 << 22
  row "N=1", quick: false, connections: 1
  row "N=16", connections: 16
  proof { |bytes:, connections:| { bytes: bytes / connections * connections } }
  columns :real_ns, :cpu_ns, :rate, :copied
  against_peer :cpu_ns, :real_ns

  # IO.copy_stream, which reads and writes if neither end is a file.
  contender "threads" do |meter, connections:, bytes:|
    stock.call(meter, connections, bytes, Thread.method(:new), :value)
  end

  # The same in tasks.
  contender "async", requires: "async" do |meter, connections:, bytes:|
    Sync { |task| stock.call(meter, connections, bytes, task.method(:async), :wait) }
  end

  # The same in strands.
  contender "ringspun fs", requires: "ringspun" do |meter, connections:, bytes:|
    Ringspun.run { |machine| stock.call(meter, connections, bytes, machine.method(:spin), :await) }
  end

  # A strand for each, and Stream#copy_to.
  contender "ringspun", requires: "ringspun" do |meter, connections:, bytes:|
    bytes /= connections
    meter.operations = bytes * connections / 65_536
    with_ends.call(connections, bytes) do |pairs|
      Ringspun.run do |machine|
        before = machine.metrics[:bytes_spliced]
        moved = meter.measure do
          strands = pairs.map do |pair|
            from, to = pair.map { |socket| Ringspun::Stream.new(socket) }
            machine.spin { from.copy_to(to).tap { to.close_write } }
          end
          strands.sum(&:await)
        end
        meter.note(:copied, moved - (machine.metrics[:bytes_spliced] - before) / 2)
        { bytes: moved }
      end
    end
  end

  targets "real_ns <= 1.0 x threads", "cpu_ns <= 1.0 x threads", "copied <= 0", "cpu_ns <= 1.1 x ringspun epoll"
end
