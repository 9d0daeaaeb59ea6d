# frozen_string_literal: true

# Puts an item into one source after the other, each after the one before was taken.
feed = lambda do |queues, taken, items|
  items.times do |item|
    queues[item % queues.size].push(item)
    taken.pop
  end
end

# Without a select: for each source a thread, task or strand that moves its items into one queue. `start` runs a block beside the
# others.
relay = lambda do |sources, items, start|
  queues, sink, taken = Array.new(sources) { Thread::Queue.new }, Thread::Queue.new, Thread::Queue.new
  relays = queues.each_with_index.map do |queue, i|
    start.call { while (item = queue.pop) do sink.push([i, item]) end }
  end
  feeder = start.call { feed.call(queues, taken, items) }
  sum = 0
  items.times do
    i, item = sink.pop
    sum += item if item % sources == i
    taken.push(true)
  end
  queues.each(&:close)
  [[*relays, feeder], sum]
end

Bench.table "select" do
  title "Select"
  about "So many queues, of which one at a time is given an item; one strand waits in a Ringspun::Selector for the first of " \
        "all, and says that it has taken it. The others have no such wait: there, each queue has a thread, task or strand that " \
        "hands on what comes. The floor is a hand-over between two fibers, without any queue."
  size items: 100_000
  quick items: 5_000
  warm_up items: 500
  row "4", sources: 4, quick: false
  row "16", sources: 16, quick: false
  row "64", sources: 64
  row "256", sources: 256, quick: false
  proof { |items:, **| { sum: items * (items - 1) / 2 } }
  columns :real_ns, :cpu_ns, :rate
  against_floor :cpu_ns
  against_peer :real_ns, :cpu_ns

  contender "threads", size: { items: 20_000 } do |meter, sources:, items:|
    sum = 0
    meter.measure do
      started, sum = relay.call(sources, items, Thread.method(:new))
      started.each(&:join)
    end
    meter.operations = items
    { sum: }
  end

  contender "async", requires: "async" do |meter, sources:, items:|
    sum = 0
    meter.measure do
      Sync do |task|
        started, sum = relay.call(sources, items, task.method(:async))
        started.each(&:wait)
      end
    end
    meter.operations = items
    { sum: }
  end

  contender "ringspun fs", requires: "ringspun" do |meter, sources:, items:|
    sum = 0
    meter.measure do
      Ringspun.run do |machine|
        started, sum = relay.call(sources, items, machine.method(:spin))
        machine.join(*started)
      end
    end
    meter.operations = items
    { sum: }
  end

  contender "ringspun", requires: "ringspun" do |meter, sources:, items:|
    sum = 0
    meter.measure do
      Ringspun.run do |machine|
        queues, taken = Array.new(sources) { Ringspun::Queue.new }, Ringspun::Queue.new
        machine.spin { feed.call(queues, taken, items) }
        selector = Ringspun::Selector.new do |on|
          queues.each_with_index { |queue, i| on.pop(queue) { |item| sum += item if item % sources == i } }
        end
        items.times { selector.wait && taken.push(true) }
        selector.close
      end
    end
    meter.operations = items
    { sum: }
  end

  bare "bare fiber" do |meter, sources:, items:|
    sum = 0
    meter.measure do
      main = Fiber.current
      waiter = Fiber.new do |given|
        loop do
          i, item = given
          sum += item if item % sources == i
          given = main.transfer
        end
      end
      items.times { |item| waiter.transfer([item % sources, item]) }
    end
    meter.operations = items
    { sum: }
  end

  targets "cpu_ns flat within 100%", "cpu_ns <= 1.0 x async", "cpu_ns <= 1.1 x ringspun epoll"
end
