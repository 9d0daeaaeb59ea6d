# frozen_string_literal: true

require "bench/concurrent_procs"

backend = "through the backend"

# Yields pipes that are ready, as in the seed; or nothing, for `wait 0`.
with_batch = lambda do |form, &block|
  next block.call(Array.new(Bench::ConcurrentProcs::BATCH)) if form == "wait 0"

  begin
    pipes = Array.new(Bench::ConcurrentProcs::BATCH) { IO.pipe.tap { |_, writer| writer.write("0") if form.include?("readable") } }
    block.call(pipes)
  ensure
    pipes&.flatten&.each(&:close)
  end
end

# Calls a proc in batches, with each item of the batch.
run = lambda do |meter, form, batches, ran, test|
  with_batch.call(form) do |batch|
    Bench::ConcurrentProcs.measure(meter, batches * batch.size, ran) do
      if form == "wait 0"
        batches.times { batch.each { test.call } }
      else
        batches.times { batch.each { |*arguments| test.call(*arguments) } }
      end
    end
  end
end

Bench.table "wait_methods" do
  title "Mere waiting"
  about "Plain procs which wait for next to nothing, and then count: `wait 0`, and pipes that are ready. Ours looks whether " \
        "one is before it asks its backend, unless it is told not to; the peer always asks. The collector is off, and on for " \
        "`GC on op/s`. The floor's procs do not wait. One object is that of the `|*args|` with which the seed calls."
  size batches: 100
  quick batches: 20
  warm_up batches: 5
  row "wait 0", form: "wait 0"
  row "await_readable", form: "await_readable"
  row "await_writable", form: "await_writable", quick: false
  row "await_readable #{backend}", form: "await_readable #{backend}", quick: false
  row "await_writable #{backend}", form: "await_writable #{backend}", quick: false
  proof { |batches:, scale:, **| { ran: Bench::ConcurrentProcs.runs_of(batches * scale * Bench::ConcurrentProcs::BATCH) } }
  columns :real_ns, :cpu_ns, :rate, :gc_rate, :objects
  against_floor :real_ns
  against_peer :real_ns, :cpu_ns

  Bench::ConcurrentProcs.contend(self, scale: 5) do |meter, form:, batches:, scale:|
    ran = 0
    # The peer has no backends.
    form = form.delete_suffix(" #{backend}") unless defined?(Ringspun::Machine)
    test = {
      "wait 0" => proc { ran += 1 if wait 0 },
      "await_readable" => proc { |reader, _| ran += 1 if reader.await_readable },
      "await_writable" => proc { |_, writer| ran += 1 if writer.await_writable },
      "await_readable #{backend}" => proc { |reader, _| ran += 1 if reader.await_readable(poll_first: false) },
      "await_writable #{backend}" => proc { |_, writer| ran += 1 if writer.await_writable(poll_first: false) }
    }.fetch(form)
    run.call(meter, form, batches * scale, -> { ran }, test)
  end

  bare "plain proc", size: { scale: 20 } do |meter, form:, batches:, scale:|
    ran = 0
    run.call(meter, form, batches * scale, -> { ran }, proc { |_reader, _writer| ran += 1 })
  end

  targets "rate >= 12 x concurrently at wait 0", "rate >= 10 x concurrently at await_readable",
          "rate >= 10 x concurrently at await_writable", "rate >= 5 x concurrently at await_readable #{backend}",
          "rate >= 5 x concurrently at await_writable #{backend}", "objects <= 0.01 at wait 0", "cpu_ns <= 1.1 x ringspun epoll"
end
