# frozen_string_literal: true

Bench.table "switch" do
  title "Switch"
  about "Two strands which do nothing but give way to each other. The floor is two fibers which transfer to each " \
        "other without any scheduler."
  size yields: 2_500_000
  quick yields: 20_000
  warm_up yields: 10_000
  proof { |yields:| { yields: 2 * yields } }
  columns :real_ns, :cpu_ns, :rate
  against_floor :cpu_ns
  against_peer :real_ns, :cpu_ns

  # Two threads and Thread.pass, the stock method to yield. Fewer, because each time the kernel switches threads.
  contender "threads", size: { yields: 20_000 } do |meter, yields:|
    count = 0
    meter.measure do
      threads = 2.times.map do
        Thread.new do
          yields.times { Thread.pass }
          count += yields
        end
      end
      threads.each(&:join)
    end
    meter.operations = count
    { yields: count }
  end

  # Two tasks and Task#yield.
  contender "async", requires: "async", size: { yields: 500_000 } do |meter, yields:|
    count = 0
    meter.measure do
      Sync do |parent|
        tasks = 2.times.map do
          parent.async do |task|
            yields.times { task.yield }
            count += yields
          end
        end
        tasks.each(&:wait)
      end
    end
    meter.operations = count
    { yields: count }
  end

  # Two strands and `sleep 0`.
  contender "ringspun fs", requires: "ringspun", size: { yields: 500_000 } do |meter, yields:|
    count = 0
    meter.measure do
      Ringspun.run do |machine|
        2.times do
          machine.spin do
            yields.times { sleep 0 }
            count += yields
          end
        end
      end
    end
    meter.operations = count
    { yields: count }
  end

  # Two strands and Machine#yield.
  contender "ringspun", requires: "ringspun" do |meter, yields:|
    count = 0
    meter.measure do
      Ringspun.run do |machine|
        strands = 2.times.map do
          machine.spin do
            yields.times { machine.yield }
            count += yields
          end
        end
        machine.join(*strands)
      end
    end
    meter.operations = count
    { yields: count }
  end

  bare "bare transfer" do |meter, yields:|
    count = 0
    main = Fiber.current
    two = nil
    one = Fiber.new do
      yields.times { two.transfer }
      count += yields
      two.transfer
    end
    two = Fiber.new do
      yields.times { one.transfer }
      count += yields
      main.transfer
    end
    meter.measure { one.transfer }
    meter.operations = count
    { yields: count }
  end

  targets "cpu_ns <= 1.3 x floor", "cpu_ns <= 1.1 x ringspun epoll"
end
