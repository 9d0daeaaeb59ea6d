# frozen_string_literal: true

# The work of all contenders, on a queue of their own kind. The items are numbers, so that their sum proves that each was
# delivered once.
produce = ->(queue, items) { items.times { |item| queue.push(item) } }
consume = lambda do |queue, items|
  sum = 0
  items.times { sum += queue.pop }
  sum
end

# The stock Queue, which Async's own wraps: `start` runs a block beside the others, `finish` awaits its value.
stock = lambda do |groups, producers, consumers, items, start, finish|
  started = groups.times.flat_map do
    queue = Thread::Queue.new
    producers.times { start.call { produce.call(queue, items) } }
    consumers.times.map { start.call { consume.call(queue, items * producers / consumers) } }
  end
  started.sum(&finish)
end

Bench.table "queue" do
  title "Queue"
  about "20 groups, each a queue, 5 producers which push 40,000 items and 10 consumers which pop their share; and the 40 " \
        "groups of UringMachine's own script (1.0.6, which pushes 200,000). The floor is the same blocks over an Array, one " \
        "after the other."
  size groups: 20, producers: 5, consumers: 10, items: 40_000
  quick items: 4_000
  warm_up items: 100
  row "N=20"
  row "N=40", quick: false, groups: 40
  proof { |groups:, producers:, items:, **| { sum: groups * producers * items * (items - 1) / 2 } }

  # A thread for each producer and consumer, over a stock Queue.
  contender "threads" do |meter, groups:, producers:, consumers:, items:|
    meter.measure { { sum: stock.call(groups, producers, consumers, items, Thread.method(:new), :value) } }
  end

  # A task for each, over the stock Queue: Async::Queue delegates to it, and so is slower.
  contender "async", requires: "async" do |meter, groups:, producers:, consumers:, items:|
    meter.measure do
      Sync { |task| { sum: stock.call(groups, producers, consumers, items, task.method(:async), :wait) } }
    end
  end

  # A fiber for each, over UringMachine's own queue.
  uringmachine do |meter, ring, groups:, producers:, consumers:, items:|
    sums = []
    meter.measure do
      Bench::UringMachine.run(ring) do |machine|
        groups.times.flat_map do
          queue = UM::Queue.new
          producing = producers.times.map { machine.spin { items.times { |item| machine.push(queue, item) } } }
          share = items * producers / consumers
          producing + consumers.times.map { machine.spin { sums << share.times.sum { machine.shift(queue) } } }
        end
      end
    end
    { sum: sums.sum }
  end

  # The stock Queue on its fiber scheduler.
  uringmachine_fs do |meter, groups:, producers:, consumers:, items:|
    sums = []
    meter.measure do
      Bench::UringMachine.schedule do |start|
        groups.times do
          queue = Thread::Queue.new
          producers.times { start.call { produce.call(queue, items) } }
          consumers.times { start.call { sums << consume.call(queue, items * producers / consumers) } }
        end
      end
    end
    { sum: sums.sum }
  end

  # A strand for each, over the stock Queue.
  contender "ringspun fs", requires: "ringspun" do |meter, groups:, producers:, consumers:, items:|
    meter.measure do
      Ringspun.run do |machine|
        { sum: stock.call(groups, producers, consumers, items, machine.method(:spin), :await) }
      end
    end
  end

  # A strand for each, over a Ringspun::Queue.
  contender "ringspun", requires: "ringspun" do |meter, groups:, producers:, consumers:, items:|
    meter.measure do
      Ringspun.run do |machine|
        strands = groups.times.flat_map do
          queue = Ringspun::Queue.new
          producers.times { machine.spin { produce.call(queue, items) } }
          consumers.times.map { machine.spin { consume.call(queue, items * producers / consumers) } }
        end
        { sum: strands.sum(&:await) }
      end
    end
  end

  bare "bare array" do |meter, groups:, producers:, consumers:, items:|
    take = lambda do |array, count|
      sum = 0
      count.times { sum += array.shift }
      sum
    end
    meter.measure do
      sums = groups.times.flat_map do
        array = []
        producers.times { produce.call(array, items) }
        consumers.times.map { take.call(array, items * producers / consumers) }
      end
      { sum: sums.sum }
    end
  end

  targets "total <= 1.25 x floor", "total <= 1.0 x threads", "total <= 1.0 x async",
          "real <= 1.0 x threads", "real <= 1.0 x async", "total <= 1.1 x ringspun epoll",
          "ringspun fs: total <= 1.0 x threads",
          "ringspun fs: total <= 1.03 x async", "ringspun fs: total <= 1.03 x uringmachine fs", "total <= 1.03 x best peer",
          "ringspun fs: total <= 1.5 x ringspun"
end
