# frozen_string_literal: true

path_of = ->(meter, round, group) { File.join(meter.scratch, "#{round}-#{group}") }
payloads_of = ->(workers, bytes) { Array.new(workers) { |worker| Bench.payload(worker, bytes) } }

# Reads everything back: a chunk counts when it is one worker's whole payload, so that a torn or lost write shows.
# Outside the measured region.
proof_of = lambda do |meter, payloads, bytes, rounds, groups|
  found = Hash.new(0)
  rounds.times do |round|
    groups.times do |group|
      File.open(path_of.call(meter, round, group), "rb") do |file|
        while (chunk = file.read(bytes))
          found[chunk] += 1
        end
      end
    end
  end
  { bytes: found.sum { |chunk, times| chunk.bytesize * times }, chunks: found.values_at(*payloads).sum(&:to_i) }
end

# The stock classes, which threads and Async's scheduler share. `syswrite` is the stock call for one system call per
# chunk, and cheaper than `write` with sync on.
stock_group = lambda do |path, payloads, writes, start|
  mutex = Mutex.new
  file = File.open(path, "wb")
  workers = payloads.map do |payload|
    start.call { writes.times { mutex.synchronize { file.syswrite(payload) } } }
  end
  [file, workers]
end

Bench.table "mutex_io" do
  title "Mutex, I/O-bound"
  about "N groups, each a mutex, a new file and 10 workers which lock the mutex and write 1 KB to the file, 50 " \
        "times each. Most run several rounds in the measured region; the times are those of one round."
  size workers: 10, writes: 50, bytes: 1024, repeat: 4
  quick writes: 10, repeat: 1
  warm_up rounds: 1, repeat: 1, writes: 2
  writes_files do |groups:, workers:, writes:, bytes:, rounds:, repeat:|
    rounds * repeat * groups * workers * writes * bytes
  end
  { 1 => 80, 5 => 16, 10 => 8, 20 => 4, 50 => 2, 100 => 1, 200 => 1 }.each do |groups, rounds|
    row "N=#{groups}", quick: [1, 20, 200].include?(groups), groups:, rounds:
  end
  proof do |groups:, workers:, writes:, bytes:, rounds:, repeat:|
    chunks = rounds * repeat * groups * workers * writes
    { bytes: chunks * bytes, chunks: }
  end

  # A thread for each worker, a stock Mutex for each group. Fewer rounds, because each takes ten times as long.
  contender "threads", size: { repeat: 1 } do |meter, groups:, workers:, writes:, bytes:, rounds:, **|
    payloads = payloads_of.call(workers, bytes)
    meter.measure(rounds:) do |round|
      started = groups.times.map do |group|
        stock_group.call(path_of.call(meter, round, group), payloads, writes, Thread.method(:new))
      end
      started.each { |file, threads| threads.each(&:join) && file.close }
    end
    proof_of.call(meter, payloads, bytes, rounds, groups)
  end

  # A task for each worker, a stock Mutex for each group, the lock that Async's guide to thread safety shows.
  contender "async", requires: "async" do |meter, groups:, workers:, writes:, bytes:, rounds:, repeat:|
    rounds *= repeat
    payloads = payloads_of.call(workers, bytes)
    meter.measure(rounds:) do |round|
      Sync do |task|
        started = groups.times.map do |group|
          stock_group.call(path_of.call(meter, round, group), payloads, writes, task.method(:async))
        end
        started.each { |file, tasks| tasks.each(&:wait) && file.close }
      end
    end
    proof_of.call(meter, payloads, bytes, rounds, groups)
  end

  # The same under our scheduler, a strand for each.
  contender "ringspun fs", requires: "ringspun" do |meter, groups:, workers:, writes:, bytes:, rounds:, repeat:|
    rounds *= repeat
    payloads = payloads_of.call(workers, bytes)
    meter.measure(rounds:) do |round|
      Ringspun.run do |machine|
        started = groups.times.map do |group|
          stock_group.call(path_of.call(meter, round, group), payloads, writes, machine.method(:spin))
        end
        started.each { |file, strands| machine.join(*strands) || file.close }
      end
    end
    proof_of.call(meter, payloads, bytes, rounds, groups)
  end

  # A strand for each worker, a Ringspun::Mutex for each group, and the machine's own calls on descriptors.
  contender "ringspun", requires: "ringspun" do |meter, groups:, workers:, writes:, bytes:, rounds:, repeat:|
    rounds *= repeat
    payloads = payloads_of.call(workers, bytes)
    meter.measure(rounds:) do |round|
      Ringspun.run do |machine|
        started = groups.times.map do |group|
          mutex = Ringspun::Mutex.new
          fd = machine.open(path_of.call(meter, round, group), File::WRONLY | File::CREAT | File::TRUNC, 0o644)
          strands = payloads.map do |payload|
            machine.spin { writes.times { mutex.synchronize { machine.write(fd, payload) } } }
          end
          [fd, strands]
        end
        started.each do |fd, strands|
          machine.join(*strands)
          machine.close(fd)
        end
      end
    end
    proof_of.call(meter, payloads, bytes, rounds, groups)
  end

  floor("files.c") do |groups:, workers:, writes:, bytes:, rounds:, repeat:|
    [rounds * repeat, groups, workers, writes, bytes]
  end

  targets "total/floor flat within 25%", "real <= 0.5 x threads at N=200", "real <= 0.8 x async at N=200",
          "total <= 1.1 x ringspun epoll",
          "ringspun fs: total <= 0.6 x async at N=200",
          "ringspun fs: total <= 1.5 x ringspun"
end
