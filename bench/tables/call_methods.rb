# frozen_string_literal: true

require "bench/concurrent_procs"

# As in the seeds, in batches and one by one.
calls = {
  "call" => ->(test, batch, count) { (count / batch.size).times { batch.each { test.call } } },
  "call_nonblock" => ->(test, batch, count) { (count / batch.size).times { batch.each { test.call_nonblock } } },
  "call_detached" => lambda { |test, batch, count|
    (count / batch.size).times do
      batch.each { test.call_detached }
      wait 0
    end
  },
  "call_and_forget" => lambda { |test, batch, count|
    (count / batch.size).times do
      batch.each { test.call_and_forget }
      wait 0
    end
  },
  "unbatched call" => ->(test, _, count) { test.call while (count -= 1) >= 0 },
  "unbatched call_nonblock" => ->(test, _, count) { test.call_nonblock while (count -= 1) >= 0 },
  "unbatched call_detached" => ->(test, _, count) { test.call_detached while (count -= 1) >= 0 },
  "unbatched call_and_forget" => ->(test, _, count) { test.call_and_forget while (count -= 1) >= 0 }
}

Bench.table "call_methods" do
  title "Calling"
  about "The mere call of a concurrent proc that does next to nothing: it counts. In batches of 100, with `wait 0` after each " \
        "batch of background calls; unbatched ones are only scheduled in the region, and run after it. The collector is off, " \
        "and on for `GC on op/s`. The floor calls a plain proc."
  size batches: 200
  quick batches: 40
  warm_up batches: 10
  calls.each_key do |call|
    # The peer gives each scheduled call a fiber, which it cannot use again until the call has run.
    size = call.match?(/unbatched call_[da]/) ? { batches: 100 } : {}
    row call, call:, quick: call == "call", **size
  end
  proof { |batches:, scale:, **| { ran: Bench::ConcurrentProcs.runs_of(batches * scale * Bench::ConcurrentProcs::BATCH) } }
  columns :real_ns, :cpu_ns, :rate, :gc_rate, :objects
  against_floor :real_ns
  against_peer :real_ns, :cpu_ns

  body = lambda do |meter, test, ran, call, batches, scale|
    batch = Array.new(Bench::ConcurrentProcs::BATCH)
    count = batches * scale * batch.size
    # Resets the peer's pool of fibers, which would hold those of the region before.
    before = call.start_with?("unbatched") && defined?(Concurrently) ? -> { Concurrently::EventLoop.current.reinitialize! } : -> {}
    Bench::ConcurrentProcs.measure(meter, count, ran, before:) { calls.fetch(call).call(test, batch, count) }
  end

  Bench::ConcurrentProcs.contend(self, scale: 5) do |meter, call:, batches:, scale:|
    ran = 0
    body.call(meter, concurrent_proc { ran += 1 }, -> { ran }, call, batches, scale)
  end

  bare "plain proc", size: { scale: 10 } do |meter, call:, batches:, scale:|
    ran = 0
    call = call.start_with?("unbatched") ? "unbatched call" : "call"
    body.call(meter, proc { ran += 1 }, -> { ran }, call, batches, scale)
  end

  targets "rate >= 8 x concurrently at call", "drop-in: rate >= 5 x concurrently at call",
          "rate >= 3.5 x concurrently at call_nonblock", "rate >= 5 x concurrently at call_detached",
          "rate >= 6 x concurrently at call_and_forget", "objects <= 0.01 at call", "objects <= 0.01 at call_nonblock",
          "objects <= 1.01 at call_detached", "cpu_ns <= 1.1 x ringspun epoll"
end
