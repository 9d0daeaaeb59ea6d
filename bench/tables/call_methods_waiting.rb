# frozen_string_literal: true

require "bench/concurrent_procs"

# As in the seed. The rows say whether the proc waits.
forms = {
  "call" => ->(test, batch, batches) { batches.times { batch.each { test.call } } },
  "call_nonblock" => ->(test, batch, batches) { batches.times { batch.each { test.call_nonblock } } },
  "call_detached" => lambda { |test, batch, batches|
    batches.times do
      evaluations = batch.map { test.call_detached }
      evaluations.each { |evaluation| evaluation.await_result }
    end
  },
  "call_and_forget" => lambda { |test, batch, batches|
    batches.times do
      batch.each { test.call_and_forget }
      wait 0
    end
  },
  "waiting call_nonblock" => lambda { |test, batch, batches|
    batches.times do
      evaluations = batch.map { test.call_nonblock }
      evaluations.each { |evaluation| evaluation.await_result }
    end
  }
}
%w[call call_detached call_and_forget].each { |form| forms["waiting #{form}"] = forms.fetch(form) }

Bench.table "call_methods_waiting" do
  title "Waiting inside concurrent procs"
  about "Concurrent procs that count, and before it wait in the rows of that name (`wait 0`), in batches of 100. Evaluations " \
        "are awaited where there are some; forgotten ones have a `wait 0` after each batch. The collector is off, and on for " \
        "`GC on op/s`. The floor calls a plain proc, and nothing waits."
  size batches: 200
  quick batches: 20
  warm_up batches: 5
  row "call", form: "call", quick: false
  row "call_nonblock", form: "call_nonblock", quick: false
  row "call_detached", form: "call_detached", quick: false
  row "call_and_forget", form: "call_and_forget", quick: false
  row "waiting call", form: "waiting call", batches: 100
  row "waiting call_nonblock", form: "waiting call_nonblock", batches: 100, quick: false
  row "waiting call_detached", form: "waiting call_detached", batches: 100
  row "waiting call_and_forget", form: "waiting call_and_forget", batches: 100, quick: false
  proof { |batches:, scale:, **| { ran: Bench::ConcurrentProcs.runs_of(batches * scale * Bench::ConcurrentProcs::BATCH) } }
  columns :real_ns, :cpu_ns, :rate, :gc_rate, :objects
  against_floor :real_ns
  against_peer :real_ns, :cpu_ns

  run = lambda do |meter, form, batches, ran, test|
    batch = Array.new(Bench::ConcurrentProcs::BATCH)
    Bench::ConcurrentProcs.measure(meter, batches * batch.size, ran) { forms.fetch(form).call(test, batch, batches) }
  end

  Bench::ConcurrentProcs.contend(self, scale: 5) do |meter, form:, batches:, scale:|
    ran = 0
    count = concurrent_proc { ran += 1 }
    wait_and_count = concurrent_proc do
      wait 0
      ran += 1
    end
    run.call(meter, form, batches * scale, -> { ran }, form.start_with?("waiting") ? wait_and_count : count)
  end

  bare "plain proc", size: { scale: 10 } do |meter, batches:, scale:, **|
    ran = 0
    run.call(meter, "call", batches * scale, -> { ran }, proc { ran += 1 })
  end

  targets "rate >= 12 x concurrently at waiting call", "rate >= 5 x concurrently at waiting call_nonblock",
          "rate >= 5 x concurrently at waiting call_detached", "rate >= 5 x concurrently at waiting call_and_forget",
          "rate >= 5 x concurrently at call_detached", "cpu_ns <= 1.1 x ringspun epoll"
end
