# frozen_string_literal: true

# Spawns operations one after the other, and awaits each before the next, as a server does for a request. The process must not
# grow by it.
sequence = lambda do |meter, count, start, finish|
  sum = 0
  mappings = meter.mappings
  meter.measure { count.times { sum += start.call { 1 }.public_send(finish) } }
  meter.operations = count
  meter.note(:maps_growth, meter.mappings - mappings)
  { sum: }
end

Bench.table "spawn" do
  title "Spawn and finish"
  about "100,000 times and more: spawn, run an empty block, await it. `mappings +` is by how many lines /proc/self/maps grew."
  size count: 100_000
  quick count: 4_000
  # Enough to fill the pools of what is used again before the region begins.
  warm_up count: 10_000
  proof { |count:| { sum: count } }
  columns :real_ns, :cpu_ns, :rate, :maps_growth
  against_floor :cpu_ns
  against_peer :real_ns, :cpu_ns

  # Thread.new and its value.
  contender "threads" do |meter, count:|
    sequence.call(meter, count, Thread.method(:new), :value)
  end

  # Task#async and its value.
  contender "async", requires: "async" do |meter, count:|
    Sync { |task| sequence.call(meter, count, task.method(:async), :wait) }
  end

  # Fiber.schedule, whose fibers are never used again, and the value by way of a stock Queue.
  contender "ringspun fs", requires: "ringspun" do |meter, count:|
    scheduled = Data.define(:values) { def value = values.pop }
    start = lambda do |&block|
      scheduled.new(Thread::Queue.new).tap { |started| Fiber.schedule { started.values << block.call } }
    end
    Ringspun.run { sequence.call(meter, count, start, :value) }
  end

  # Machine#spin and the strand's value. More of them, because 100,000 take a tenth of a second.
  contender "ringspun", requires: "ringspun", size: { count: 500_000 } do |meter, count:|
    Ringspun.run { |machine| sequence.call(meter, count, machine.method(:spin), :await) }
  end

  # A fiber that is made, resumed once and dropped: the least for a scheduler that does not use fibers again.
  bare "bare fiber" do |meter, count:|
    sequence.call(meter, count, Fiber.method(:new), :resume)
  end

  targets "cpu_ns <= 1_000", "maps_growth <= 0", "cpu_ns <= 1.1 x ringspun epoll"
end
