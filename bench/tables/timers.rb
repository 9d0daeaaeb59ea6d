# frozen_string_literal: true

# How long each of the sleepers sleeps each time, the same for every contender.
naps_of = lambda do |sleepers, naps|
  random = Random.new(42)
  Array.new(sleepers) { Array.new(naps) { random.rand(0.001..0.010) } }
end

# Answers whether none of the sleeps ended too early.
sleep_through = lambda do |meter, seconds, sleep|
  began = meter.now
  seconds.each(&sleep)
  meter.now - began >= seconds.sum
end

# The stock sleep, which threads and Async's scheduler share.
stock = lambda do |meter, sleepers, naps, start, finish|
  all = naps_of.call(sleepers, naps)
  meter.operations = sleepers * naps
  meter.measure do
    started = all.map { |seconds| start.call { sleep_through.call(meter, seconds, method(:sleep)) } }
    { slept: started.count(&finish) }
  end
end

Bench.table "timers" do
  title "Timers"
  about "10,000 strands sleep from 1 to 10 ms, 20 times each. An operation is a sleep, and none may be too short."
  size sleepers: 10_000, naps: 20
  quick naps: 2
  warm_up sleepers: 100, naps: 2
  scale "strands", :sleepers, 10, 100, 1_000, 10_000, 30_000, most: { "threads" => 1_000 }, naps: 10
  proof { |sleepers:, **| { slept: sleepers } }
  columns :real_ns, :cpu_ns, :rate
  against_peer :cpu_ns, :real_ns

  # A thread for each. Fewer of them, because 10,000 take a second to start.
  contender "threads", size: { sleepers: 1_000 } do |meter, sleepers:, naps:|
    stock.call(meter, sleepers, naps, Thread.method(:new), :value)
  end

  # A task for each.
  contender "async", requires: "async" do |meter, sleepers:, naps:|
    Sync { |task| stock.call(meter, sleepers, naps, task.method(:async), :wait) }
  end

  # Kernel#sleep in strands.
  contender "ringspun fs", requires: "ringspun" do |meter, sleepers:, naps:|
    Ringspun.run { |machine| stock.call(meter, sleepers, naps, machine.method(:spin), :await) }
  end

  # A fiber for each, and UringMachine's own sleep.
  contender "uringmachine", requires: "uringmachine" do |meter, sleepers:, naps:|
    all = naps_of.call(sleepers, naps)
    meter.operations = sleepers * naps
    slept = 0
    meter.measure do
      machine = UM.new
      sleep = machine.method(:sleep)
      fibers = all.map { |seconds| machine.spin { slept += 1 if sleep_through.call(meter, seconds, sleep) } }
      machine.join(*fibers)
    end
    { slept: }
  end

  # A strand for each, and Machine#sleep.
  contender "ringspun", requires: "ringspun" do |meter, sleepers:, naps:|
    all = naps_of.call(sleepers, naps)
    meter.operations = sleepers * naps
    meter.measure do
      Ringspun.run do |machine|
        sleep = machine.method(:sleep)
        spun = all.map { |seconds| machine.spin { sleep_through.call(meter, seconds, sleep) } }
        { slept: spun.count(&:await) }
      end
    end
  end

  targets "cpu_ns <= 1.1 x ringspun epoll"
end
