# frozen_string_literal: true

block_bytes = 4096
path_of = ->(meter, file) { File.join(meter.scratch, file.to_s) }

# The blocks that each strand reads: all of them once, in random order.
shares_of = ->(strands, reads) { (0...strands * reads).to_a.shuffle(random: Random.new(42)).each_slice(reads).to_a }

# Each block begins with its number, so that the sum proves that each was read once.
write_files = lambda do |meter, files, blocks|
  files.times do |file|
    first = file * blocks / files
    bytes = Array.new(blocks / files) { |index| [first + index].pack("L<").ljust(block_bytes, "x") }.join
    File.open(path_of.call(meter, file), "wb") do |io|
      io.syswrite(bytes)
      io.fsync
    end
  end
end

# Puts files into the page cache, or out of it; for "mix" every other file.
prepare = lambda do |ios, state|
  ios.each_with_index do |io, index|
    io.advise(:random)
    state == "cold" || (state == "mix" && index.odd?) ? io.advise(:dontneed) : io.pread(io.size, 0)
  end
end

# If the kernel counts the bytes that it reads from devices, they prove that the files were cold.
measure = lambda do |meter, state, blocks, passes, &work|
  fetched = meter.bytes_fetched
  sum = meter.measure(&work)
  if state != "warm" && fetched && meter.bytes_fetched - fetched < blocks * block_bytes / 4
    raise Bench::Unavailable, "these files stay in memory"
  end

  meter.operations = blocks * passes
  { sum: }
end

# The stock class, which threads and Async's scheduler share.
stock = lambda do |meter, strands, reads, passes, files, state, start, finish|
  blocks = strands * reads
  write_files.call(meter, files, blocks)
  ios = Array.new(files) { |file| File.open(path_of.call(meter, file), "rb") }
  prepare.call(ios, state)
  shares = shares_of.call(strands, reads)
  per_file = blocks / files
  measure.call(meter, state, blocks, passes) do
    started = shares.map do |share|
      start.call do
        buffer = String.new(capacity: block_bytes)
        sum = 0
        passes.times do
          share.each do |block|
            ios[block / per_file].pread(block_bytes, block % per_file * block_bytes, buffer)
            sum += buffer.unpack1("L<")
          end
        end
        sum
      end
    end
    started.sum(&finish)
  end
ensure
  ios&.each(&:close)
end

Bench.table "files" do
  title "File mix"
  about "1,000 strands, each of which reads blocks of 4 KB from anywhere in 20 files of 1.6 MB, with nothing read ahead. " \
        "Warm: from the page cache, every block ten times. Cold: each block once, from the disk. Mix: half of the files are warm."
  size strands: 1_000, reads: 8, files: 20
  quick reads: 1
  warm_up strands: 20
  writes_files { |strands:, reads:, **| strands * reads * block_bytes }
  row "warm", state: "warm", passes: 10
  row "cold", state: "cold", passes: 1, quick: false
  row "mix", state: "mix", passes: 1
  proof do |strands:, reads:, passes:, **|
    blocks = strands * reads
    { sum: passes * blocks * (blocks - 1) / 2 }
  end
  columns :real_ns, :cpu_ns, :rate, :syscalls
  against_floor :cpu_ns
  against_peer :cpu_ns, :real_ns
  syscalls(:reads, few: 1, many: 3, passes: 1) { |strands:, reads:, passes:, **| strands * reads * passes }

  # A thread for each. IO#pread into a reused buffer is the cheapest stock call.
  contender "threads" do |meter, strands:, reads:, passes:, files:, state:|
    stock.call(meter, strands, reads, passes, files, state, Thread.method(:new), :value)
  end

  # A task for each, and the same call under the scheduler.
  contender "async", requires: "async" do |meter, strands:, reads:, passes:, files:, state:|
    Sync { |task| stock.call(meter, strands, reads, passes, files, state, task.method(:async), :wait) }
  end

  # The stock classes in strands.
  contender "ringspun fs", requires: "ringspun" do |meter, strands:, reads:, passes:, files:, state:|
    Ringspun.run { |machine| stock.call(meter, strands, reads, passes, files, state, machine.method(:spin), :await) }
  end

  # A strand for each, and the machine's own calls on descriptors.
  contender "ringspun", requires: "ringspun" do |meter, strands:, reads:, passes:, files:, state:|
    blocks = strands * reads
    per_file = blocks / files
    write_files.call(meter, files, blocks)
    shares = shares_of.call(strands, reads)
    Ringspun.run do |machine|
      fds = Array.new(files) { |file| machine.open(path_of.call(meter, file), File::RDONLY) }
      prepare.call(fds.map { |fd| File.for_fd(fd, autoclose: false) }, state)
      measure.call(meter, state, blocks, passes) do
        spun = shares.map do |share|
          machine.spin do
            buffer = String.new(capacity: block_bytes)
            sum = 0
            passes.times do
              share.each do |block|
                machine.pread(fds[block / per_file], buffer, block % per_file * block_bytes, block_bytes)
                sum += buffer.unpack1("L<")
              end
            end
            sum
          end
        end
        spun.sum(&:await)
      end
    ensure
      fds&.each { |fd| machine.close(fd) }
    end
  end

  floor "blocks.c" do |strands:, reads:, passes:, files:, state:|
    [state, files, strands * reads, passes]
  end

  targets "cpu_ns <= 1.1 x ringspun epoll", "cpu_ns <= 0.8 x ringspun epoll at mix"
end
