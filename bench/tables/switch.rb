# frozen_string_literal: true

Bench.table "switch" do
  title "Switch"
  about "Two strands which do nothing but give way to each other, once they have begun. The floor is two fibers which transfer " \
        "to each other without any scheduler."
  size strands: 2, yields: 5_000_000
  quick yields: 40_000
  warm_up yields: 20_000
  scale "strands", :strands, 10, 100, 1_000, 10_000, 30_000,
        most: { "threads" => 1_000, "async" => 10_000, "bare transfer" => 10_000 }, yields: 1_000_000
  proof { |strands:, yields:| { yields: yields / strands * strands } }
  columns :real_ns, :cpu_ns, :rate
  against_floor :cpu_ns
  against_peer :real_ns, :cpu_ns

  # Threads and Thread.pass, the stock method to yield. Fewer, because each time the kernel switches threads.
  contender "threads", size: { yields: 40_000 } do |meter, strands:, yields:|
    count = 0
    yields /= strands
    gate = Thread::Queue.new
    threads = strands.times.map do
      Thread.new do
        gate.pop
        yields.times { Thread.pass }
        count += yields
      end
    end
    meter.measure do
      gate.close
      threads.each(&:join)
    end
    meter.operations = count
    { yields: count }
  end

  # Tasks and Task#yield.
  contender "async", requires: "async", size: { yields: 1_000_000 } do |meter, strands:, yields:|
    count = 0
    yields /= strands
    Sync do |parent|
      gate = Async::Condition.new
      tasks = strands.times.map do
        parent.async do |task|
          gate.wait
          yields.times { task.yield }
          count += yields
        end
      end
      meter.measure do
        gate.signal
        tasks.each(&:wait)
      end
    end
    meter.operations = count
    { yields: count }
  end

  # Strands and `sleep 0`.
  contender "ringspun fs", requires: "ringspun", size: { yields: 1_000_000 } do |meter, strands:, yields:|
    count = 0
    yields /= strands
    Ringspun.run do |machine|
      started = strands.times.map do
        machine.spin do
          sleep 0
          yields.times { sleep 0 }
          count += yields
        end
      end
      sleep 0
      meter.measure { machine.join(*started) }
    end
    meter.operations = count
    { yields: count }
  end

  # Strands and Machine#yield.
  contender "ringspun", requires: "ringspun" do |meter, strands:, yields:|
    count = 0
    yields /= strands
    Ringspun.run do |machine|
      started = strands.times.map do
        machine.spin do
          machine.yield
          yields.times { machine.yield }
          count += yields
        end
      end
      machine.yield
      meter.measure { machine.join(*started) }
    end
    meter.operations = count
    { yields: count }
  end

  # A ring, once each has begun: each transfers to the next, and the last that ends back to the region.
  bare "bare transfer" do |meter, strands:, yields:|
    count = 0
    yields /= strands
    main = Fiber.current
    ring = Array.new(strands) do |index|
      Fiber.new do
        main.transfer
        following = ring[(index + 1) % strands]
        yields.times { following.transfer }
        count += yields
        (index + 1 == strands ? main : following).transfer
      end
    end
    ring.each(&:transfer)
    meter.measure { ring.first.transfer }
    meter.operations = count
    { yields: count }
  end

  targets "cpu_ns <= 1.3 x floor", "cpu_ns <= 1.1 x ringspun epoll"
end
