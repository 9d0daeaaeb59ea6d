# frozen_string_literal: true

path_of = ->(meter, round, group, device) { device || File.join(meter.scratch, "#{round}-#{group}") }
payloads_of = ->(workers, bytes) { Array.new(workers) { |worker| Bench.payload(worker, bytes) } }

# Reads everything back, after the region: a chunk counts if it is one worker's whole payload, so that a torn or lost write shows.
# A device returns nothing.
proof_of = lambda do |meter, payloads, bytes, rounds, groups, device|
  next { bytes: 0, chunks: 0 } if device

  found = Hash.new(0)
  rounds.times do |round|
    groups.times do |group|
      File.open(path_of.call(meter, round, group, device), "rb") do |file|
        while (chunk = file.read(bytes))
          found[chunk] += 1
        end
      end
    end
  end
  { bytes: found.sum { |chunk, times| chunk.bytesize * times }, chunks: found.values_at(*payloads).sum(&:to_i) }
end

# The stock classes, which threads and Async's scheduler share. `syswrite` is the stock method that makes one system call per
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
        "times each. Most run several rounds in the measured region; the times are those of one round. In the last row all " \
        "write to /dev/null, 1,000 times each."
  size workers: 10, writes: 50, bytes: 1024, repeat: 4, device: nil
  quick writes: 10, repeat: 1
  warm_up rounds: 1, repeat: 1, writes: 2
  writes_files do |groups:, workers:, writes:, bytes:, rounds:, repeat:, device:|
    device ? 0 : rounds * repeat * groups * workers * writes * bytes
  end
  { 1 => 80, 5 => 16, 10 => 8, 20 => 4, 50 => 2, 100 => 1, 200 => 1 }.each do |groups, rounds|
    row "N=#{groups}", quick: groups == 20, groups:, rounds:
  end
  row "N=48, /dev/null", quick: false, groups: 48, rounds: 1, repeat: 1, writes: 1_000, device: "/dev/null"
  proof do |groups:, workers:, writes:, bytes:, rounds:, repeat:, device:|
    chunks = device ? 0 : rounds * repeat * groups * workers * writes
    { bytes: chunks * bytes, chunks: }
  end

  # A thread for each worker, a stock Mutex for each group. Fewer rounds, because each takes ten times as long.
  contender "threads", size: { repeat: 1 } do |meter, groups:, workers:, writes:, bytes:, rounds:, device:, **|
    payloads = payloads_of.call(workers, bytes)
    meter.measure(rounds:) do |round|
      started = groups.times.map do |group|
        stock_group.call(path_of.call(meter, round, group, device), payloads, writes, Thread.method(:new))
      end
      started.each { |file, threads| threads.each(&:join) && file.close }
    end
    proof_of.call(meter, payloads, bytes, rounds, groups, device)
  end

  # A task for each worker, a stock Mutex for each group, the lock in Async's guide to thread safety.
  contender "async", requires: "async" do |meter, groups:, workers:, writes:, bytes:, rounds:, repeat:, device:|
    rounds *= repeat
    payloads = payloads_of.call(workers, bytes)
    meter.measure(rounds:) do |round|
      Sync do |task|
        started = groups.times.map do |group|
          stock_group.call(path_of.call(meter, round, group, device), payloads, writes, task.method(:async))
        end
        started.each { |file, tasks| tasks.each(&:wait) && file.close }
      end
    end
    proof_of.call(meter, payloads, bytes, rounds, groups, device)
  end

  # A fiber for each worker, UringMachine's own mutex for each group, and its own calls on descriptors.
  uringmachine do |meter, ring, groups:, workers:, writes:, bytes:, rounds:, repeat:, device:|
    rounds *= repeat
    payloads = payloads_of.call(workers, bytes)
    meter.measure(rounds:) do |round|
      Bench::UringMachine.run(ring) do |machine|
        groups.times.flat_map do |group|
          mutex = UM::Mutex.new
          fd = machine.open(path_of.call(meter, round, group, device), UM::O_WRONLY | UM::O_CREAT | UM::O_TRUNC)
          left = workers
          payloads.map do |payload|
            machine.spin do
              writes.times { machine.synchronize(mutex) { machine.write(fd, payload) } }
              machine.close(fd) if (left -= 1).zero?
            end
          end
        end
      end
    end
    proof_of.call(meter, payloads, bytes, rounds, groups, device)
  end

  # The stock classes on its fiber scheduler.
  uringmachine_fs do |meter, groups:, workers:, writes:, bytes:, rounds:, repeat:, device:|
    rounds *= repeat
    payloads = payloads_of.call(workers, bytes)
    meter.measure(rounds:) do |round|
      files = nil
      Bench::UringMachine.schedule do |start|
        files = groups.times.map do |group|
          stock_group.call(path_of.call(meter, round, group, device), payloads, writes, start).first
        end
      end
      files.each(&:close)
    end
    proof_of.call(meter, payloads, bytes, rounds, groups, device)
  end

  # The same under our scheduler, a strand for each.
  contender "ringspun fs", requires: "ringspun" do |meter, groups:, workers:, writes:, bytes:, rounds:, repeat:, device:|
    rounds *= repeat
    payloads = payloads_of.call(workers, bytes)
    meter.measure(rounds:) do |round|
      Ringspun.run do |machine|
        started = groups.times.map do |group|
          stock_group.call(path_of.call(meter, round, group, device), payloads, writes, machine.method(:spin))
        end
        started.each { |file, strands| machine.join(*strands) || file.close }
      end
    end
    proof_of.call(meter, payloads, bytes, rounds, groups, device)
  end

  # A strand for each worker, a Ringspun::Mutex for each group, and the machine's own calls on descriptors.
  contender "ringspun", requires: "ringspun" do |meter, groups:, workers:, writes:, bytes:, rounds:, repeat:, device:|
    rounds *= repeat
    payloads = payloads_of.call(workers, bytes)
    meter.measure(rounds:) do |round|
      Ringspun.run do |machine|
        started = groups.times.map do |group|
          mutex = Ringspun::Mutex.new
          fd = machine.open(path_of.call(meter, round, group, device), File::WRONLY | File::CREAT | File::TRUNC, 0o644)
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
    proof_of.call(meter, payloads, bytes, rounds, groups, device)
  end

  floor("files.c") do |groups:, workers:, writes:, bytes:, rounds:, repeat:, device:|
    [rounds * repeat, groups, workers, writes, bytes, *device]
  end

  targets "total <= 0.6 x async", "total <= 1.0 x best peer",
          "ringspun fs: total <= 1.03 x async", "ringspun fs: total <= 1.03 x uringmachine fs", "total/floor flat within 25%",
          "real <= 0.5 x threads at N=200", "real <= 0.8 x async at N=200",
          "total <= 1.1 x ringspun epoll",
          "ringspun fs: total <= 0.6 x async at N=200",
          "ringspun fs: total <= 1.5 x ringspun"
end
