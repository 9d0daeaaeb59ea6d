# frozen_string_literal: true

# Push or pop so many items, for any kind of queue or channel.
produce = ->(channel, items) { items.times { |item| channel.push(item) } }
consume = lambda do |channel, items|
  sum = 0
  items.times { sum += channel.pop }
  sum
end

# Between two threads, each of which does its part inside `run`.
between = lambda do |channel, items, run|
  producer = Thread.new { run.call { produce.call(channel, items) } }
  consumer = Thread.new { run.call { consume.call(channel, items) } }
  producer.join
  consumer.value
end

Bench.table "channel" do
  title "Channel between two threads"
  about "One thread pushes, another pops, with room for so many values between them. Ours is a Ringspun::Channel between a " \
        "strand on each thread's machine; that of the others is a Thread::SizedQueue, between plain threads, or tasks or " \
        "strands of a scheduler on each. The floor is an Array, filled and emptied by one."
  size items: 200_000
  quick items: 10_000
  warm_up items: 1_000
  row "room for 1", capacity: 1, items: 20_000
  row "room for 64", capacity: 64
  row "room for 1,024", capacity: 1_024, quick: false
  proof { |items:, **| { sum: items * (items - 1) / 2 } }
  columns :real_ns, :cpu_ns, :rate
  against_floor :cpu_ns
  against_peer :real_ns, :cpu_ns

  contender "threads" do |meter, capacity:, items:|
    sum = 0
    meter.measure { sum = between.call(Thread::SizedQueue.new(capacity), items, ->(&part) { part.call }) }
    meter.operations = items
    { sum: }
  end

  contender "async", requires: "async" do |meter, capacity:, items:|
    sum = 0
    meter.measure { sum = between.call(Thread::SizedQueue.new(capacity), items, ->(&part) { Sync { part.call } }) }
    meter.operations = items
    { sum: }
  end

  contender "ringspun fs", requires: "ringspun" do |meter, capacity:, items:|
    sum = 0
    meter.measure { sum = between.call(Thread::SizedQueue.new(capacity), items, ->(&part) { Ringspun.run { part.call } }) }
    meter.operations = items
    { sum: }
  end

  contender "ringspun", requires: "ringspun" do |meter, capacity:, items:|
    sum = 0
    meter.measure { sum = between.call(Ringspun::Channel.new(capacity), items, ->(&part) { Ringspun.run { part.call } }) }
    meter.operations = items
    { sum: }
  end

  bare "bare array" do |meter, capacity:, items:|
    sum = 0
    meter.measure do
      array = []
      (0...items).each_slice(capacity) do |part|
        part.each { |item| array.push(item) }
        part.size.times { sum += array.shift }
      end
    end
    meter.operations = items
    { sum: }
  end

  targets "cpu_ns <= 1.0 x async", "cpu_ns <= 1.1 x ringspun epoll"
end
